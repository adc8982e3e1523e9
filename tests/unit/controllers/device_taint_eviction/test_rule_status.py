"""The condition `EvictionInProgress` of DeviceTaintRules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintRuleStatus
from allot.api.meta import Condition, ObjectMeta
from allot.api.raw import RawObject
from allot.api.resource import DeviceTaint
from allot.controllers.device_taint_eviction.rule_status import (
    EvictionCondition,
    Reach,
    eviction_condition,
    is_final,
    seconds_until_update,
    with_condition,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
ONCE = (
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)


def a_rule(
    effect: str = "NoExecute", said: EvictionCondition | None = None, observed: int = 2
) -> DeviceTaintRule:
    conditions: tuple[Condition, ...] = (Condition("Other", "True"),)
    if said is not None:
        found = Condition(
            "EvictionInProgress", said.status, observed, T0, said.reason, said.message
        )
        conditions = (*conditions, found)
    return DeviceTaintRule(
        ObjectMeta(name="rule", generation=2),
        DeviceTaintRuleSpec(taint=DeviceTaint("k", effect=effect)),
        DeviceTaintRuleStatus(conditions),
    )


@pytest.mark.parametrize(
    ("effect", "reach", "evicted", "said"),
    [
        pytest.param(
            "NoExecute",
            Reach(1, 1),
            0,
            EvictionCondition(
                "True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."
            ),
            id="one-pod",
        ),
        pytest.param(
            "NoExecute",
            Reach(3, 2),
            1,
            EvictionCondition(
                "True",
                "PodsPendingEviction",
                "3 pods need to be evicted in 2 different namespaces. "
                "1 pod evicted since starting the controller.",
            ),
            id="some-to-do-some-done",
        ),
        pytest.param(
            "NoExecute",
            Reach(),
            2,
            EvictionCondition(
                "False", "Completed", "2 pods evicted since starting the controller."
            ),
            id="done",
        ),
        pytest.param(
            "NoExecute", Reach(), 0, EvictionCondition("False", "NotStarted"), id="nothing-to-do"
        ),
        pytest.param(
            "None",
            Reach(1, 1, 1, 1),
            0,
            EvictionCondition(
                "False",
                "NoEffect",
                "1 published device selected. 1 allocated device selected. 1 pod would be evicted "
                f"in 1 namespace if the effect was NoExecute. {ONCE}",
            ),
            id="dry-run-of-one",
        ),
        pytest.param(
            "None",
            Reach(0, 0, 8, 0),
            5,
            EvictionCondition(
                "False",
                "NoEffect",
                "8 published devices selected. 0 allocated devices selected. 0 pods would be evicted "
                f"in 0 different namespaces if the effect was NoExecute. {ONCE} "
                "5 pods evicted since starting the controller.",
            ),
            id="dry-run-after-evictions",
        ),
        pytest.param(
            "NoSchedule",
            Reach(),
            0,
            EvictionCondition(
                "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
            ),
            id="another-effect",
        ),
    ],
)
def test_texts(effect: str, reach: Reach, evicted: int, said: EvictionCondition) -> None:
    assert eviction_condition(a_rule(effect), reach, evicted) == said
    assert eviction_condition(a_rule(effect, said), reach, evicted) is None
    stale = a_rule(effect, said, observed=1)
    assert eviction_condition(stale, reach, evicted) == said


@pytest.mark.parametrize("reason", ["PodsPendingEviction", "Completed"])
def test_what_another_has_done_is_not_forgotten(reason: str) -> None:
    rule = a_rule(said=EvictionCondition("True", reason, "by another controller"))
    assert eviction_condition(rule, Reach(), 0) == EvictionCondition("False", "Completed")


def test_updates_keep_their_distance() -> None:
    rule = a_rule(said=EvictionCondition("False", "NotStarted"))
    assert seconds_until_update(rule, T0 + timedelta(seconds=4)) == 6
    assert seconds_until_update(rule, T0 + timedelta(seconds=12)) == 0
    # Clocks differ: one that is behind does not make us wait forever.
    assert seconds_until_update(rule, T0 - timedelta(hours=1)) == 10
    assert seconds_until_update(a_rule(), T0) == 0
    changed = a_rule(said=EvictionCondition("False", "NotStarted"), observed=1)
    assert seconds_until_update(changed, T0) == 0


def test_a_dry_run_is_made_once_for_a_spec() -> None:
    said = EvictionCondition("False", "NoEffect", "anything")
    assert is_final(a_rule("None", said))
    assert not is_final(a_rule("None", said, observed=1))
    assert not is_final(a_rule("None"))
    assert not is_final(a_rule("NoExecute", said))


def test_the_condition_takes_its_place() -> None:
    other = {"type": "Other", "status": "True", "unknown": "field"}
    rule = RawObject({"metadata": {"generation": 3}, "status": {"conditions": [other], "new": 1}})
    first = with_condition(rule, EvictionCondition("True", "A", "a"), T0)
    second = with_condition(first, EvictionCondition("False", "B", "b"), T0)
    assert first.get("status", "conditions", 0) == other
    assert second.get("status", "conditions") == [
        other,
        {
            "type": "EvictionInProgress",
            "status": "False",
            "reason": "B",
            "message": "b",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]
    assert second.get("status", "new") == 1
