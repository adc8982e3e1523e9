"""Whether an owner exists: looked up in the graph, then on the server."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.events import WARNING, ObjectReference, Recorder
from allot.client.metadata import MetadataObject
from allot.client.resources import Resource
from allot.client.served_kinds import ServedKinds
from allot.controllers.garbage_collector.decisions import OwnerState
from allot.controllers.garbage_collector.graph import FOREGROUND, GraphNode, OwnerGraph
from allot.lru_cache import LRUCache

log = logging.getLogger(__name__)

MAX_ABSENT_OWNERS: Final = 500
INVALID_NAMESPACE: Final = "OwnerRefInvalidNamespace"


class UnknownOwnerError(Exception):
    """It is unknown whether the owner exists, so its dependents are not deleted."""

    def __init__(self, message: str, *, may_change: bool = True) -> None:
        super().__init__(message)
        self.may_change = may_change


class _Identity(NamedTuple):
    group: str
    kind: str
    key: ObjectKey
    uid: str


class Owners:
    """Looks owners up. Absent owners are cached: a uid is never reused."""

    def __init__(
        self, client: Client, kinds: ServedKinds, graph: OwnerGraph, recorder: Recorder
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._graph = graph
        self._recorder = recorder
        self._absent: LRUCache[_Identity, bool] = LRUCache(MAX_ABSENT_OWNERS)

    async def states(self, obj: MetadataObject, node: GraphNode) -> dict[str, OwnerState]:
        """The state of each owner, by uid. Raises `UnknownOwnerError`."""
        return {ref.uid: await self._state(ref, node) for ref in obj.owners}

    async def _state(self, ref: OwnerReference, dependent: GraphNode) -> OwnerState:
        known = self._graph.get(ref.uid)
        if known is not None and known.is_meant_by(ref, dependent):
            return OwnerState.WAITING if known.waits_for_dependents else OwnerState.SOLID
        kind = self._kinds.find(ref.api_version, ref.kind)
        if kind is None:
            raise UnknownOwnerError(f"no matches for kind {ref.kind} in {ref.api_version}")
        if kind.namespaced and not dependent.key.namespace:
            self._complain(dependent, ref, "cluster-scoped objects cannot have namespaced owners")
            text = f"{ref.kind} {ref.name} may be in any namespace"
            raise UnknownOwnerError(text, may_change=False)
        key = ObjectKey(dependent.key.namespace if kind.namespaced else "", ref.name)
        identity = _Identity(kind.group, kind.kind, key, ref.uid)
        if identity in self._absent:
            return OwnerState.DANGLING
        owner = await self._look_up(kind.resource, key)
        if owner is None or owner.uid != ref.uid:
            self._absent.put(identity, True)
            if known is not None and known.key.namespace not in ("", dependent.key.namespace):
                text = f"it does not exist in namespace {dependent.key.namespace}"
                self._complain(dependent, ref, text)
            return OwnerState.DANGLING
        waits = owner.is_being_deleted and FOREGROUND in owner.finalizers
        return OwnerState.WAITING if waits else OwnerState.SOLID

    async def _look_up(
        self, resource: Resource[MetadataObject], key: ObjectKey
    ) -> MetadataObject | None:
        try:
            return await self._client.get(resource, key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
            if error.details.get("name") != key.name:
                # The kind is missing, perhaps temporarily, not the object.
                raise UnknownOwnerError(f"{resource}: {error}") from None
            return None

    def _complain(self, dependent: GraphNode, ref: OwnerReference, problem: str) -> None:
        owner = f"{ref.api_version}/{ref.kind} {ref.name} ({ref.uid})"
        log.warning("%s: owner %s: %s", dependent, owner, problem)
        self._recorder.event(
            ObjectReference(
                dependent.kind.api_version, dependent.kind.kind, *dependent.key, dependent.uid
            ),
            WARNING,
            INVALID_NAMESPACE,
            "Collecting",
            f"owner {owner}: {problem}",
        )
