"""The states of one container: waiting, running, terminated, and restarts.

    waiting ──► running ──► terminated ──► waiting (CrashLoopBackOff) ──► running
                                  │ first time, or not to be restarted        ▲
                                  └────────────────────────────────────────────┘

Each step follows one arrow. The state of a container is read from its status alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from allot.api.times import read_time, written_time
from allot.kubelet.container_behaviour import ContainerBehaviour
from allot.kubelet.settings import RestartBackoff

ALWAYS: Final = "Always"
ON_FAILURE: Final = "OnFailure"
NEVER: Final = "Never"
CRASH_LOOP: Final = "CrashLoopBackOff"
STOPPED_CODE: Final = 143
"""The exit code of a process that ends on SIGTERM."""
KILLED_CODE: Final = 137
"""The exit code of a process that is killed by SIGKILL."""

Status = dict[str, Any]


class ContainerPlan(NamedTuple):
    """A container in the pod's spec."""

    name: str
    image: str
    restart_policy: str
    is_init: bool = False

    @property
    def is_sidecar(self) -> bool:
        return self.is_init and self.restart_policy == ALWAYS

    def restarts_after(self, exit_code: int) -> bool:
        return self.restart_policy == ALWAYS or (
            self.restart_policy == ON_FAILURE and exit_code != 0
        )


class ContainerContext(NamedTuple):
    """The inputs of a step besides the container."""

    pod_uid: str
    behaviour: ContainerBehaviour
    backoff: RestartBackoff
    now: datetime


class Step(NamedTuple):
    """The status after a step, and when the next one is due, if that depends on time alone."""

    status: Status
    wake_at: datetime | None = None


# --- reading a status ---


def running(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _part(status, "state", "running")


def terminated(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _part(status, "state", "terminated")


def exit_code(status: Mapping[str, Any]) -> int | None:
    """The exit code; None if it has not terminated."""
    ended = terminated(status)
    return int(ended.get("exitCode", 0)) if ended is not None else None


def has_run(status: Mapping[str, Any]) -> bool:
    return bool(
        running(status) is not None or terminated(status) is not None or status.get("restartCount")
    )


def is_finished(plan: ContainerPlan, status: Mapping[str, Any]) -> bool:
    """Whether it has terminated and is not restarted."""
    code = exit_code(status)
    return code is not None and not plan.restarts_after(code)


def _part(status: Mapping[str, Any], *path: str) -> Mapping[str, Any] | None:
    value: Any = status
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None


# --- statuses ---


def waiting_status(
    plan: ContainerPlan, before: Mapping[str, Any] | None, reason: str, message: str = ""
) -> Status:
    """It has not run yet."""
    waiting = {"reason": reason, "message": message} if message else {"reason": reason}
    state = {"waiting": waiting}
    return {**_fresh(plan), **(before or {}), "ready": False, "started": False, "state": state}


def start(
    plan: ContainerPlan, before: Mapping[str, Any] | None, context: ContainerContext
) -> Status:
    """It runs; or it has terminated already, if it runs for 0 seconds."""
    status = {**_fresh(plan), **(before or {})}
    ended = terminated(status) or _last_run(status)
    restarts = int(status["restartCount"])
    if ended is not None:
        restarts += 1
        status["lastState"] = {"terminated": dict(ended)}
    status |= {
        "restartCount": restarts,
        "imageID": plan.image,
        "containerID": _container_id(context.pod_uid, plan.name, restarts),
        "state": {"running": {"startedAt": written_time(context.now)}},
        "ready": context.behaviour.ready_seconds(plan.name) == 0,
        "started": True,
    }
    if _run_seconds(plan, context.behaviour) == 0:
        return _ended(plan, status, context)
    return status


def _fresh(plan: ContainerPlan) -> Status:
    return {
        "name": plan.name,
        "image": plan.image,
        "imageID": "",
        "restartCount": 0,
        "lastState": {},
    }


def _run_seconds(plan: ContainerPlan, behaviour: ContainerBehaviour) -> float | None:
    """The pod's run time does not apply to sidecars."""
    if plan.is_sidecar:
        return behaviour.run_seconds_by_container.get(plan.name)
    return behaviour.run_seconds(plan.name, is_init=plan.is_init)


def stop(status: Mapping[str, Any], now: datetime, code: int) -> Status:
    """Terminate it, if it runs. One that never ran is unchanged."""
    runs = running(status)
    return _terminated(status, runs, code, now) if runs is not None else dict(status)


def _terminated(
    status: Mapping[str, Any], runs: Mapping[str, Any], code: int, now: datetime
) -> Status:
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": runs.get("startedAt"),
        "finishedAt": written_time(now),
        "containerID": status.get("containerID", ""),
    }
    return {**status, "ready": False, "started": False, "state": {"terminated": ended}}


def _ended(plan: ContainerPlan, status: Status, context: ContainerContext) -> Status:
    runs = running(status)
    assert runs is not None
    run = int(status["restartCount"])
    code = context.behaviour.exit_code(plan.name, run, is_init=plan.is_init)
    ended = _terminated(status, runs, code, context.now)
    # An init container is ready when it has succeeded.
    return ended | {"ready": plan.is_init and not plan.is_sidecar and code == 0}


def _last_run(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _part(status, "lastState", "terminated")


def _container_id(uid: str, name: str, restarts: int) -> str:
    digest = hashlib.sha256(f"{uid}/{name}/{restarts}".encode()).hexdigest()
    return f"simulated://{digest}"


# --- steps of a started container ---


def step(plan: ContainerPlan, status: Mapping[str, Any], context: ContainerContext) -> Step:
    """The next step of a container that was started."""
    runs = running(status)
    if runs is not None:
        return _step_running(plan, dict(status), runs, context)
    ended = terminated(status)
    if ended is not None and not plan.restarts_after(int(ended.get("exitCode", 0))):
        return Step(dict(status))
    return _step_ended(plan, dict(status), ended or _last_run(status), context)


def _step_running(
    plan: ContainerPlan, status: Status, runs: Mapping[str, Any], context: ContainerContext
) -> Step:
    began = read_time(runs.get("startedAt")) or context.now
    seconds = _run_seconds(plan, context.behaviour)
    ends = _later(began, seconds) if seconds is not None else None
    if ends is not None and ends <= context.now:
        return Step(_ended(plan, status, context))
    ready_at = _later(began, context.behaviour.ready_seconds(plan.name))
    if ready_at is None or ready_at > context.now:
        wake = min((at for at in (ready_at, ends) if at is not None), default=None)
        return Step(status | {"ready": False, "started": True}, wake)
    return Step(status | {"ready": True, "started": True}, ends)


def _step_ended(
    plan: ContainerPlan, status: Status, ended: Mapping[str, Any] | None, context: ContainerContext
) -> Step:
    if ended is None:
        return Step(start(plan, status, context))
    finished = read_time(ended.get("finishedAt")) or context.now
    ran = (finished - (read_time(ended.get("startedAt")) or finished)).total_seconds()
    wait = context.backoff.seconds(int(status.get("restartCount", 0)), ran)
    due = _later(finished, wait)
    if due is not None and due <= context.now:
        return Step(start(plan, status, context))
    if terminated(status) is not None:
        message = f"back-off {wait:g}s restarting failed container={plan.name}"
        status |= {
            "state": {"waiting": {"reason": CRASH_LOOP, "message": message}},
            "lastState": {"terminated": dict(ended)},
        }
    return Step(status, due)


def _later(moment: datetime, seconds: float) -> datetime | None:
    """The time `seconds` later; None if it is beyond the calendar."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None
