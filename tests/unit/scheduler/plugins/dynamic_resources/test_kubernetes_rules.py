"""Rules of the scheduler that differ from Kubernetes v1.38, both ways."""

from __future__ import annotations

import pytest

from allot.allocation import Abandoned, Inventory, TargetNode
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec
from allot.api.meta import ObjectMeta
from allot.api.resource import NO_SCHEDULE, DeviceTaint
from allot.features import DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.filter_results import status_of
from allot.scheduler.plugins.dynamic_resources.scores import normalized_scores, raw_score
from allot.testing.builders import a_slice

KUBERNETES = DEFAULTS.with_rules(RuleSet.V1_38)


@pytest.mark.parametrize(("min_max", "expected"), [(True, [0, 50, 100]), (False, [75, 87, 100])])
def test_scores_of_alternatives(min_max: bool, expected: list[int]) -> None:
    """MinMaxScores: the worst node gets nothing; in v1.38 it gets its part of the best."""
    raw = [raw_score(score, is_ready=True) for score in (6, 7, 8)]

    assert normalized_scores(raw, ranks_readiness=False, min_max=min_max) == expected


@pytest.mark.parametrize("min_max", [True, False])
def test_nothing_to_prefer(min_max: bool) -> None:
    raw = [raw_score(0, is_ready=True)] * 2

    assert normalized_scores(raw, ranks_readiness=False, min_max=min_max) == [0, 0]


@pytest.mark.parametrize(
    ("gates", "code"), [(DEFAULTS, Code.UNRESOLVABLE), (KUBERNETES, Code.ERROR)]
)
def test_a_node_that_takes_too_long(gates: FeatureGates, code: Code) -> None:
    """SlowNodesAreSkipped: in v1.38 it is an error, which ends the attempt on all nodes."""
    assert status_of(Abandoned(steps=1, requests_satisfied=0), gates).code is code


@pytest.mark.parametrize(("gates", "tainted"), [(DEFAULTS, False), (KUBERNETES, True)])
def test_a_taint_rule_without_a_selector(gates: FeatureGates, tainted: bool) -> None:
    """NoSelectorSelectsNothing: the API says so, and v1.38's scheduler does otherwise."""
    inventory = Inventory(gates, [a_slice()])
    rule = DeviceTaintRuleSpec(None, DeviceTaint("bad", "", NO_SCHEDULE))
    inventory.put_taint_rule(DeviceTaintRule(ObjectMeta(name="r"), rule))

    (device,) = inventory.view(TargetNode("node-1")).devices
    assert bool(device.taints) == tainted
