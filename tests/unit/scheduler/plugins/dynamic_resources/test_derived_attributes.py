"""Derived attributes of stored claims while their gate is off (KEP-6080)."""

from __future__ import annotations

import pytest

from allot.api.base import replace
from allot.api.claims import DeviceConstraint, DeviceDerivedAttribute, ResourceClaim
from allot.features import DEFAULTS, DERIVED_ATTRIBUTES
from allot.rules import RuleSet
from allot.scheduler.framework.status import Code
from allot.testing.builders import DRIVER, a_device, a_request, a_slice, an_exact_request
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.state.objects import a_node_facts

OFF = {DERIVED_ATTRIBUTES: False}
POD = a_pod_with_claims("claim")
NODE = a_node_facts("node-1")
SLICE = a_slice(a_device("d0", {"numa": 0}), a_device("d1", {"numa": 0}))


def deriving(name: str) -> ResourceClaim:
    derived = (DeviceDerivedAttribute(name, "device.driver"),)
    claim = a_stored_claim(
        "claim", a_request("r", an_exact_request(count=2, derived_attributes=derived))
    )
    constraints = (DeviceConstraint(match_attribute=name),)
    devices = replace(claim.spec.devices, constraints=constraints)
    return replace(claim, spec=replace(claim.spec, devices=devices))


@pytest.mark.parametrize(
    ("name", "code"), [("numa", Code.UNRESOLVABLE), (f"{DRIVER}/numa", Code.SUCCESS)]
)
def test_they_are_ignored_and_the_pod_says_so(name: str, code: Code) -> None:
    """Bare names find nothing; where the name is qualified, the static attribute is used."""
    bench = Bench(deriving(name), nodes=[NODE], slices=[SLICE], gates=DEFAULTS.switched(OFF))

    assert bench.filter(POD)["node-1"].code is code
    ((reason, note),) = bench.warnings
    assert reason == "DerivedAttributesDisabled"
    assert note == (
        f"resource claim default/claim: derived attributes {name} are ignored, because feature gate"
        " DRADerivedAttributes is off"
    )


def test_nothing_is_said_while_the_gate_is_on() -> None:
    bench = Bench(deriving("numa"), nodes=[NODE], slices=[SLICE])

    assert bench.filter(POD)["node-1"].is_success
    assert bench.warnings == []


def test_v1_38_cannot_schedule_such_a_pod() -> None:
    gates = DEFAULTS.with_rules(RuleSet.V1_38).switched(OFF)
    bench = Bench(deriving("a.b/numa"), nodes=[NODE], slices=[SLICE], gates=gates)

    assert "the feature is disabled" in bench.messages(POD)["node-1"]
    assert bench.warnings == []
