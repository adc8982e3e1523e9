"""The row of a pod. Its status is one word for what all its containers do.

    reason or phase ──▶ waiting for a gate ──▶ init containers ──▶ containers ──▶ being deleted

Each step overrides the ones before it if it has something to say.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.amounts import is_sidecar
from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import or_none

Part = dict[str, Any]


class Summary(NamedTuple):
    """What containers come down to. `word` is empty if they have nothing to say."""

    word: str = ""
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None


def _row(pod: RawObject, age: Age) -> list[Cell]:
    initial, sidecars, initializing = _init_summary(pod)
    word = initial.word or _state_before_containers(pod)
    summary = initial
    if not initializing or pod.has_condition("Initialized"):
        summary = _container_summary(pod, word, sidecars)
        word = summary.word or word
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts += f" ({age(summary.last_restart)} ago)"
    total = len(pod.get("spec", "containers", default=[])) + len(_sidecar_names(pod))
    return [
        pod.metadata.name,
        f"{summary.ready}/{total}",
        _while_deleting(pod, word),
        restarts,
        age(pod.metadata.creation_timestamp),
        or_none(pod.get("status", "podIPs", 0, "ip") or pod.get("status", "podIP")),
        or_none(pod.get("spec", "nodeName")),
        or_none(pod.get("status", "nominatedNodeName")),
        _readiness_gates(pod),
    ]


def _state_before_containers(pod: RawObject) -> str:
    for condition in pod.get("status", "conditions", default=[]):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == _GATED:
            return _GATED
    reason = pod.get("status", "reason") or pod.get("status", "phase")
    return str(reason or "")


_GATED: Final = "SchedulingGated"


def _while_deleting(pod: RawObject, word: str) -> str:
    if pod.metadata.deletion_timestamp is None:
        return word
    if pod.get("status", "reason") == "NodeLost":
        return "Unknown"
    finished = pod.get("status", "phase") in ("Succeeded", "Failed")
    return word if finished else "Terminating"


# --- init containers ---


def _sidecar_names(pod: RawObject) -> set[str]:
    """Init containers that keep running beside the others."""
    return {
        container.get("name", "")
        for container in pod.get("spec", "initContainers", default=[])
        if is_sidecar(container)
    }


def _init_summary(pod: RawObject) -> tuple[Summary, Summary, bool]:
    """What init containers come down to, the sidecars among them, and whether one is not done."""
    names = _sidecar_names(pod)
    every, sidecars = Summary(), Summary()
    for index, status in enumerate(pod.get("status", "initContainerStatuses", default=[])):
        keeps_running = status.get("name") in names
        every = _with_restarts(every, status)
        if keeps_running:
            sidecars = _with_restarts(sidecars, status)
        terminated = _state(status, "terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if keeps_running and status.get("started"):
            ready = int(bool(status.get("ready")))
            every = every._replace(ready=every.ready + ready)
            sidecars = sidecars._replace(ready=sidecars.ready + ready)
            continue
        return every._replace(word=_init_word(pod, index, status)), sidecars, True
    return every, sidecars, False


def _init_word(pod: RawObject, index: int, status: Part) -> str:
    """`Init:1/2` while all is well, `Init:` and the reason if not."""
    terminated, waiting = _state(status, "terminated"), _state(status, "waiting")
    if terminated is not None:
        return f"Init:{_end(terminated)}"
    reason = (waiting or {}).get("reason")
    if reason and reason != "PodInitializing":
        return f"Init:{reason}"
    return f"Init:{index}/{len(pod.get('spec', 'initContainers', default=[]))}"


# --- containers ---


def _container_summary(pod: RawObject, word: str, sidecars: Summary) -> Summary:
    """Of several containers with something to say, the first one says it."""
    summary, is_running = sidecars, False
    for status in reversed(pod.get("status", "containerStatuses", default=[])):
        summary = _with_restarts(summary, status)
        terminated, waiting = _state(status, "terminated"), _state(status, "waiting")
        if waiting is not None and waiting.get("reason"):
            word = waiting["reason"]
        elif terminated is not None:
            word = _end(terminated)
        elif status.get("ready") and _state(status, "running") is not None:
            is_running = True
            summary = summary._replace(ready=summary.ready + 1)
    if word == "Completed" and is_running:
        word = "Running" if pod.has_condition("Ready") else "NotReady"
    return summary._replace(word=word)


def _end(terminated: Part) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _state(status: Part, name: str) -> Part | None:
    state = (status.get("state") or {}).get(name)
    return state if isinstance(state, dict) else None


def _with_restarts(summary: Summary, status: Part) -> Summary:
    last = (status.get("lastState") or {}).get("terminated") or {}
    finished = read_time(last.get("finishedAt"))
    before = summary.last_restart
    return summary._replace(
        restarts=summary.restarts + (status.get("restartCount") or 0),
        last_restart=finished if before is None or (finished and finished > before) else before,
    )


def _readiness_gates(pod: RawObject) -> str:
    gates = pod.get("spec", "readinessGates", default=[])
    if not gates:
        return or_none("")
    opened = sum(pod.has_condition(gate.get("conditionType", "")) for gate in gates)
    return f"{opened}/{len(gates)}"


PODS: Final = Table(
    (
        NAME,
        Column("Ready"),
        Column("Status"),
        Column("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    _row,
)
