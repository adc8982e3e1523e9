"""Groups of pods: those of one Service, ReplicaSet, StatefulSet or ReplicationController."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.selectors import (
    LabelSelector,
    Requirement,
    label_selector,
    labels_selector,
)
from allot.scheduler.state.pods import PodInfo

WORKLOAD_KINDS: Final = ("ReplicaSet", "StatefulSet", "ReplicationController")


class WorkloadSelectors:
    """The selectors of services and workloads, for default topology spread constraints."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, LabelSelector]] = {}
        self._workloads: dict[tuple[str, str, str], LabelSelector] = {}

    def set_service(self, namespace: str, name: str, data: Mapping[str, Any]) -> None:
        """Add or update a Service; one without a selector is ignored."""
        selector = (data.get("spec") or {}).get("selector")
        if selector:
            self._services.setdefault(namespace, {})[name] = labels_selector(selector)
        else:
            self.remove_service(namespace, name)

    def remove_service(self, namespace: str, name: str) -> None:
        self._services.get(namespace, {}).pop(name, None)

    def set_workload(self, kind: str, namespace: str, name: str, data: Mapping[str, Any]) -> None:
        """Add or update a ReplicaSet, StatefulSet or ReplicationController."""
        raw = (data.get("spec") or {}).get("selector")
        plain = kind == "ReplicationController"
        selector = labels_selector(raw or {}) if plain else label_selector(raw)
        if selector is not None and selector.requirements:
            self._workloads[kind, namespace, name] = selector
        else:
            self.remove_workload(kind, namespace, name)

    def remove_workload(self, kind: str, namespace: str, name: str) -> None:
        self._workloads.pop((kind, namespace, name), None)

    def selector_of(self, pod: PodInfo) -> LabelSelector | None:
        """The selector of all services and of the workload of a pod; None if it has neither."""
        requirements: list[Requirement] = []
        for selector in self._services.get(pod.namespace, {}).values():
            if selector.matches(pod.labels):
                requirements += [one for one in selector.requirements if one not in requirements]
        if self._workloads:
            requirements += self._requirements_of_owner(pod)
        return LabelSelector(tuple(requirements)) if requirements else None

    def _requirements_of_owner(self, pod: PodInfo) -> tuple[Requirement, ...]:
        meta = pod.pod.data.get("metadata") or {}
        for owner in meta.get("ownerReferences") or ():
            if owner.get("controller"):
                key = (owner.get("kind", ""), pod.namespace, owner.get("name", ""))
                selector = self._workloads.get(key)
                return selector.requirements if selector else ()
        return ()
