"""What Kubernetes v1.38 would make of objects that are accepted here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.api.claims import (
    DeviceConstraint,
    DeviceDerivedAttribute,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
)
from allot.features import DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.testing.builders import (
    a_claim,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_exact_request,
)
from allot.testing.servers import LocalServer
from allot.validation.context import Context
from allot.validation.kubernetes_warnings import kubernetes_warnings
from allot.validation.resource_claim import validate_claim, validate_claim_spec

KUBERNETES = DEFAULTS.with_rules(RuleSet.V1_38)
DERIVED = (DeviceDerivedAttribute("shared-numa", "device.driver"),)
BARE = a_claim(
    a_request("gpu", an_exact_request(derived_attributes=DERIVED)),
    constraints=(DeviceConstraint(match_attribute="shared-numa"),),
)
BOTH = a_claim(
    a_request("gpu", an_exact_request()),
    constraints=(DeviceConstraint(match_attribute="a.b/c", distinct_attribute="a.b/d"),),
)


def a_range(least: str, step: str | None, most: str | None = None) -> Device:
    quantity = Quantity.parse
    limits = CapacityRequestPolicyRange(
        quantity(least), quantity(most) if most else None, quantity(step) if step else None
    )
    policy = CapacityRequestPolicy(quantity(least), valid_range=limits)
    return Device("d", capacity={"cpu": DeviceCapacity(quantity("4"), policy)})


NAME = "spec.devices.requests[0].exactly.derivedAttributes[0].name"


@pytest.mark.parametrize(
    ("obj", "places"),
    [
        pytest.param(a_claim(), [], id="plain-claim"),
        pytest.param(a_slice(), [], id="plain-slice"),
        pytest.param(
            BARE,
            [
                (NAME, "BareDerivedNames"),
                ("spec.devices.constraints[0].matchAttribute", "BareDerivedNames"),
            ],
            id="bare-names",
        ),
        pytest.param(
            ResourceClaimTemplate(ObjectMeta(), ResourceClaimTemplateSpec(spec=BOTH.spec)),
            [("spec.spec.devices.constraints[0].distinctAttribute", "MatchOrDistinct")],
            id="both-attributes",
        ),
        pytest.param(
            a_slice(a_device(binding_conditions=("a.b/c",))),
            [("spec.devices[0].bindingConditions", "OneKindOfBindingConditions")],
            id="only-conditions",
        ),
        pytest.param(
            a_slice(a_device(binding_failure_conditions=("a.b/c",))),
            [("spec.devices[0].bindingFailureConditions", "OneKindOfBindingConditions")],
            id="only-failures",
        ),
        pytest.param(
            a_slice(a_range("100m", "100m")),
            [
                (
                    "spec.devices[0].capacity[cpu].requestPolicy.validRange.min",
                    "FractionalRangesByDefault",
                )
            ],
            id="fractional-range",
        ),
        pytest.param(
            a_claim(
                a_request("r", an_exact_request(selectors=(a_selector('device.name == "gpu-0"'),)))
            ),
            [("spec.devices.requests[0].exactly.selectors[0].cel.expression", "DeviceNameInCel")],
            id="device-name",
        ),
        pytest.param(a_slice(a_range("1", "1")), [], id="whole-range"),
        pytest.param(a_slice(a_range("100m", None)), [], id="nothing-is-rounded"),
    ],
)
def test_warnings(obj: Any, places: list[tuple[str, str]]) -> None:
    assert [(str(each.path), each.rule) for each in kubernetes_warnings(obj)] == places


# --- match and distinct in one constraint ---


@pytest.mark.parametrize(("gates", "is_refused"), [(DEFAULTS, True), (KUBERNETES, False)])
def test_match_and_distinct(gates: FeatureGates, is_refused: bool) -> None:
    errors = list(validate_claim(BOTH, Context(gates)))

    assert bool(errors) == is_refused
    if is_refused:
        text = str(errors[0])
        assert text.startswith("spec.devices.constraints[0]: Invalid value: ")
        assert "matchAttribute" in text
        assert "distinctAttribute" in text
        assert "but both are set" in text


def test_stored_ones_stay() -> None:
    from allot.validation.fields import FieldPath

    context = Context(DEFAULTS)

    assert not list(validate_claim_spec(BOTH.spec, FieldPath("spec"), context, stored=True))


@pytest.mark.parametrize(("gates", "slip"), [(DEFAULTS, False), (KUBERNETES, True)])
def test_neither(gates: FeatureGates, slip: bool) -> None:
    """v1.38 says of none that there are too many."""
    (error,) = validate_claim(a_claim(constraints=(DeviceConstraint(),)), Context(gates))

    assert error.detail.startswith('exactly one of "matchAttribute" or "distinctAttribute" is req')
    assert ("multiple fields are set" in error.detail) == slip


# --- Warning headers ---

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def a_manifest(constraint: dict[str, str], derived: bool = False) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "gpu"}
    if derived:
        exactly["derivedAttributes"] = [{"name": "numa", "expression": "device.driver"}]
    requests = [{"name": "r", "exactly": exactly}]
    return {
        "metadata": {"generateName": "c-"},
        "spec": {"devices": {"requests": requests, "constraints": [constraint]}},
    }


def warnings_of(gates: FeatureGates, manifest: dict[str, Any]) -> tuple[int, list[str]]:
    async def run() -> tuple[int, list[str]]:
        async with LocalServer(gates=gates) as server:
            answer = await server.ask("POST", CLAIMS, manifest)
            return answer.code, answer.header("warning")

    return asyncio.run(run())


def test_the_api_server_says_what_v1_38_would_refuse() -> None:
    code, warnings = warnings_of(DEFAULTS, a_manifest({"matchAttribute": "numa"}, derived=True))

    assert code == 201
    assert len(warnings) == 2
    assert all("(rule BareDerivedNames)" in warning for warning in warnings)


def test_by_the_rules_of_v1_38_both_attributes_are_accepted_with_a_warning() -> None:
    both = {"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"}
    code, warnings = warnings_of(KUBERNETES, a_manifest(both))

    assert code == 201
    (warning,) = warnings
    assert "is ignored by Kubernetes v1.38" in warning
    assert warnings_of(DEFAULTS, a_manifest(both))[0] == 422


def test_bare_names_are_refused_by_the_rules_of_v1_38() -> None:
    assert warnings_of(KUBERNETES, a_manifest({"matchAttribute": "numa"}, derived=True))[0] == 422
