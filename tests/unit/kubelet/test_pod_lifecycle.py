"""The lifecycle of a pod on a simulated node, step by step and without a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.times import written_time
from allot.backoff import Backoff
from allot.kubelet.pod_lifecycle import PodAddresses, PodDecision, decide
from allot.kubelet.settings import KubeletSettings, RestartBackoff

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = PodAddresses("172.16.0.1", "10.128.0.1")


class Life:
    """A pod, and the time."""

    def __init__(
        self,
        annotations: dict[str, str] | None = None,
        settings: KubeletSettings | None = None,
        **spec: Any,
    ) -> None:
        named = {f"allot.dev/{name}": text for name, text in (annotations or {}).items()}
        self.data: dict[str, Any] = {
            "metadata": {
                "namespace": "default",
                "name": "p",
                "uid": "u1",
                "generation": 1,
                "annotations": named,
            },
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }
        self.settings = settings or KubeletSettings()
        self.now = START
        self.may_start = True

    def look(self) -> PodDecision:
        """Decide once, and write what was decided."""
        pod = Pod(self.data)
        decision = decide(pod, PLACE, self.settings, self.now, may_start=self.may_start)
        if decision.status is not None:
            self.data = pod.with_value(decision.status, "status").data  # type: ignore[assignment]
        return decision

    def settle(self) -> PodDecision:
        """Go on until there is nothing to do at this time."""
        for _ in range(20):
            decision = self.look()
            if decision.status is None:
                return decision
        raise AssertionError("it never settles")

    def after(self, seconds: float) -> PodDecision:
        self.now += timedelta(seconds=seconds)
        return self.settle()

    def delete(self, grace_seconds: int = 30) -> None:
        self.data["metadata"] |= {
            "deletionTimestamp": written_time(self.now + timedelta(seconds=grace_seconds)),
            "deletionGracePeriodSeconds": grace_seconds,
        }

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.data["status"]
        return found

    @property
    def phase(self) -> str:
        return str(self.status["phase"])

    def container(self, name: str = "c") -> dict[str, Any]:
        for field in ("initContainerStatuses", "containerStatuses"):
            for status in self.status.get(field, ()):
                if status["name"] == name:
                    found: dict[str, Any] = status
                    return found
        raise AssertionError(f"no {name}")

    def state(self, name: str = "c") -> str:
        """Such as `running` or `waiting CrashLoopBackOff` or `terminated 1`."""
        ((kind, facts),) = self.container(name)["state"].items()
        return " ".join(
            str(part)
            for part in (kind, facts.get("reason") if kind == "waiting" else facts.get("exitCode"))
            if part is not None
        )

    def condition(self, type_: str) -> tuple[str, str]:
        for condition in self.status["conditions"]:
            if condition["type"] == type_:
                return condition["status"], condition.get("reason", "")
        raise AssertionError(f"no {type_}")


# --- starting ---


def test_a_pod_without_wishes_runs_forever() -> None:
    life = Life()

    decision = life.settle()

    assert life.phase == "Running"
    assert life.state() == "running"
    assert decision == PodDecision()
    status = life.status
    assert (status["podIP"], status["hostIP"]) == (PLACE.pod_ip, PLACE.host_ip)
    assert (status["podIPs"], status["hostIPs"]) == (
        [{"ip": PLACE.pod_ip}],
        [{"ip": PLACE.host_ip}],
    )
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert status["qosClass"] == "BestEffort"
    assert status["observedGeneration"] == 1
    for type_ in (
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodScheduled",
    ):
        assert life.condition(type_) == ("True", "")
    container = life.container()
    assert container["ready"] is True
    assert container["started"] is True
    assert container["restartCount"] == 0


def test_conditions_and_fields_of_others_stay() -> None:
    life = Life()
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "t0", "x": 1}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "R"}
    life.status["conditions"] = [scheduled | {"observedGeneration": 1}, target]
    life.status["resourceClaimStatuses"] = [{"name": "a", "resourceClaimName": "b"}]

    life.settle()

    assert life.status["conditions"][0] == scheduled | {"observedGeneration": 1}
    assert life.status["conditions"][1] == target
    assert life.status["resourceClaimStatuses"] == [{"name": "a", "resourceClaimName": "b"}]


def test_it_waits_for_its_claims() -> None:
    life = Life()
    life.may_start = False

    life.settle()

    assert life.phase == "Pending"
    assert life.state() == "waiting ContainerCreating"
    assert life.condition("PodReadyToStartContainers") == ("False", "")
    assert life.condition("Ready") == ("False", "ContainersNotReady")
    assert "podIP" not in life.status
    life.may_start = True
    life.after(60)
    assert life.phase == "Running"
    assert life.condition("Ready") == ("True", "")
    assert life.status["startTime"] == "2026-01-01T00:00:00Z"


def test_once_it_runs_claims_are_not_asked_for_again() -> None:
    life = Life()
    life.settle()
    life.may_start = False

    assert life.after(1) == PodDecision()


def test_start_and_readiness_take_their_time() -> None:
    life = Life({"start-seconds": "5", "ready-seconds": "3"})

    assert life.settle().wake_seconds == 5
    assert life.phase == "Pending"
    assert life.after(5).wake_seconds == 3
    assert life.phase == "Running"
    assert life.condition("ContainersReady") == ("False", "ContainersNotReady")
    life.after(3)
    assert life.condition("Ready") == ("True", "")


def test_ready_waits_for_readiness_gates() -> None:
    life = Life(readinessGates=[{"conditionType": "example.com/ok"}])
    life.settle()
    assert life.condition("ContainersReady") == ("True", "")
    assert life.condition("Ready") == ("False", "ReadinessGatesNotReady")

    life.status["conditions"].append({"type": "example.com/ok", "status": "True"})
    life.settle()

    assert life.condition("Ready") == ("True", "")


# --- ending ---


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        pytest.param("Never", "0", "Succeeded", id="never-well"),
        pytest.param("Never", "3", "Failed", id="never-badly"),
        pytest.param("OnFailure", "0", "Succeeded", id="on-failure-well"),
        pytest.param("OnFailure", "3", "Running", id="on-failure-badly"),
        pytest.param("Always", "0", "Running", id="always"),
    ],
)
def test_the_end_of_a_run(policy: str, code: str, phase: str) -> None:
    life = Life({"run-seconds": "30", "exit-code": code}, restartPolicy=policy)
    assert life.settle().wake_seconds == 30
    assert life.after(29).wake_seconds == 1

    life.after(1)

    assert life.phase == phase


def test_a_pod_that_succeeded() -> None:
    life = Life({"run-seconds": "0"}, restartPolicy="Never")

    decision = life.settle()

    assert decision == PodDecision()
    assert life.phase == "Succeeded"
    assert life.state() == "terminated 0"
    assert life.container()["state"]["terminated"]["reason"] == "Completed"
    assert life.condition("Ready") == ("False", "PodCompleted")
    assert life.condition("ContainersReady") == ("False", "PodCompleted")
    assert life.condition("Initialized") == ("True", "PodCompleted")
    assert life.condition("PodReadyToStartContainers") == ("False", "")
    assert life.status["podIP"] == PLACE.pod_ip


def test_all_containers_must_end_and_one_failure_is_enough() -> None:
    life = Life(
        {"run-seconds.a": "1", "run-seconds.b": "5", "exit-code.a": "1"},
        restartPolicy="Never",
        containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}],
    )
    life.settle()

    assert life.after(1).wake_seconds == 4
    assert (life.phase, life.state("a"), life.state("b")) == ("Running", "terminated 1", "running")
    life.after(4)
    assert life.phase == "Failed"
    assert life.condition("Ready") == ("False", "PodFailed")


def test_an_annotation_can_end_a_pod_that_runs() -> None:
    life = Life(restartPolicy="Never")
    life.settle()
    life.now += timedelta(hours=1)
    life.data["metadata"]["annotations"] = {"allot.dev/run-seconds": "0"}

    life.settle()

    assert life.phase == "Succeeded"
    ended = life.container()["state"]["terminated"]
    assert (ended["startedAt"], ended["finishedAt"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00Z",
    )


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_pod_that_completes_is_not_run_again(policy: str) -> None:
    life = Life(
        {"done": "true"},
        KubeletSettings(complete_annotation="allot.dev/done"),
        restartPolicy=policy,
    )

    life.settle()

    assert (life.phase, life.container()["restartCount"]) == ("Succeeded", 0)


def test_a_deadline_ends_a_pod() -> None:
    life = Life(activeDeadlineSeconds=10)
    assert life.settle().wake_seconds == 10

    life.after(10)

    assert life.phase == "Failed"
    assert life.status["reason"] == "DeadlineExceeded"
    assert life.state() == "terminated 137"


# --- restarts ---


def test_restarts_come_later_and_later() -> None:
    life = Life({"run-seconds": "1", "exit-code": "1"})
    life.settle()
    waits = []

    for _ in range(8):
        life.after(1)  # the run ends
        if life.state() == "running":
            waits.append(0.0)  # at once
            continue
        assert life.state() == "waiting CrashLoopBackOff"
        wait = life.look().wake_seconds
        assert wait is not None
        waits.append(wait)
        life.after(wait)
        assert life.state() == "running"

    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    assert life.container()["restartCount"] == 8
    assert life.container()["lastState"]["terminated"]["exitCode"] == 1
    assert life.phase == "Running"


def test_a_container_that_ran_long_resets_its_restart_backoff() -> None:
    life = Life({"run-seconds": "600", "exit-code": "1"})
    life.settle()

    for restarts in range(1, 5):
        life.after(600)
        assert (life.state(), life.container()["restartCount"]) == ("running", restarts)


def test_the_second_run_may_be_better() -> None:
    life = Life({"run-seconds": "1", "exit-code": "1,0"}, restartPolicy="OnFailure")
    life.settle()
    life.after(1)
    assert (life.phase, life.container()["restartCount"]) == ("Running", 1)

    life.after(1)

    assert (life.phase, life.container()["restartCount"]) == ("Succeeded", 1)


def test_a_container_has_a_policy_of_its_own() -> None:
    life = Life(
        {"run-seconds": "1", "exit-code": "1"},
        containers=[{"name": "c", "image": "i", "restartPolicy": "Never"}],
    )
    life.settle()

    life.after(1)

    assert (life.phase, life.state()) == ("Failed", "terminated 1")


def test_a_crashing_container_waits_in_crash_loop_back_off() -> None:
    life = Life(
        {"run-seconds": "0", "exit-code": "1"},
        KubeletSettings(backoff=RestartBackoff(Backoff(1.0, 300.0))),
    )

    life.settle()

    assert life.state() == "waiting CrashLoopBackOff"
    assert life.container()["restartCount"] == 1


# --- init containers ---

INIT = [{"name": "first", "image": "i"}, {"name": "second", "image": "i"}]


def test_init_containers_run_one_after_the_other() -> None:
    life = Life({"run-seconds.first": "2", "run-seconds.second": "3"}, initContainers=INIT)

    assert life.settle().wake_seconds == 2
    assert life.phase == "Pending"
    assert life.condition("PodReadyToStartContainers") == ("True", "")
    assert life.condition("Initialized") == ("False", "ContainersNotInitialized")
    assert [life.state(name) for name in ("first", "second", "c")] == [
        "running",
        "waiting PodInitializing",
        "waiting PodInitializing",
    ]
    assert life.after(2).wake_seconds == 3
    assert (life.state("first"), life.state("second")) == ("terminated 0", "running")
    life.after(3)
    assert life.phase == "Running"
    assert life.condition("Initialized") == ("True", "")
    assert life.condition("Ready") == ("True", "")


@pytest.mark.parametrize(
    ("policy", "phase", "state"),
    [("Never", "Failed", "terminated 1"), ("Always", "Pending", "waiting CrashLoopBackOff")],
)
def test_an_init_container_fails(policy: str, phase: str, state: str) -> None:
    life = Life({"exit-code.first": "1"}, initContainers=INIT, restartPolicy=policy)

    life.settle()

    assert (life.phase, life.state("first")) == (phase, state)
    assert life.state("c") == "waiting PodInitializing"


def test_a_sidecar_runs_along_and_ends_with_the_pod() -> None:
    sidecar = {"name": "side", "image": "i", "restartPolicy": "Always"}
    life = Life({"run-seconds": "5"}, initContainers=[sidecar, *INIT], restartPolicy="Never")
    life.settle()
    assert (life.phase, life.state("side"), life.state("c")) == ("Running", "running", "running")

    life.after(5)

    assert life.phase == "Succeeded"
    assert life.state("side") == "terminated 143"


# --- going ---


def test_a_deleted_pod_is_stopped_and_then_removed() -> None:
    life = Life()
    life.settle()
    life.delete()

    stopped = life.look()

    assert stopped.status is not None
    assert (life.phase, life.state()) == ("Failed", "terminated 143")
    assert life.look() == PodDecision(is_gone=True)


def test_a_pod_can_take_its_time_to_stop() -> None:
    life = Life({"stop-seconds": "8"})
    life.settle()
    life.delete()

    assert life.settle().wake_seconds == 8
    assert life.phase == "Running"
    assert life.after(8).is_gone
    assert life.state() == "terminated 143"


def test_a_pod_that_does_not_stop_is_killed_when_its_time_is_over() -> None:
    life = Life({"stop-seconds": "100"})
    life.settle()
    life.delete(grace_seconds=10)

    assert life.settle().wake_seconds == 10
    assert life.after(10).is_gone
    assert life.state() == "terminated 137"


def test_a_pod_that_never_started_goes_at_once() -> None:
    life = Life({"stop-seconds": "8"})
    life.may_start = False
    life.settle()
    life.delete()

    assert life.settle().is_gone
    assert life.phase == "Failed"


def test_what_finalizers_hold_is_not_deleted_again() -> None:
    life = Life()
    life.settle()
    life.delete(grace_seconds=0)

    assert life.settle() == PodDecision()
    assert life.phase == "Failed"


def test_a_finished_pod_that_is_deleted_goes() -> None:
    life = Life({"run-seconds": "0"}, restartPolicy="Never")
    life.settle()
    life.delete()

    assert life.settle() == PodDecision(is_gone=True)
    assert life.phase == "Succeeded"


# --- going on ---


def test_an_ephemeral_container_is_started() -> None:
    life = Life()
    life.settle()
    life.data["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "i"}]

    life.settle()

    (debug,) = life.status["ephemeralContainerStatuses"]
    assert "running" in debug["state"]


def test_a_new_generation_is_observed() -> None:
    life = Life()
    life.settle()
    life.data["metadata"]["generation"] = 2

    assert life.settle() == PodDecision()
    assert life.status["observedGeneration"] == 2
    assert {condition["observedGeneration"] for condition in life.status["conditions"]} == {2}
    since = {condition["lastTransitionTime"] for condition in life.status["conditions"]}
    assert since == {"2026-01-01T00:00:00Z"}
