"""Jobs: what counts, what is made, how they end."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.controllers.workloads.job import status as job_status
from allot.controllers.workloads.job.decision import (
    JobConclusion,
    JobPlan,
    find_conclusion,
    plan_pods,
)
from allot.controllers.workloads.job.failures import (
    FAILURE_BACKOFF,
    INDEX_FAILURE_COUNT,
    PodFailureAction,
    match_pod_failure_policy,
    seconds_to_wait,
)
from allot.controllers.workloads.job.indexes import (
    COMPLETION_INDEX,
    IndexRanges,
    read_indexes,
    written_indexes,
)
from allot.controllers.workloads.job.pods import make_pod
from allot.controllers.workloads.job.spec import read_spec
from allot.controllers.workloads.job.tally import TRACKING, Tally, tally_pods
from tests.unit.controllers.workloads.objects import NOW, a_replica, a_workload, ago


def a_job(**rest: Any) -> RawObject:
    return a_workload("j", kind="Job", **{"backoffLimit": 6, "parallelism": 1, **rest})


def an_indexed_job(completions: int = 4, **rest: Any) -> RawObject:
    return a_job(completionMode="Indexed", completions=completions, **rest)


def tracked(name: str, phase: str = "Running", *, index: int | None = None, **rest: Any) -> Pod:
    annotations = rest.pop("annotations", {})
    if index is not None:
        annotations = {COMPLETION_INDEX: str(index), **annotations}
    return a_replica(name, phase=phase, finalizers=(TRACKING,), annotations=annotations, **rest)


def stock(job: RawObject, *pods: Pod) -> Tally:
    return tally_pods(job, read_spec(job), pods)


def conclusion(job: RawObject, *pods: Pod) -> JobConclusion | None:
    return find_conclusion(job, read_spec(job), stock(job, *pods), NOW)


def reason(job: RawObject, *pods: Pod) -> str | None:
    found = conclusion(job, *pods)
    return found.reason if found else None


def plan(job: RawObject, *pods: Pod) -> JobPlan:
    return plan_pods(read_spec(job), stock(job, *pods), NOW)


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        ("", set()),
        ("3", {3}),
        ("0,2-4,7", {0, 2, 3, 4, 7}),
        ("1,2", {1, 2}),
    ],
)
def test_indexes(text: str, indexes: set[int]) -> None:
    assert read_indexes(text) == indexes
    assert written_indexes(indexes) == text
    assert read_indexes(text, 3) == {index for index in indexes if index < 3}


# --- counting ---


def test_a_finished_pod_counts_once() -> None:
    uncounted = {"succeeded": ["uid-b"], "failed": ["uid-x"]}
    job = a_job(status={"succeeded": 5, "failed": 2, "uncountedTerminatedPods": uncounted})
    new = tracked("a", "Succeeded")
    being_counted = tracked("b", "Succeeded")
    counted = a_replica("c", phase="Succeeded")

    tally = stock(job, new, being_counted, counted, tracked("d", "Failed"))
    assert tally.new_succeeded == (new,)
    assert tally.succeeded == 5 + 1 + 1
    assert tally.failed == 2 + 1 + 1


@pytest.mark.parametrize(
    ("policy", "pod", "failed"),
    [
        ("TerminatingOrFailed", tracked("a", deleting=True), 1),
        ("Failed", tracked("a", deleting=True), 0),
        ("Failed", tracked("a", "Failed", deleting=True), 1),
        ("Failed", tracked("a", "Pending", node="", deleting=True), 1),
    ],
)
def test_when_a_deleted_pod_has_failed(policy: str, pod: Pod, failed: int) -> None:
    assert stock(a_job(podReplacementPolicy=policy), pod).failed == failed


def test_indexes_complete_once() -> None:
    job = an_indexed_job(4, status={"completedIndexes": "0", "succeeded": 1})
    pods = [tracked("a", "Succeeded", index=0), tracked("b", "Succeeded", index=2)]
    beyond = tracked("c", "Succeeded", index=9)

    tally = stock(job, *pods, beyond)
    assert tally.completed_indexes == {0, 2}
    assert tally.succeeded == 2
    assert tally.new_ignored == (beyond,)


def test_numbers_follow_the_uids() -> None:
    uncounted = {"succeeded": ["a", "b"], "failed": ["c"]}
    job = a_job(status={"succeeded": 1, "uncountedTerminatedPods": uncounted})

    status = job_status.counted_status(job, read_spec(job), ["a", "c"])
    assert status == {
        "uncountedTerminatedPods": {"succeeded": ["b"]},
        "succeeded": 2,
        "failed": 1,
    }


# --- on the way ---


@pytest.mark.parametrize(
    ("spec", "active", "created"),
    [
        pytest.param({"completions": 5, "parallelism": 3}, 0, 3, id="up-to-parallelism"),
        pytest.param({"completions": 5, "parallelism": 3}, 2, 1, id="what-is-missing"),
        pytest.param({"completions": 2, "parallelism": 3}, 0, 2, id="no-more-than-needed"),
        pytest.param({"parallelism": 3}, 1, 2, id="without-completions"),
        pytest.param({"completions": 5, "parallelism": 0}, 0, 0, id="none"),
    ],
)
def test_pods_are_made(spec: dict[str, int], active: int, created: int) -> None:
    pods = [tracked(f"p{number}") for number in range(active)]

    assert plan(a_job(**spec), *pods) == JobPlan(create=(None,) * created)


def test_a_job_without_completions_makes_no_more_after_the_first_success() -> None:
    job = a_job(parallelism=3)

    assert plan(job, tracked("a", "Succeeded"), tracked("b")) == JobPlan()
    assert reason(job, tracked("a", "Succeeded"), tracked("b")) is None
    assert reason(job, tracked("a", "Succeeded")) == "CompletionsReached"


def test_too_many_pods_are_deleted() -> None:
    young, old = tracked("a", age=1, ready=False), tracked("b", age=1000)

    assert plan(a_job(completions=5, parallelism=1), old, young).delete == (young,)


def test_a_suspended_job_has_no_pods() -> None:
    job = a_job(completions=1, suspend=True)

    assert plan(job) == JobPlan()
    assert plan(job, tracked("a")).delete != ()


def test_a_pod_that_may_still_run_is_not_replaced_if_the_job_says_so() -> None:
    going = tracked("a", deleting=True, ended=1000)

    assert plan(a_job(completions=1, podReplacementPolicy="Failed"), going) == JobPlan()


def test_free_indexes_are_taken_in_order() -> None:
    job = an_indexed_job(5, parallelism=3, status={"completedIndexes": "1"})

    assert plan(job, tracked("a", index=2)).create == (0, 3)


def test_of_two_pods_with_one_index_the_older_stays() -> None:
    job = an_indexed_job(3, parallelism=3)
    old, young = tracked("a", index=1, age=9), tracked("b", index=1, age=5)
    lost = tracked("c", index=7)

    assert plan(job, old, young, lost).delete == (lost, young)


def test_indexed_pods_know_their_index() -> None:
    job = an_indexed_job()
    pod = make_pod(job, read_spec(job), 3, None)

    assert pod.get("metadata", "annotations", COMPLETION_INDEX) == "3"
    assert pod.get("metadata", "labels", COMPLETION_INDEX) == "3"
    assert pod.get("spec", "hostname") == "j-3"
    (variable,) = pod.get("spec", "containers", 0, "env")
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert pod.get("metadata", "finalizers") == [TRACKING]


# --- failures ---


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (4, 80), (7, 600), (99, 600)]
)
def test_waits_double(failures: int, seconds: float) -> None:
    assert FAILURE_BACKOFF.seconds(failures) == seconds


def test_a_success_makes_up_for_failures() -> None:
    failed = [tracked("a", "Failed", ended=15), tracked("b", "Failed", ended=5)]

    assert seconds_to_wait(failed, [], NOW) == 15
    assert seconds_to_wait(failed, [tracked("c", "Succeeded", ended=10)], NOW) == 5
    assert seconds_to_wait(failed, [tracked("c", "Succeeded", ended=1)], NOW) == 0


def test_after_a_failure_the_next_pod_waits() -> None:
    found = plan(a_job(completions=1), tracked("a", "Failed", ended=4))

    assert found == JobPlan(wait_seconds=6)


RULES: list[dict[str, Any]] = [
    {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0]}},
]


def disrupted(pod: Pod) -> Pod:
    condition = {"type": "DisruptionTarget", "status": "True"}
    return pod.with_value([condition], "status", "conditions")


@pytest.mark.parametrize(
    ("pod", "action"),
    [
        (tracked("a", "Failed", exit_code=42), PodFailureAction.FAIL_JOB),
        (tracked("a", "Failed", exit_code=1), PodFailureAction.COUNT),
        (disrupted(tracked("a", "Failed", exit_code=1)), PodFailureAction.IGNORE),
        (tracked("a", "Running", deleting=True), PodFailureAction.COUNT),
    ],
)
def test_failure_rules(pod: Pod, action: PodFailureAction) -> None:
    assert match_pod_failure_policy(pod, RULES).action is action


def test_the_end_by_rule_says_which() -> None:
    job = a_job(completions=1, podFailurePolicy={"rules": RULES})

    assert conclusion(job, tracked("a", "Failed", exit_code=42)) == JobConclusion(
        False,
        "PodFailurePolicy",
        "Container c for pod default/a failed with exit code 42 matching FailJob rule at index 0",
    )
    ignored = disrupted(tracked("a", "Failed", exit_code=1))
    assert stock(job, ignored).failed == 0
    assert stock(job, ignored).new_ignored == (ignored,)


# --- the end ---


def test_enough_successes_complete_a_job() -> None:
    job = a_job(completions=2, status={"succeeded": 1})

    assert reason(job) is None
    assert reason(job, tracked("a", "Succeeded")) == "CompletionsReached"


@pytest.mark.parametrize(("failed", "ends"), [(2, None), (3, "BackoffLimitExceeded")])
def test_too_many_failures_fail_a_job(failed: int, ends: str | None) -> None:
    pods = [tracked(f"p{number}", "Failed") for number in range(failed)]

    assert reason(a_job(completions=1, backoffLimit=2), *pods) == ends


def test_restarts_count_where_nodes_restart() -> None:
    job = a_job(completions=1, backoffLimit=2).with_value(
        "OnFailure", "spec", "template", "spec", "restartPolicy"
    )

    assert reason(job, tracked("a", restarts=1)) is None
    assert reason(job, tracked("a", restarts=2)) == "BackoffLimitExceeded"


@pytest.mark.parametrize(("seconds", "ends"), [(9, None), (10, "DeadlineExceeded")])
def test_a_job_may_take_only_so_long(seconds: int, ends: str | None) -> None:
    job = a_job(completions=1, activeDeadlineSeconds=10, status={"startTime": ago(seconds)})

    assert reason(job, tracked("a")) == ends


def test_what_was_announced_stays() -> None:
    announced = {"type": "FailureTarget", "status": "True", "reason": "X", "message": "y"}
    job = a_job(completions=1, status={"conditions": [announced]})

    assert conclusion(job, tracked("a", "Succeeded")) == JobConclusion(False, "X", "y")


def test_a_success_policy_ends_a_job_early() -> None:
    rules = [{"succeededIndexes": "0-1", "succeededCount": 1}]
    job = an_indexed_job(4, successPolicy={"rules": rules})

    assert reason(job, tracked("a", "Succeeded", index=3)) is None
    assert reason(job, tracked("a", "Succeeded", index=1)) == "SuccessPolicy"


# --- failures by index ---


def a_failure(index: int, before: int = 0, ended: float = 1000) -> Pod:
    annotations = {INDEX_FAILURE_COUNT: str(before)}
    return tracked(
        f"f{index}-{before}", "Failed", index=index, annotations=annotations, ended=ended
    )


def test_an_index_is_tried_so_often() -> None:
    job = an_indexed_job(3, parallelism=3, backoffLimit=99, backoffLimitPerIndex=1)
    tally = stock(job, a_failure(0), a_failure(1, 1))

    assert tally.failed_indexes == {1}
    assert tally.kept == {"uid-f0-0"}, "its successor must know how many there were"
    assert plan(job, a_failure(0), a_failure(1, 1)).create == (0, 2)
    again = make_pod(job, read_spec(job), 0, tally.latest_failed_by_index[0])
    assert again.get("metadata", "annotations", INDEX_FAILURE_COUNT) == "1"


def test_an_index_waits_alone() -> None:
    job = an_indexed_job(2, parallelism=2, backoffLimit=99, backoffLimitPerIndex=3)

    assert plan(job, a_failure(0, 0, ended=4)) == JobPlan(create=(1,), wait_seconds=6)


@pytest.mark.parametrize(
    ("most", "ends"), [(0, "MaxFailedIndexesExceeded"), (1, None), (None, None)]
)
def test_lost_indexes_end_a_job(most: int | None, ends: str | None) -> None:
    job = an_indexed_job(
        3,
        backoffLimit=99,
        backoffLimitPerIndex=0,
        **({} if most is None else {"maxFailedIndexes": most}),
    )

    assert reason(job, a_failure(0)) == ends
    done = [tracked("a", "Succeeded", index=1), tracked("b", "Succeeded", index=2)]
    assert reason(job, a_failure(0), *done) in ("FailedIndexes", "MaxFailedIndexesExceeded")


# --- suspension ---


def test_resuming_starts_the_clock_again() -> None:
    said = {"type": "Suspended", "status": "True", "reason": "JobSuspended"}
    job = a_job(status={"startTime": ago(500), "conditions": [said]})
    spec = read_spec(job)

    condition = job_status.suspension(job, spec)
    assert condition is not None
    assert condition.reason == "JobResumed"
    assert job_status.start_time(job, spec, NOW) == ago(0)
    assert job_status.start_time(a_job(suspend=True), read_spec(a_job(suspend=True)), NOW) is None


# --- absurd numbers ---

MOST = 2**31 - 1


def test_of_very_many_indexes_only_a_few_are_looked_at() -> None:
    """2,147,483,647 completions fit into no memory."""
    job = an_indexed_job(MOST, parallelism=100_000)
    assert plan(job, tracked("a", index=1)).create == (0, *range(2, 501))
    per_index = an_indexed_job(MOST, parallelism=100_000, backoffLimitPerIndex=1)
    assert plan(per_index, tracked("a", index=1)).create == (0, *range(2, 501))
    assert len(plan(a_job(parallelism=MOST, completions=MOST)).create) == 500


def test_a_success_policy_about_very_many_indexes() -> None:
    rules = [{"succeededIndexes": f"1,3-{MOST}"}]
    job = an_indexed_job(MOST, successPolicy={"rules": rules})
    assert reason(job, tracked("a", "Succeeded", index=1)) is None
    rules[0]["succeededCount"] = 2  # type: ignore[assignment]
    pods = tracked("a", "Succeeded", index=1), tracked("b", "Succeeded", index=2)
    assert reason(job, *pods) is None
    assert reason(job, *pods, tracked("c", "Succeeded", index=2_000_000_000)) == "SuccessPolicy"


def test_a_status_with_absurd_indexes_is_read_in_part() -> None:
    assert len(read_indexes(f"5,7-{MOST}")) == 1_000_000
    ranges = IndexRanges("8-9,0-3,2-5,x,7-", 9)
    assert list(ranges) == [0, 1, 2, 3, 4, 5, 7, 8]
    assert (ranges.count, 6 in ranges, 8 in ranges, 9 in ranges) == (8, False, True, False)
