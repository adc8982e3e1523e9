"""A cluster at one moment, with all that decides how its pods are scheduled. Every question is asked about one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from allot.api.core import Node
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.features import DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.static_scheduler import DEVICE_KINDS, VOLUME_KINDS, WORKLOAD_KINDS

KINDS: Final[tuple[Resource[Any], ...]] = (
    *DEVICE_KINDS,
    *VOLUME_KINDS,
    *WORKLOAD_KINDS,
    resources.DEPLOYMENTS,
    resources.DAEMON_SETS,
    resources.JOBS,
    resources.POD_DISRUPTION_BUDGETS,
    resources.PRIORITY_CLASSES,
    resources.RESOURCE_QUOTAS,
)
"""All that questions read of a cluster; list is the only verb that is needed."""

DECISIVE: Final[tuple[Resource[Any], ...]] = (
    resources.PODS,
    resources.NODES,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
)
"""Without these no answer would be true."""
_OPTIONAL: Final = frozenset({resources.DEVICE_TAINT_RULES})
"""Not served by most clusters; no note if missing."""

INFERRED_CAPACITY: Final = {
    "cpu": "1024",
    "memory": "64Ti",
    "ephemeral-storage": "64Ti",
    "pods": "10000",
}
"""The resources of nodes that only ResourceSlices name."""
INFERRED_NODES: Final = (
    "no Node is given: nodes are inferred from ResourceSlices, with ample CPU and memory"
)
_ANY_NODE: Final = "any-node"


class UnreadableError(Exception):
    """Objects that decide the answer may not be read."""


@dataclass(frozen=True)
class ObservedCluster:
    """Objects, feature gates, rules and the scheduler's configuration."""

    objects: Snapshot
    gates: FeatureGates = DEFAULTS
    rules: RuleSet = RuleSet.SEEDS
    configuration: SchedulerConfiguration = field(default_factory=SchedulerConfiguration)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    notes: tuple[str, ...] = ()
    """What the answers assume, and what could not be read."""

    def checked(self) -> ObservedCluster:
        """With notes about what could not be read; `UnreadableError` if that decides all answers."""
        unread = self.objects.unread
        hidden = [each.plural for each in DECISIVE if each in unread and not self.objects.of(each)]
        if hidden:
            raise UnreadableError(
                f"{', '.join(hidden)} could not be read;"
                " a role that lets you list them is needed: "
                f"{unread[next(each for each in DECISIVE if each.plural == hidden[0])]}"
            )
        return self.with_notes_on_unread()

    def with_notes_on_unread(self) -> ObservedCluster:
        """With a note for each kind that could not be read."""
        notes = tuple(
            f"{resource.plural} could not be read: {why}"
            for resource, why in self.objects.unread.items()
            if resource not in _OPTIONAL
        )
        return replace(self, notes=(*self.notes, *notes))

    def with_inferred_nodes(self) -> ObservedCluster:
        """With a node for each name in ResourceSlices if no Node is known, as in files about devices only."""
        if self.objects.of(resources.NODES):
            return self
        objects = self.objects.copy()
        for node in inferred_nodes(objects.of(resources.RESOURCE_SLICES)):
            objects.put(resources.NODES, node)
        return replace(self, objects=objects, notes=(*self.notes, INFERRED_NODES))


def inferred_nodes(slices: Iterable[ResourceSlice]) -> Iterator[Node]:
    """The nodes that slices name, or one node for slices of all nodes."""
    names: dict[str, None] = {}
    for slice_ in slices:
        spec = slice_.spec
        names.update(
            (name, None)
            for name in (spec.node_name, *(each.node_name for each in spec.devices or ()))
            if name
        )
    for name in sorted(names) or (_ANY_NODE,):
        yield Node(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "uid": f"Node/{name}",
                    "labels": {"kubernetes.io/hostname": name},
                },
                "status": {"capacity": INFERRED_CAPACITY, "allocatable": INFERRED_CAPACITY},
            }
        )
