"""The lifecycle of a pod on its node: the status to write, and whether it can be removed.

    Pending ──► Running ──► Succeeded, Failed
       │           │              ▲
       └───────────┴── deleted: stopped, and then removed

`decide` is a function of the pod and the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.times import read_time, written_time
from allot.kubelet import containers
from allot.kubelet.container_behaviour import ContainerBehaviour, container_behaviour
from allot.kubelet.containers import ContainerContext, ContainerPlan, Status
from allot.kubelet.pod_conditions import (
    CAN_START,
    FAILED,
    SUCCEEDED,
    PodProgress,
    conditions_after,
    unmet_gates,
)
from allot.kubelet.settings import KubeletSettings

PENDING: Final = "Pending"
RUNNING: Final = "Running"
CREATE_ERROR: Final = "CreateContainerError"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
DEFAULT_GRACE_SECONDS: Final = 30


class PodAddresses(NamedTuple):
    """The addresses in the pod's status."""

    host_ip: str
    pod_ip: str


class ContainerObstacle(NamedTuple):
    """Why a container cannot be created."""

    container: str
    message: str


class PodDecision(NamedTuple):
    """What to do with a pod now, and when to decide again."""

    status: Status | None = None
    """The status to write; None: unchanged."""
    is_gone: bool = False
    """Whether it has stopped and can be deleted."""
    wake_seconds: float | None = None

    @property
    def ends_pod(self) -> bool:
        """Whether no container runs any more, for good."""
        return self.is_gone or (
            self.status is not None and self.status.get("phase") in (SUCCEEDED, FAILED)
        )


NOTHING: Final = PodDecision()


def has_begun(pod: Pod) -> bool:
    """Whether the pod was started: its claims have been checked then."""
    if pod.has_condition(CAN_START):
        return True
    status = pod.get("status", default={})
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            if containers.has_run(container):
                return True
    return False


def decide(
    pod: Pod,
    place: PodAddresses,
    settings: KubeletSettings,
    now: datetime,
    *,
    may_start: bool,
    obstacle: ContainerObstacle | None = None,
) -> PodDecision:
    """`may_start`: whether the pod's claims are prepared for it; only relevant before the start, as is `obstacle`."""
    is_deleted = pod.metadata.deletion_timestamp is not None
    if pod.is_finished:
        is_gone = is_deleted and pod.metadata.deletion_grace_period_seconds != 0
        return PodDecision(is_gone=is_gone)
    behaviour = container_behaviour(pod, settings)
    course = _Course(pod, place, behaviour, settings, now)
    if is_deleted:
        stops_at, code = _stop(pod, behaviour, now)
        if stops_at <= now or not has_begun(pod):
            return course.stopped(code)
        course.wake(stops_at)
    deadline = course.deadline()
    if deadline is not None:
        if deadline <= now:
            return course.stopped(containers.KILLED_CODE, DEADLINE_EXCEEDED)
        course.wake(deadline)
    if not has_begun(pod):
        if not may_start or obstacle is not None:
            return course.waiting(obstacle)
        starts_at = course.started_at + timedelta(seconds=behaviour.start_seconds)
        if starts_at > now:
            course.wake(starts_at)
            return course.waiting()
    return course.advanced()


def _stop(pod: Pod, behaviour: ContainerBehaviour, now: datetime) -> tuple[datetime, int]:
    """When a deleted pod stops, and the exit code of its containers."""
    if not behaviour.stop_seconds:
        return now, containers.STOPPED_CODE  # independent of the server's clock
    grace = pod.metadata.deletion_grace_period_seconds
    grace = DEFAULT_GRACE_SECONDS if grace is None else grace
    ends = pod.metadata.deletion_timestamp or now
    if behaviour.stop_seconds > grace:
        return ends, containers.KILLED_CODE
    return ends - timedelta(seconds=grace - behaviour.stop_seconds), containers.STOPPED_CODE


