"""Derived attributes as KEP-6080 has them: bare names, at most eight, refused while the gate is off."""

from __future__ import annotations

import pytest

from allot import features
from allot.api.base import replace
from allot.api.claims import (
    DeviceConstraint,
    DeviceDerivedAttribute,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from allot.api.meta import ObjectMeta
from allot.api.resource import CELDeviceSelector, DeviceSelector
from allot.features import FeatureGates
from allot.rules import RuleSet
from allot.testing.builders import a_claim, a_request, an_exact_request
from allot.validation.cel_checker import CelChecker
from allot.validation.context import Context
from allot.validation.expressions import (
    AcceptEverything,
    CheckedExpression,
    ExpressionChecker,
)
from allot.validation.resource_claim import validate_claim
from allot.validation.resource_claim_template import validate_template_update

KUBERNETES = features.DEFAULTS.with_rules(RuleSet.V1_38)
GATE_OFF = features.with_overrides({features.DERIVED_ATTRIBUTES: False})


def a_claim_deriving(
    *names: str, match: str | None = None, expression: str = "device.driver"
) -> ResourceClaim:
    derived = tuple(DeviceDerivedAttribute(name, expression) for name in names)
    return a_claim(
        a_request("gpu", exactly=an_exact_request(derived_attributes=derived)),
        constraints=tuple(DeviceConstraint(match_attribute=name) for name in names)
        if match is None
        else (DeviceConstraint(match_attribute=match),),
    )


def problems(claim: ResourceClaim, gates: FeatureGates = features.DEFAULTS) -> list[str]:
    return [f"{error.path}: {error.detail}" for error in validate_claim(claim, Context(gates))]


@pytest.mark.parametrize("name", ["numa", "shared-numa-node", "_x", "example.com/numa"])
def test_good_names(name: str) -> None:
    assert problems(a_claim_deriving(name)) == []


@pytest.mark.parametrize("name", ["0m", "-a", "a.b", "x" * 33, "example.com/a-b", "/x", "x/"])
def test_bad_names(name: str) -> None:
    assert problems(a_claim_deriving(name))


def test_bare_names_are_for_derived_attributes_only() -> None:
    (problem,) = problems(a_claim(constraints=(DeviceConstraint(match_attribute="numa"),)))

    assert problem == (
        "spec.devices.constraints[0].matchAttribute: "
        "a fully qualified name must be a domain and a name separated by a slash: write DRIVER/numa,"
        " with the driver that publishes it; a name without a domain is for derived attributes,"
        " and no request of the claim derives numa"
    )


def test_at_most_eight() -> None:
    names = [f"a{number}" for number in range(9)]

    assert problems(a_claim_deriving(*names[:8])) == []
    (problem,) = problems(a_claim_deriving(*names))
    assert problem.endswith("derivedAttributes: must have at most 8 items")


def test_something_must_refer_to_it() -> None:
    (problem,) = problems(a_claim_deriving("numa", match="example.com/other"))

    assert "must be referenced by at least one" in problem


def test_refused_while_the_gate_is_off() -> None:
    gates = features.with_overrides({features.DERIVED_ATTRIBUTES: False})

    found = problems(a_claim_deriving("numa"), gates)

    assert "may not be used while feature gate DRADerivedAttributes is off" in found[0]


def test_expressions_are_measured() -> None:
    assert problems(a_claim_deriving("numa", expression="")) == [
        "spec.devices.requests[0].exactly.derivedAttributes[0].expression: "
    ]
    (problem,) = problems(a_claim_deriving("numa", expression="x" * 10241))
    assert problem.endswith("expression: may not be more than 10240 bytes")


@pytest.mark.parametrize("name", ["0m", "-a", "a.b"])
def test_messages_quote_the_rule_that_holds(name: str) -> None:
    problem = problems(a_claim_deriving(name))[0]

    assert "'_' and '-', and must start with a letter or '_'" in problem


@pytest.mark.parametrize(
    ("gates", "most"), [(features.DEFAULTS, 8), (KUBERNETES, 32)], ids=["seeds", "v1.38"]
)
def test_how_many(gates: FeatureGates, most: int) -> None:
    names = [f"a.b/a{number}" for number in range(most + 1)]

    assert problems(a_claim_deriving(*names[:most]), gates) == []
    assert problems(a_claim_deriving(*names), gates)[0].endswith(f"at most {most} items")


def test_v1_38_wants_a_domain() -> None:
    assert "fully qualified" in " ".join(problems(a_claim_deriving("numa"), KUBERNETES))


def test_a_template_can_be_labelled_while_the_gate_is_off() -> None:
    """Its spec is stored: bare names in it are not judged again."""
    spec = ResourceClaimTemplateSpec(spec=a_claim_deriving("shared-numa").spec)
    old = ResourceClaimTemplate(ObjectMeta(name="t", namespace="d", resource_version="1"), spec)
    new = replace(old, metadata=replace(old.metadata, labels={"a": "b"}))

    for gates in (GATE_OFF, GATE_OFF.with_rules(RuleSet.V1_38), KUBERNETES, features.DEFAULTS):
        assert list(validate_template_update(new, old, Context(gates))) == []


# --- ExplainedCosts ---

PART = 'device.attributes["a.b"].topology.split("-")[0]'
CEL = CelChecker()
ENDLESS = f"{PART}.lowerAscii()"


class Costly(AcceptEverything):
    """Every derived attribute costs more than half of the limit."""

    def check_derived_attribute(self, expression: str, gates: FeatureGates) -> CheckedExpression:
        return CheckedExpression(cost=600_000)


def costs(claim: ResourceClaim, gates: FeatureGates, checker: ExpressionChecker = CEL) -> list[str]:
    context = Context(gates, expressions=checker)
    return [f"{error.path}: {error.detail}" for error in validate_claim(claim, context)]


def test_a_cost_is_reported_once_with_the_estimate_and_advice() -> None:
    (problem,) = costs(a_claim_deriving("numa", expression=ENDLESS), features.DEFAULTS)

    assert problem.startswith(
        "spec.devices.requests[0].exactly.derivedAttributes[0].expression: too complex, exceeds cost"
        " limit: the estimated cost is unbounded, the limit is 1,000,000; the length of a part from"
        " split() has no bound"
    )


def test_v1_38_reports_a_cost_twice_and_without_figures() -> None:
    expression, total = costs(a_claim_deriving("a.b/c", expression=ENDLESS), KUBERNETES)

    assert expression.endswith(": too complex, exceeds cost limit")
    assert total.startswith("spec.devices: too complex, total cost of derived attribute")


def test_the_cost_of_all_derived_attributes_together() -> None:
    claim = a_claim_deriving("a.b/c", "a.b/d")
    (problem,) = costs(claim, features.DEFAULTS, Costly())
    (as_kubernetes,) = costs(claim, KUBERNETES, Costly())

    assert as_kubernetes.endswith("exceeds cost limit")
    assert problem == f"{as_kubernetes}: the estimated cost is 1,200,000, the limit is 1,000,000"


def test_a_selector_that_is_too_complex() -> None:
    selector = DeviceSelector(CELDeviceSelector(f'{ENDLESS} == "numa0"'))
    claim = a_claim(a_request("gpu", exactly=an_exact_request(selectors=(selector,))))

    assert "the estimated cost is unbounded" in costs(claim, features.DEFAULTS)[0]
    assert costs(claim, KUBERNETES)[0].endswith(": too complex, exceeds cost limit")
