"""Access as a service account: its tokens are asked for, kept, and replaced in time."""

from __future__ import annotations

from typing import Any

import pytest

from allot.client import service_account
from allot.client.errors import ConfigError
from allot.client.kubeconfig import ClusterAccess
from allot.client.service_account import RENEW_AFTER, TOKEN_SECONDS, ServiceAccountAccess

OWNER = ClusterAccess("https://h", "Bearer owner", impersonation=(("Impersonate-User", "x"),))


class Owner:
    """A user who may request tokens."""

    def load(self) -> ClusterAccess:
        return OWNER

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        return access


class Server:
    """Answers requests for tokens of accounts that exist."""

    def __init__(self, *accounts: str) -> None:
        self.accounts = set(accounts)
        self.asked: list[str] = []
        self.refuses = False

    def post(self, access: ClusterAccess, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        assert access is OWNER
        self.asked.append(path)
        if self.refuses:
            return 403, {"message": "no"}
        if not path.endswith("/token"):
            self.accounts.add(body["metadata"]["name"])
            return 201, {}
        if path.split("/")[-2] not in self.accounts:
            return 404, {"message": "not found"}
        return 201, {"status": {"token": f"t{len(self.asked)}"}}


def an_access(
    monkeypatch: pytest.MonkeyPatch, server: Server, now: list[float]
) -> ServiceAccountAccess:
    monkeypatch.setattr(service_account, "_post", server.post)
    return ServiceAccountAccess(Owner(), "kube-system", "a", lambda: now[0])


def test_an_account_that_is_missing_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    found = an_access(monkeypatch, server, [1.0]).load()

    assert server.accounts == {"a"}
    assert (found.authorization, found.impersonation) == ("Bearer t3", ())


def test_a_token_is_replaced_before_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    server, now = Server("a"), [1.0]
    access = an_access(monkeypatch, server, now)
    first = access.load()
    now[0] += RENEW_AFTER * TOKEN_SECONDS - 1
    assert access.refresh(first).authorization == first.authorization
    now[0] += 1

    assert access.refresh(first).authorization == "Bearer t2"


def test_a_refused_token_request_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("a")
    server.refuses = True

    with pytest.raises(ConfigError, match="no token for the service account a: no"):
        an_access(monkeypatch, server, [1.0]).load()
