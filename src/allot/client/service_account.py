"""Service account credentials by TokenRequest: what `--use-service-account-credentials` switches on."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from allot.client.errors import ConfigError
from allot.client.kubeconfig import AccessSource, ClusterAccess

TOKEN_SECONDS: Final = 3600
RENEW_AFTER: Final = 0.8
"""The part of its life after which a token is replaced."""
TIMEOUT_SECONDS: Final = 30


class ServiceAccountAccess:
    """Tokens of one service account, which is created if it does not exist."""

    def __init__(
        self,
        owner: AccessSource,
        namespace: str,
        name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` is the access of the user who asks for tokens."""
        self._owner = owner
        self._accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self._name = name
        self._clock = clock
        self._token = ""
        self._renew_at = 0.0

    def load(self) -> ClusterAccess:
        return self._as_account(self._owner.load())

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        if self._clock() < self._renew_at:
            return access._replace(authorization=f"Bearer {self._token}")
        return self.load()

    def _as_account(self, access: ClusterAccess) -> ClusterAccess:
        if self._clock() >= self._renew_at:
            code, answer = self._ask(access)
            if code == 404:
                _post(access, self._accounts, {"metadata": {"name": self._name}})
                code, answer = self._ask(access)
            if code != 201:
                text = answer.get("message") or f"the server answered {code}"
                raise ConfigError(f"no token for the service account {self._name}: {text}")
            self._token = answer["status"]["token"]
            self._renew_at = self._clock() + RENEW_AFTER * TOKEN_SECONDS
        return access._replace(
            authorization=f"Bearer {self._token}",
            certificate=b"",
            key=b"",
            impersonation=(),
        )

    def _ask(self, access: ClusterAccess) -> tuple[int, dict[str, Any]]:
        request = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        return _post(access, f"{self._accounts}/{self._name}/token", request)


def _post(access: ClusterAccess, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    url = urlsplit(access.server)
    context = access.ssl_context()
    connection: http.client.HTTPConnection
    if context is None:
        connection = http.client.HTTPConnection(
            url.hostname or "", url.port, timeout=TIMEOUT_SECONDS
        )
    else:
        connection = http.client.HTTPSConnection(
            url.hostname or "", url.port, timeout=TIMEOUT_SECONDS, context=context
        )
    headers = {"content-type": "application/json", **dict(access.impersonation)}
    if access.authorization:
        headers["authorization"] = access.authorization
    try:
        connection.request("POST", f"{url.path.rstrip('/')}{path}", json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read() or b"{}")
        return response.status, answer
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ConfigError(f"{access.server}: {error}") from error
    finally:
        connection.close()
