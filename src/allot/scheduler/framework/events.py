"""Events in the cluster, and which of them may let a rejected pod fit."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntFlag, auto
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo


class Action(IntFlag):
    """What happened to an object."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURES = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_GATES_ELIMINATED = auto()
    UPDATE_POD_TOLERATIONS = auto()
    UPDATE_POD_CLAIM_STATUSES = auto()
    UPDATE_OTHER = auto()

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURES
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_GATES_ELIMINATED
        | UPDATE_POD_TOLERATIONS
        | UPDATE_POD_CLAIM_STATUSES
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


# The objects that events are about. A pod is two things here: one that holds a place, and the one
# that waits (then the event is about the waiting pod itself).
ASSIGNED_POD: Final = "AssignedPod"
WAITING_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
NAMESPACE: Final = "Namespace"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
STORAGE_CLASS: Final = "StorageClass"
CSI_NODE: Final = "CSINode"
CSI_DRIVER: Final = "CSIDriver"
CSI_STORAGE_CAPACITY: Final = "CSIStorageCapacity"
VOLUME_ATTACHMENT: Final = "VolumeAttachment"
RESOURCE_CLAIM: Final = "ResourceClaim"
RESOURCE_SLICE: Final = "ResourceSlice"
DEVICE_CLASS: Final = "DeviceClass"


class ClusterEvent(NamedTuple):
    """A kind of object and what happened to it. As a registration: any of these actions."""

    resource: str
    actions: Action

    def covers(self, event: ClusterEvent) -> bool:
        return self.resource == event.resource and bool(self.actions & event.actions)


class Hint(Enum):
    """Whether an event is worth another attempt."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


QueueingHint = Callable[[PodInfo, Any, Any], Hint]
"""`hint(pod, old, new)` for a waiting pod and the object before (None: added) and after (None:
deleted). Pods come as `PodInfo`, nodes as `NodeFacts`, everything else as the informer's object."""


class EventRegistration(NamedTuple):
    """An event that concerns a plugin. Without a hint every such event is worth an attempt."""

    event: ClusterEvent
    hint: QueueingHint | None = None
    helps_only_referencing_pods: Callable[[Any, Any], bool] | None = None
    """Of the object before and after: whether it can help only pods that name this object.

    Saves asking the hint about all others.
    """


def node_update_actions(old: NodeFacts, new: NodeFacts) -> Action:
    """What changed between two versions of a node, as far as plugins care."""
    changed = Action(0)
    if old.allocatable != new.allocatable or old.max_pods != new.max_pods:
        changed |= Action.UPDATE_NODE_ALLOCATABLE
    if old.labels != new.labels:
        changed |= Action.UPDATE_NODE_LABEL
    if old.taints != new.taints or old.is_unschedulable != new.is_unschedulable:
        changed |= Action.UPDATE_NODE_TAINT
    if old.condition_statuses != new.condition_statuses:
        changed |= Action.UPDATE_NODE_CONDITION
    if old.annotations != new.annotations:
        changed |= Action.UPDATE_NODE_ANNOTATION
    if old.declared_features != new.declared_features:
        changed |= Action.UPDATE_NODE_DECLARED_FEATURES
    return changed


def pod_update_actions(old: PodInfo, new: PodInfo) -> Action:
    """What changed between two versions of a pod. `UPDATE_OTHER` if nothing that has a name did."""
    changed: list[Action] = []
    # Of a version with the same spec, everything but the status is the same object.
    if old.labels is not new.labels and old.labels != new.labels:
        changed.append(Action.UPDATE_POD_LABEL)
    if old.requests is not new.requests and old.requests.exceeds(new.requests):
        changed.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.scheduling_gates and not new.scheduling_gates:
        changed.append(Action.UPDATE_POD_GATES_ELIMINATED)
    if old.tolerations is not new.tolerations and old.tolerations != new.tolerations:
        changed.append(Action.UPDATE_POD_TOLERATIONS)
    if old.claim_statuses != new.claim_statuses:
        changed.append(Action.UPDATE_POD_CLAIM_STATUSES)
    if not changed:
        return Action.UPDATE_OTHER
    return changed[0] if len(changed) == 1 else reduce(or_, changed)
