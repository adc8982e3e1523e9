"""The conditions of a pod that the kubelet owns. All other conditions stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

SCHEDULED: Final = "PodScheduled"
CAN_START: Final = "PodReadyToStartContainers"
INITIALIZED: Final = "Initialized"
CONTAINERS_READY: Final = "ContainersReady"
READY: Final = "Ready"

SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


class PodProgress(NamedTuple):
    """The progress of a pod, from which its conditions follow."""

    phase: str
    has_sandbox: bool
    uninitialized: tuple[str, ...] = ()
    """Init containers that have not completed."""
    unready: tuple[str, ...] = ()
    """Containers that are not ready."""
    unmet_gates: tuple[str, ...] = ()
    """Readiness gates of the pod that are not true."""


class _PodCondition(NamedTuple):
    type: str
    status: str
    reason: str = ""
    message: str = ""


def conditions_after(
    before: Sequence[Mapping[str, Any]], progress: PodProgress, generation: int, now: str
) -> list[dict[str, Any]]:
    """All conditions of the pod. Unchanged ones keep their times."""
    found = {condition.get("type", ""): dict(condition) for condition in before}
    for entry in _pod_conditions(progress):
        known = found.get(entry.type)
        condition = _condition(entry, generation)
        if known is not None and _compared(known) == _compared(condition):
            continue
        same_status = known is not None and known.get("status") == entry.status
        since = known.get("lastTransitionTime") if known is not None and same_status else None
        found[entry.type] = condition | {"lastTransitionTime": since or now}
    return list(found.values())


def unmet_gates(
    gates: Iterable[Mapping[str, Any]], conditions: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    true = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    wanted = (str(gate.get("conditionType", "")) for gate in gates)
    return tuple(gate for gate in wanted if gate not in true)


def _pod_conditions(progress: PodProgress) -> tuple[_PodCondition, ...]:
    return (
        _PodCondition(CAN_START, _status(progress.has_sandbox)),
        _initialized(progress),
        _ready(progress),
        _containers_ready(progress),
        _PodCondition(SCHEDULED, "True"),
    )


def _initialized(progress: PodProgress) -> _PodCondition:
    if progress.phase == SUCCEEDED:
        return _PodCondition(INITIALIZED, "True", "PodCompleted")
    if progress.uninitialized:
        message = f"containers with incomplete status: [{' '.join(progress.uninitialized)}]"
        return _PodCondition(INITIALIZED, "False", "ContainersNotInitialized", message)
    return _PodCondition(INITIALIZED, "True")


def _containers_ready(progress: PodProgress) -> _PodCondition:
    if progress.phase == SUCCEEDED:
        return _PodCondition(CONTAINERS_READY, "False", "PodCompleted")
    if progress.phase == FAILED:
        return _PodCondition(CONTAINERS_READY, "False", "PodFailed")
    if progress.unready:
        message = f"containers with unready status: [{' '.join(progress.unready)}]"
        return _PodCondition(CONTAINERS_READY, "False", "ContainersNotReady", message)
    return _PodCondition(CONTAINERS_READY, "True")


def _ready(progress: PodProgress) -> _PodCondition:
    containers = _containers_ready(progress)
    if containers.status == "True" and progress.unmet_gates:
        message = "; ".join(f'"{gate}" is not true' for gate in progress.unmet_gates)
        return _PodCondition(READY, "False", "ReadinessGatesNotReady", message)
    return containers._replace(type=READY)


def _condition(entry: _PodCondition, generation: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": entry.type, "status": entry.status, "lastProbeTime": None}
    if entry.reason:
        condition["reason"] = entry.reason
    if entry.message:
        condition["message"] = entry.message
    if generation:
        condition["observedGeneration"] = generation
    return condition


def _compared(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(
        condition.get(name) or "" for name in ("status", "reason", "message", "observedGeneration")
    )


def _status(is_true: bool) -> str:
    return "True" if is_true else "False"
