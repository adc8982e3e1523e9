"""The node graph: objects that the pods of a node refer to, which its kubelet may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from allot.apiserver.auth.cache_follower import CacheFollower
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.validation.parts import part, parts, text

MIRROR: Final = "kubernetes.io/config.mirror"
_SECRET_VOLUMES: Final = ("cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
"""Volumes whose `secretRef` names a secret in the pod's namespace."""


class Reference(NamedTuple):
    """An object that a pod needs, by resource, namespace and name."""

    resource: str
    namespace: str
    name: str


def pod_references(pod: Mapping[str, Any]) -> Iterator[Reference]:
    """The objects that a pod refers to. A mirror pod has none, because its kubelet wrote it."""
    metadata = part(pod, "metadata")
    if MIRROR in part(metadata, "annotations"):
        return
    namespace = text(metadata, "namespace")
    spec = part(pod, "spec")
    pod_name = text(metadata, "name")
    for resource, name in _names(spec, part(pod, "status"), pod_name):
        if name:
            yield Reference(resource, namespace, name)


def _names(
    spec: Mapping[str, Any], status: Mapping[str, Any], pod_name: str
) -> Iterator[tuple[str, str]]:
    yield "serviceaccounts", text(spec, "serviceAccountName")
    for reference in parts(spec, "imagePullSecrets"):
        yield "secrets", text(reference, "name")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in parts(spec, kind):
            yield from _container_names(container)
    for volume in parts(spec, "volumes"):
        yield from _volume_names(volume, pod_name)
    for claim in parts(spec, "resourceClaims"):
        yield "resourceclaims", text(claim, "resourceClaimName")
    for claim in parts(status, "resourceClaimStatuses"):
        yield "resourceclaims", text(claim, "resourceClaimName")
    extended = part(status, "extendedResourceClaimStatus")
    yield "resourceclaims", text(extended, "resourceClaimName")


def _container_names(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in parts(container, "env"):
        source = part(variable, "valueFrom")
        yield "secrets", text(part(source, "secretKeyRef"), "name")
        yield "configmaps", text(part(source, "configMapKeyRef"), "name")
    for source in parts(container, "envFrom"):
        yield "secrets", text(part(source, "secretRef"), "name")
        yield "configmaps", text(part(source, "configMapRef"), "name")


def _volume_names(volume: Mapping[str, Any], pod_name: str) -> Iterator[tuple[str, str]]:
    yield "secrets", text(part(volume, "secret"), "secretName")
    yield "secrets", text(part(volume, "azureFile"), "secretName")
    yield "secrets", text(part(part(volume, "csi"), "nodePublishSecretRef"), "name")
    for kind in _SECRET_VOLUMES:
        yield "secrets", text(part(part(volume, kind), "secretRef"), "name")
    yield "configmaps", text(part(volume, "configMap"), "name")
    claim = part(volume, "persistentVolumeClaim")
    yield "persistentvolumeclaims", text(claim, "claimName")
    if volume.get("ephemeral"):
        yield "persistentvolumeclaims", f"{pod_name}-{text(volume, 'name')}"
    for source in parts(part(volume, "projected"), "sources"):
        yield "secrets", text(part(source, "secret"), "name")
        yield "configmaps", text(part(source, "configMap"), "name")


class NodeGraph:
    """References of all pods by node, loaded with the first request of a kubelet."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pods = CacheFollower(caches.of(resource_named("", "pods")))
        self._references: dict[str, Counter[Reference]] = {}

    async def start(self) -> None:
        """Loads the caches that the graph is built from."""
        await self._pods.start()
        for group, plural in _LOOKED_AT:
            await self._caches.of(resource_named(group, plural)).start()

    def refers(self, node: str, reference: Reference) -> bool:
        """Whether a pod on the node needs this object."""
        self._catch_up()
        return reference in self._references.get(node, ())

    def has_pod(self, node: str, namespace: str, name: str) -> bool:
        return bool(self.value("", "pods", namespace, name, "spec", "nodeName") == node)

    def value(self, group: str, plural: str, namespace: str, name: str, *path: str) -> Any:
        """A value in an object; None if the object or the value does not exist."""
        resource = resource_named(group, plural)
        cache = self._caches.of(resource)
        cache.catch_up()
        stored = cache.get(self._caches.key(resource, namespace, name))
        if stored is None:
            return None
        found: Any = cache.codec.document(stored.object, resource.versions[0])
        for name_ in path:
            found = found.get(name_) if isinstance(found, dict) else None
        return found

    def _catch_up(self) -> None:
        changes = self._pods.news()
        if changes is None:
            self._references.clear()
            for stored in self._pods.objects():
                self._count(stored, 1)
            return
        for change in changes:
            self._count(change.old, -1)
            self._count(change.new, 1)

    def _count(self, stored: StoredObject | None, number: int) -> None:
        if stored is None:
            return
        pod = stored.object.data
        node = text(part(pod, "spec"), "nodeName")
        if not node:
            return
        counts = self._references.setdefault(node, Counter())
        for reference in pod_references(pod):
            counts[reference] += number
            if not counts[reference]:
                del counts[reference]
        if not counts:
            del self._references[node]


_LOOKED_AT: Final = (
    ("", "persistentvolumes"),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
    ("", "nodes"),
    ("storage.k8s.io", "csidrivers"),
)
