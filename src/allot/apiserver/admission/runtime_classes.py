"""RuntimeClasses of pods: the class has to exist; its overhead and placement become the pod's."""

from __future__ import annotations

from typing import Any

from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted, Grown
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Workers, json_work
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.quota.amounts import read_amounts
from allot.validation.lists import identity

OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


NO_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClassConflictError(ValueError):
    """The pod asks for something else than its class."""


class RuntimeClassAdmission:
    def __init__(self, caches: Caches, workers: Workers) -> None:
        self._caches = caches
        self._workers = workers
        self._pods = resource_named("", "pods")
        self._classes = resource_named("node.k8s.io", "runtimeclasses")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._pods and operation == "create"

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        pod = attributes.new
        name = (pod.rest.get("spec") or {}).get("runtimeClassName")
        if name is None:
            return pod
        if not name:
            raise api_errors.unclassified("resource name may not be empty")
        stored = await self._caches.get(self._classes, self._caches.key(self._classes, "", name))
        try:
            if stored is None:
                raise RuntimeClassConflictError(f'pod rejected: RuntimeClass "{name}" not found')
            of_class = json_work(stored.entry.value)
            changed = await self._workers.run(
                attributes.info.size + of_class, lambda: with_runtime_class(pod, stored.object)
            )
        except RuntimeClassConflictError as error:
            raise api_errors.forbidden(
                attributes.resource, attributes.key.name, str(error)
            ) from None
        return pod if changed is pod else Grown(changed, of_class)

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        """Overhead is that of a class."""
        spec = attributes.new.rest.get("spec") or {}
        if spec.get("overhead") is not None and spec.get("runtimeClassName") is None:
            raise api_errors.forbidden(attributes.resource, attributes.key.name, NO_CLASS)
        return ADMITTED


def with_runtime_class(pod: RawObject, runtime_class: RawObject) -> RawObject:
    """The pod with overhead, node selector and tolerations of its class; an error if it contradicts them."""
    overhead = runtime_class.get("overhead", "podFixed", default={})
    given = pod.get("spec", "overhead")
    if given is not None and read_amounts(given) != read_amounts(overhead):
        raise RuntimeClassConflictError(OTHER_OVERHEAD)
    if overhead:
        pod = pod.with_value(dict(overhead), "spec", "overhead")
    selector = dict(pod.get("spec", "nodeSelector", default={}))
    for key, value in runtime_class.get("scheduling", "nodeSelector", default={}).items():
        if selector.setdefault(key, value) != value:
            raise RuntimeClassConflictError(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value};"
                f" pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if selector:
        pod = pod.with_value(selector, "spec", "nodeSelector")
    tolerations = list(pod.get("spec", "tolerations", default=[]))
    wanted = runtime_class.get("scheduling", "tolerations", default=[])
    present = set(map(identity, tolerations))
    more = [toleration for toleration in wanted if identity(toleration) not in present]
    return pod.with_value([*tolerations, *more], "spec", "tolerations") if more else pod