class _Course:
    """One decision, step by step."""

    def __init__(
        self,
        pod: Pod,
        place: PodAddresses,
        behaviour: ContainerBehaviour,
        settings: KubeletSettings,
        now: datetime,
    ) -> None:
        self._pod = pod
        self._place = place
        self._now = now
        self._context = ContainerContext(pod.metadata.uid, behaviour, settings.backoff, now)
        self._before: Mapping[str, Any] = pod.get("status", default={})
        policy = pod.get("spec", "restartPolicy", default=containers.ALWAYS)
        if behaviour.completes:
            policy = containers.NEVER
        self._init = tuple(
            # An init container is not restarted after it has succeeded.
            _plan(spec, containers.ON_FAILURE if policy == containers.ALWAYS else policy, True)
            for spec in pod.get("spec", "initContainers", default=())
        )
        self._main = tuple(
            _plan(spec, policy) for spec in pod.get("spec", "containers", default=())
        )
        self._ephemeral = tuple(
            _plan(spec, containers.NEVER)
            for spec in pod.get("spec", "ephemeralContainers", default=())
        )
        self._wake_at: datetime | None = None

    @property
    def started_at(self) -> datetime:
        """`status.startTime`."""
        return read_time(self._before.get("startTime")) or self._now

    def deadline(self) -> datetime | None:
        seconds = self._pod.get("spec", "activeDeadlineSeconds")
        if not isinstance(seconds, int) or "startTime" not in self._before:
            return None
        return self.started_at + timedelta(seconds=min(seconds, 10**9))

    def wake(self, at: datetime | None) -> None:
        if at is not None and (self._wake_at is None or at < self._wake_at):
            self._wake_at = at

    # --- outcomes ---

    def waiting(self, obstacle: ContainerObstacle | None = None) -> PodDecision:
        """No container has been started."""
        init = self._waiting(self._init, "initContainerStatuses", "PodInitializing", obstacle)
        reason = "PodInitializing" if self._init else "ContainerCreating"
        main = self._waiting(self._main, "containerStatuses", reason, obstacle)
        return self._decision(PENDING, init, main, has_sandbox=False)

    def stopped(self, code: int, reason: str = "") -> PodDecision:
        """All running containers are terminated. Unfinished containers count as failed."""
        ended = {
            field: [
                containers.stop(status, self._now, code)
                for status in self._statuses(field, plans).values()
            ]
            for field, plans in (
                ("initContainerStatuses", self._init),
                ("containerStatuses", self._main),
            )
        }
        main = ended["containerStatuses"]
        codes = [containers.exit_code(status) for status in main]
        succeeded = not reason and len(main) == len(self._main) and all(code == 0 for code in codes)
        phase = SUCCEEDED if succeeded else FAILED
        extra = {"reason": reason, "message": "The pod ran longer than it may."} if reason else {}
        return self._decision(
            phase, ended["initContainerStatuses"], main, has_sandbox=False, extra=extra
        )

    def advanced(self) -> PodDecision:
        """Every container takes the step that is due."""
        init, is_initialized, has_failed = self._advance_init()
        if has_failed:
            main = self._waiting(self._main, "containerStatuses", "PodInitializing")
            return self._decision(FAILED, init, main, has_sandbox=False)
        if not is_initialized:
            main = self._waiting(self._main, "containerStatuses", "PodInitializing")
            return self._decision(PENDING, init, main, has_sandbox=True)
        main = self._advance(self._main, "containerStatuses")
        if all(map(containers.is_finished, self._main, main)):
            phase = FAILED if any(containers.exit_code(status) for status in main) else SUCCEEDED
            self._wake_at = None
            init = [containers.stop(status, self._now, containers.STOPPED_CODE) for status in init]
            return self._decision(phase, init, main, has_sandbox=False)
        return self._decision(RUNNING, init, main, has_sandbox=True)

    # --- containers ---

    def _statuses(self, field: str, plans: Iterable[ContainerPlan]) -> dict[str, Status]:
        """The statuses of these containers, in the order of the spec."""
        known = {status.get("name"): status for status in self._before.get(field) or ()}
        return {plan.name: known[plan.name] for plan in plans if plan.name in known}

    def _waiting(
        self,
        plans: Iterable[ContainerPlan],
        field: str,
        reason: str,
        obstacle: ContainerObstacle | None = None,
    ) -> list[Status]:
        known = self._statuses(field, plans)
        return [
            containers.waiting_status(
                plan,
                known.get(plan.name),
                *(
                    (CREATE_ERROR, obstacle.message)
                    if obstacle is not None and obstacle.container == plan.name
                    else (reason,)
                ),
            )
            for plan in plans
        ]

    def _advance(self, plans: Iterable[ContainerPlan], field: str) -> list[Status]:
        known = self._statuses(field, plans)
        return [self._advance_one(plan, known.get(plan.name)) for plan in plans]

    def _advance_one(self, plan: ContainerPlan, status: Status | None) -> Status:
        if status is None or not containers.has_run(status):
            status = containers.start(plan, status, self._context)
            if containers.running(status) is None:
                return status  # the next step follows after this one is written
        after, wake_at = containers.step(plan, status, self._context)
        self.wake(wake_at)
        return after

    def _advance_init(self) -> tuple[list[Status], bool, bool]:
        """In order. Their statuses; whether all have completed; whether one has failed without a restart."""
        known = self._statuses("initContainerStatuses", self._init)
        statuses, is_waiting, has_failed = [], False, False
        for plan in self._init:
            before = known.get(plan.name)
            if is_waiting:
                statuses.append(containers.waiting_status(plan, before, "PodInitializing"))
                continue
            status = self._advance_one(plan, before)
            statuses.append(status)
            if plan.is_sidecar:
                is_waiting = not containers.has_run(status)
            else:
                is_waiting = containers.exit_code(status) != 0
                has_failed = is_waiting and containers.is_finished(plan, status)
        return statuses, not is_waiting, has_failed

    # --- the status ---

    def _decision(
        self,
        phase: str,
        init: list[Status],
        main: list[Status],
        *,
        has_sandbox: bool,
        extra: Mapping[str, Any] | None = None,
    ) -> PodDecision:
        status = dict(self._before)
        status |= {"phase": phase, **(extra or {})}
        status.setdefault("startTime", written_time(self._now))
        status |= {"hostIP": self._place.host_ip, "hostIPs": [{"ip": self._place.host_ip}]}
        if has_sandbox or any(map(containers.has_run, main)):
            status.setdefault("podIP", self._place.pod_ip)
            status.setdefault("podIPs", [{"ip": status["podIP"]}])
        if init:
            status["initContainerStatuses"] = init
        if main:
            status["containerStatuses"] = main
        if self._ephemeral and has_sandbox:
            status["ephemeralContainerStatuses"] = self._advance(
                self._ephemeral, "ephemeralContainerStatuses"
            )
        generation = self._pod.metadata.generation
        if generation:
            status["observedGeneration"] = generation
        conditions = self._before.get("conditions") or ()
        progress = PodProgress(
            phase,
            has_sandbox,
            self._uninitialized(init),
            tuple(container["name"] for container in (*init, *main) if self._is_unready(container)),
            unmet_gates(self._pod.get("spec", "readinessGates", default=()), conditions),
        )
        status["conditions"] = conditions_after(
            conditions, progress, generation, written_time(self._now)
        )
        wake = None
        if self._wake_at is not None:
            wake = max((self._wake_at - self._now).total_seconds(), 0.0)
        return PodDecision(status if status != self._before else None, wake_seconds=wake)

    def _uninitialized(self, init: Iterable[Status]) -> tuple[str, ...]:
        sidecars = {plan.name for plan in self._init if plan.is_sidecar}
        return tuple(
            status["name"]
            for status in init
            if not (
                containers.has_run(status)
                if status["name"] in sidecars
                else containers.exit_code(status) == 0
            )
        )

    def _is_unready(self, status: Status) -> bool:
        """Init containers other than sidecars need not be ready."""
        plan = next((plan for plan in self._init if plan.name == status["name"]), None)
        return not status.get("ready") and (plan is None or plan.is_sidecar)


def _plan(spec: Mapping[str, Any], policy: str, is_init: bool = False) -> ContainerPlan:
    return ContainerPlan(
        str(spec.get("name", "")),
        str(spec.get("image", "")),
        spec.get("restartPolicy") or policy,
        is_init,
    )
