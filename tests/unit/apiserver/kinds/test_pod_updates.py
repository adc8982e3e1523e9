"""What an update of a pod may change: deadlines and tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Pod
from allot.apiserver.kinds import pod_strategy as strategy
from tests.step_counts import counted, steps
from tests.unit.apiserver.kinds.test_pod_strategy import REQUEST, pod_with


def wrong_fields(old: Pod, new: Pod) -> list[str]:
    prepared = strategy.prepare_update(new, old, REQUEST)
    return [str(error.path) for error in strategy.validate_update(prepared, old, REQUEST)]


def with_deadline(seconds: int | None) -> Pod:
    return pod_with() if seconds is None else pod_with(activeDeadlineSeconds=seconds)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        pytest.param(None, 100, True, id="set"),
        pytest.param(100, 50, True, id="shortened"),
        pytest.param(100, 0, True, id="now"),
        pytest.param(100, 200, False, id="extended"),
        pytest.param(100, None, False, id="removed"),
        pytest.param(None, -1, False, id="negative"),
        pytest.param(None, 2**31, False, id="too-long"),
    ],
)
def test_deadlines_are_set_or_shortened(
    before: int | None, after: int | None, allowed: bool
) -> None:
    wrong = wrong_fields(with_deadline(before), with_deadline(after))

    assert wrong == ([] if allowed else ["spec.activeDeadlineSeconds"])


NOT_READY = {"key": "not-ready", "operator": "Exists", "effect": "NoExecute"}
MINE = {"key": "mine", "operator": "Exists"}


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        pytest.param([NOT_READY | {"tolerationSeconds": 300}, MINE], True, id="appended"),
        pytest.param([MINE, NOT_READY | {"tolerationSeconds": 300}], True, id="put-before"),
        pytest.param([NOT_READY | {"tolerationSeconds": 7}], True, id="other-seconds"),
        pytest.param([NOT_READY], True, id="for-ever"),
        pytest.param([MINE], False, id="replaced"),
        pytest.param([NOT_READY | {"effect": "NoSchedule"}], False, id="other-effect"),
        pytest.param([], False, id="removed"),
    ],
)
def test_tolerations_are_only_added(after: list[dict[str, Any]], allowed: bool) -> None:
    old = pod_with(tolerations=[NOT_READY | {"tolerationSeconds": 300}])

    wrong = wrong_fields(old, pod_with(tolerations=after))

    assert wrong == ([] if allowed else ["spec"])


def test_ephemeral_containers_come_later() -> None:
    pod = pod_with(ephemeralContainers=[{"name": "debug", "image": "i"}])

    errors = strategy.validate_create(strategy.prepare_create(pod, REQUEST), REQUEST)

    assert [str(error.path) for error in errors] == ["spec.ephemeralContainers"]


# --- long lists ---


def gated(count: int) -> Pod:
    return pod_with(schedulingGates=counted([{"name": f"g{number}"} for number in range(count)]))


def test_gates_are_looked_up() -> None:
    def update(count: int) -> int:
        old, new = gated(count), gated(count - 1)
        assert not wrong_fields(old, new)
        return steps(lambda: strategy.validate_update(new, old, REQUEST))

    assert update(200) < 2.5 * update(100)


def test_tolerations_that_differ_in_seconds_are_the_same_in_any_order() -> None:
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(100)]
    old, new = pod_with(tolerations=many), pod_with(tolerations=[*reversed(many), MINE])

    assert not wrong_fields(old, new)


def test_long_differences_are_compared_in_part() -> None:
    def diff(count: int, start: int = 0) -> str:
        old = [{"name": f"E{number}", "value": "a"} for number in range(count)]
        new = [*old[:start], *({**each, "value": "b"} for each in old[start:])]
        return strategy.value_diff(old, new)

    assert steps(lambda: diff(2000)) < 2.5 * steps(lambda: diff(1000))
    assert diff(2000).count("\n") < 2.5 * strategy.MAX_DIFF_LINES
    assert diff(2000, start=1999).splitlines()[1:] == [
        "  },",
        "  {",
        '   "name": "E1999",',
        '-  "value": "a"',
        '+  "value": "b"',
        "  }",
        " ]",
    ]
