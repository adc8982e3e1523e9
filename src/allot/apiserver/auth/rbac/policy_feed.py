"""Keeps a `PolicyIndex` up to date with the roles and bindings in the store.

Those of allot's own components are in force without being stored. A stored object of the same name takes precedence.
"""

from __future__ import annotations

from typing import Final

from allot.api.identities import ObjectKey
from allot.apiserver.auth.cache_follower import CacheFollower
from allot.apiserver.auth.rbac.bootstrap import GROUP, component_roles
from allot.apiserver.auth.rbac.policy_index import PolicyIndex
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject

ROLES: Final = ("clusterroles", "roles")
BINDINGS: Final = ("clusterrolebindings", "rolebindings")


class PolicyFeed:
    """The current roles and bindings of the store."""

    def __init__(self, caches: Caches) -> None:
        self.index = _component_policies()
        self._version = 0
        self._has_news = True
        """Whether a cache has changed. Caches say so before a write returns."""
        self._followers = tuple(
            (plural in ROLES, CacheFollower(caches.of(resource_named(GROUP, plural))))
            for plural in (*ROLES, *BINDINGS)
        )

    async def start(self) -> None:
        for _, follower in self._followers:
            await follower.start()
            follower.listen(self._look_again)
        self._look_again()
        self.catch_up()

    def catch_up(self) -> int:
        """Applies everything written before this call; the generation differs after every change."""
        if not self._has_news:
            return self._version
        self._has_news = False
        for is_role, follower in self._followers:
            changes = follower.news()
            if changes is None:
                self._read_all()
                break
            if changes:
                self._version += 1
                for change in changes:
                    self._apply(change, is_role=is_role)
        return self._version

    def _look_again(self) -> None:
        self._has_news = True

    def _read_all(self) -> None:
        self._version += 1
        self.index = _component_policies()
        for is_role, follower in self._followers:
            follower.news()  # later changes come after the objects read here
            for stored in follower.objects():
                self._put(stored, is_role=is_role)

    def _apply(self, change: ObjectChange, *, is_role: bool) -> None:
        if change.new is not None:
            self._put(change.new, is_role=is_role)
            return
        assert change.old is not None
        key = change.old.object.key
        if is_role:
            self.index.remove_role(*key)
        else:
            self.index.remove_binding(*key)
        _put_component_policies(self.index, only=key)

    def _put(self, stored: StoredObject, *, is_role: bool) -> None:
        document = stored.object.data
        if is_role:
            self.index.put_role(document)
        else:
            self.index.put_binding(document)


def _component_policies() -> PolicyIndex:
    index = PolicyIndex()
    _put_component_policies(index)
    return index


def _put_component_policies(index: PolicyIndex, only: ObjectKey | None = None) -> None:
    for each in component_roles():
        if only is None or only == ObjectKey("", each.role["metadata"]["name"]):
            index.put_role(each.role)
            assert each.binding is not None
            index.put_binding(each.binding)
