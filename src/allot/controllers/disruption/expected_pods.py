"""How many pods the owners of a budget's pods want, from their `scale`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.discovery import discover
from allot.client.errors import ApiStatusError
from allot.client.informer import Informer, InformerFactory
from allot.client.resources import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
    raw_resource,
)
from allot.controllers.workloads.accessors import name_of, namespace_of, replicas_of, uid_of
from allot.controllers.workloads.ownership import ControllerReference, controller_of

SCALABLE: Final = (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS, DEPLOYMENTS)
"""The kinds that are read from informers. Others are asked for their `scale`."""


class UnknownScaleError(Exception):
    """The owner of a pod does not say how many pods it wants."""


class ExpectedPods(NamedTuple):
    total: int
    unmanaged: tuple[Pod, ...]
    """Pods without a controller. They are not counted."""


class ExpectedPodCounter:
    """Sums the replicas of all controllers of some pods."""

    def __init__(self, client: Client, informers: InformerFactory) -> None:
        self._client = client
        self._informers: Mapping[tuple[str, str], Informer[RawObject]] = {
            (resource.group, resource.kind): informers.informer(resource) for resource in SCALABLE
        }
        self._others: dict[tuple[str, str], Resource[RawObject]] = {}

    async def count(self, pods: Iterable[Pod]) -> ExpectedPods:
        """`UnknownScaleError` if a controller has no scale."""
        replicas_by_uid: dict[str, int] = {}
        unmanaged: list[Pod] = []
        seen: set[str] = set()
        for pod in pods:
            controller = controller_of(pod)
            if controller is None:
                unmanaged.append(pod)
            elif controller.uid not in seen:
                seen.add(controller.uid)
                uid, replicas = await self._scale_of(pod, controller)
                replicas_by_uid[uid] = replicas
        return ExpectedPods(sum(replicas_by_uid.values()), tuple(unmanaged))

    async def _scale_of(self, pod: Pod, controller: ControllerReference) -> tuple[str, int]:
        """The uid of the topmost owner that scales the pod, and its replicas."""
        namespace = namespace_of(pod)
        owner = self._find(namespace, controller)
        if owner is not None:
            above = controller_of(owner)
            higher = self._find(namespace, above) if above is not None else None
            scaled = higher or owner
            return uid_of(scaled), replicas_of(scaled)
        if (controller.group, controller.kind) in self._informers:
            raise UnknownScaleError(f'found no controllers for pod "{name_of(pod)}"')
        return controller.uid, await self._asked(namespace, pod, controller)

    def _find(self, namespace: str, controller: ControllerReference) -> RawObject | None:
        informer = self._informers.get((controller.group, controller.kind))
        found = informer.get(ObjectKey(namespace, controller.name)) if informer else None
        return found if found is not None and uid_of(found) == controller.uid else None

    async def _asked(self, namespace: str, pod: Pod, controller: ControllerReference) -> int:
        resource = await self._resource_of(controller)
        if resource is None:
            raise UnknownScaleError(f'found no controllers for pod "{name_of(pod)}"')
        path = resource.path(ObjectKey(namespace, controller.name), "scale")
        try:
            response = await self._client.request("GET", path)
        except ApiStatusError as error:
            if error.is_not_found:
                raise UnknownScaleError(
                    f"{resource} does not implement the scale subresource"
                ) from None
            raise
        return replicas_of(RawObject.from_json(response.body))

    async def _resource_of(self, controller: ControllerReference) -> Resource[RawObject] | None:
        key = controller.group, controller.kind
        if key not in self._others:
            for served in (await discover(self._client)).kinds:
                if (served.group, served.kind) == key:
                    self._others[key] = raw_resource(
                        RawObject, served.group, served.version, served.plural, served.kind
                    )
                    break
        return self._others.get(key)
