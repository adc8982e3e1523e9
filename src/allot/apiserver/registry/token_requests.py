"""serviceaccounts/token: tokens for an account, bound to an object if the request names one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from allot.api.identities import ObjectKey
from allot.apiserver.api_errors import ApiError, Details, bad_request
from allot.apiserver.auth.service_account_tokens import (
    BoundObject,
    Issued,
    ServiceAccountTokens,
    TokenClaims,
    TokenSubject,
)
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.reading import Reader
from allot.apiserver.watch_cache.caches import resource_named

GROUP: Final = "authentication.k8s.io"
DEFAULT_ACCOUNT: Final = "default"


class TokenRequests:
    """Answers TokenRequests."""

    def __init__(
        self, reader: Reader, tokens: ServiceAccountTokens, clock: Callable[[], datetime]
    ) -> None:
        self._reader = reader
        self._tokens = tokens
        self._clock = clock
        self._pods = resource_named("", "pods")
        self._secrets = resource_named("", "secrets")
        self._nodes = resource_named("", "nodes")

    async def issue(self, accounts: Resource, key: ObjectKey, asked: dict[str, Any]) -> Issued:
        """The token; 404 if the account or the object is missing, 409 if it is another one."""
        stored = await self._reader.get(accounts, key, "")
        metadata = stored.object.metadata
        subject = TokenSubject(metadata.namespace, metadata.name, metadata.uid)
        uid = (asked.get("metadata") or {}).get("uid")
        if uid and uid != subject.uid:
            raise _conflict(
                f"TokenRequest.{GROUP}",
                Details(subject.name, GROUP, "TokenRequest"),
                f"the UID in the token request ({uid}) does not match the UID of the service account"
                f" ({subject.uid})",
            )
        reference = (asked.get("spec") or {}).get("boundObjectRef")
        claims = TokenClaims(subject)
        if reference is not None:
            claims = await self._bound(claims, reference)
        return self._tokens.issue(asked, claims, self._clock())

    async def _bound(self, claims: TokenClaims, reference: Any) -> TokenClaims:
        if not isinstance(reference, dict) or not all(
            isinstance(value, str) for value in reference.values()
        ):
            raise bad_request("spec.boundObjectRef must be an object with string values")
        kind, name = reference.get("kind", ""), reference.get("name", "")
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        if group or kind not in ("Pod", "Secret", "Node"):
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        if not name:
            raise bad_request("Name parameter required.")
        namespace = claims.subject.namespace
        if kind == "Node":
            claims = claims._replace(node=await self._object(self._nodes, ObjectKey("", name)))
            found = claims.node
        elif kind == "Secret":
            secret = await self._object(self._secrets, ObjectKey(namespace, name))
            claims, found = claims._replace(secret=secret), secret
        else:
            claims = await self._bound_to_pod(claims, ObjectKey(namespace, name))
            found = claims.pod
        assert found is not None
        uid = reference.get("uid", "")
        if uid and uid != found.uid:
            raise _conflict(
                kind,
                Details(name, "", kind),
                f"the UID in the bound object reference ({uid}) does not match the UID in record."
                " The object might have been deleted and then recreated",
            )
        return claims

    async def _object(self, resource: Any, key: ObjectKey) -> BoundObject:
        metadata = (await self._reader.get(resource, key, "")).object.metadata
        return BoundObject(metadata.name, metadata.uid)

    async def _bound_to_pod(self, claims: TokenClaims, key: ObjectKey) -> TokenClaims:
        pod = (await self._reader.get(self._pods, key, "")).object
        account = claims.subject.name
        if pod.get("spec", "serviceAccountName", default=DEFAULT_ACCOUNT) != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different'
                " serviceaccount name."
            )
        claims = claims._replace(pod=BoundObject(pod.metadata.name, pod.metadata.uid))
        node = pod.get("spec", "nodeName", default="")
        if not node:
            return claims
        try:
            return claims._replace(node=await self._object(self._nodes, ObjectKey("", node)))
        except ApiError as error:
            if error.code != 404:
                raise
            return claims._replace(node=BoundObject(node))


def _conflict(resource: str, details: Details, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource} "{details.name}": {why}'
    return ApiError(409, "Conflict", message, details)
