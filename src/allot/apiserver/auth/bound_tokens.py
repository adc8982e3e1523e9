"""Authentication by service account tokens, as long as the account and the bound object exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from allot.apiserver.auth.authentication import Credentials, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens, TokenClaims
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.storage_errors import api_errors_for_storage
from allot.storage.interface import StorageError

DELETION_LEEWAY: Final = timedelta(seconds=60)
"""An object that still exists is accepted for this time after its deletion was requested, as in Kubernetes."""


class LiveTokens:
    """Accepts tokens whose account and bound object exist, by name and uid."""

    def __init__(
        self, tokens: ServiceAccountTokens, caches: Caches, clock: Callable[[], datetime]
    ) -> None:
        self._tokens = tokens
        self._caches = caches
        self._clock = clock
        self._accounts = resource_named("", "serviceaccounts")
        self._pods = resource_named("", "pods")
        self._secrets = resource_named("", "secrets")
        self._nodes = resource_named("", "nodes")

    async def authenticate(self, credentials: Credentials) -> User | None:
        if credentials.bearer_token is None:
            return None
        claims = self._tokens.claims(credentials.bearer_token)
        if claims is None:
            return None
        for resource, namespace, name, uid in self._needed(claims):
            if not await self._is_there(resource, namespace, name, uid):
                return None
        return claims.user

    def _needed(self, claims: TokenClaims) -> Iterator[tuple[Resource, str, str, str]]:
        """The objects that must exist: resource, namespace, name, uid."""
        subject = claims.subject
        yield self._accounts, subject.namespace, subject.name, subject.uid
        if claims.secret is not None:
            yield self._secrets, subject.namespace, *claims.secret
        if claims.pod is not None:
            yield self._pods, subject.namespace, *claims.pod
        elif claims.node is not None:
            yield self._nodes, "", *claims.node

    async def _is_there(self, resource: Resource, namespace: str, name: str, uid: str) -> bool:
        cache = self._caches.of(resource)
        try:
            await cache.refresh()
        except StorageError:
            if not cache.epoch:  # the cache is not loaded
                with api_errors_for_storage():
                    raise
        stored = cache.get(self._caches.key(resource, namespace, name))
        if stored is None:
            return False
        metadata = stored.object.metadata
        deleted = metadata.deletion_timestamp
        is_gone = deleted is not None and deleted < self._clock() - DELETION_LEEWAY
        return metadata.uid == uid and not is_gone
