"""The metrics of all simulated kubelets, under Kubernetes' names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter

from allot.api.core import Pod
from allot.kubelet.containers import has_run

_TYPE_BY_FIELD: Final = {
    "containerStatuses": "container",
    "initContainerStatuses": "init_container",
    "ephemeralContainerStatuses": "ephemeral_container",
}
_TYPE_BY_SPEC: Final = {"initContainers": "init_container", "containers": "container"}


class KubeletMetrics:
    """Started containers and pods, and errors."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        by_type = ("container_type",)
        self._started = Counter(
            "kubelet_started_containers",
            "Containers that were started, by type; again whenever they are restarted.",
            by_type,
            registry=registry,
        )
        self._errors = Counter(
            "kubelet_started_containers_errors",
            "Containers that could not be started, by type and reason; again at each attempt.",
            (*by_type, "code"),
            registry=registry,
        )
        self._pods = Counter(
            "kubelet_started_pods", "Pods of which something was started.", registry=registry
        )
        self._pod_errors = Counter(
            "kubelet_started_pods_errors",
            "Attempts to start a pod that failed.",
            registry=registry,
        )

    def status_written(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """A pod's status was written: count started containers."""
        began = False
        for container_type in _started_containers(before, after):
            self._started.labels(container_type).inc()
            began = True
        if began and not any(map(has_run, _containers(before))):
            self._pods.inc()

    def could_not_start(self, pod: Pod, code: str) -> None:
        """The pod, and with it at least its first container, could not be started."""
        self._pod_errors.inc()
        for field, container_type in _TYPE_BY_SPEC.items():
            containers = pod.get("spec", field, default=())
            if containers:
                self._errors.labels(container_type, code).inc(len(containers))
                return


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for field in _TYPE_BY_FIELD:
        yield from status.get(field) or ()


def _started_containers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for field, container_type in _TYPE_BY_FIELD.items():
        known = {one.get("name"): one for one in before.get(field) or ()}
        for container in after.get(field) or ():
            old = known.get(container.get("name"), {})
            if has_run(container) and (
                not has_run(old)
                or (container.get("restartCount") or 0) > (old.get("restartCount") or 0)
            ):
                yield container_type
