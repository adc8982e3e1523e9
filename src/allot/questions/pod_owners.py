"""The workloads that pods belong to, as kubectl writes them."""

from __future__ import annotations

from allot.api.core import Pod
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.controllers.workloads.accessors import uid_of
from allot.controllers.workloads.ownership import controller_of


class PodOwners:
    """Finds the workload at the top: of a pod of a ReplicaSet, the Deployment."""

    def __init__(self, objects: Snapshot) -> None:
        self._deployment_by_set: dict[str, str] = {}
        for each in objects.of(resources.REPLICA_SETS):
            controller = controller_of(each)
            if controller is not None and controller.kind == "Deployment":
                name = f"deployment/{each.key.namespace}/{controller.name}"
                self._deployment_by_set[uid_of(each)] = name

    def name_of(self, pod: Pod) -> str:
        """`kind/namespace/name` of the workload, or of the pod itself."""
        controller = controller_of(pod)
        if controller is None:
            return f"pod/{pod.key}"
        known = self._deployment_by_set.get(controller.uid)
        return known or f"{controller.kind.lower()}/{pod.key.namespace}/{controller.name}"
