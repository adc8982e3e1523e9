"""Warnings about accepted objects that Kubernetes v1.38 would refuse or treat differently.

Used by the API server for Warning headers and by `allot lint --target`. Each warning names the rule (`allot.rules`)
behind the difference; `docs/decisions/0003` explains the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from allot.api.claims import (
    DeviceClaim,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from allot.api.classes import DeviceClass
from allot.api.raw import RawObject
from allot.api.resource import DeviceSelector
from allot.api.slices import CapacityRequestPolicyRange, Device, ResourceSlice
from allot.cel import CelCompileError, Origin, compile_derived, compile_selector
from allot.features import DEFAULTS, FeatureGates
from allot.rules import (
    BARE_DERIVED_NAMES,
    DEVICE_NAME_IN_CEL,
    FRACTIONAL_RANGES_BY_DEFAULT,
    MATCH_OR_DISTINCT,
    ONE_KIND_OF_BINDING_CONDITIONS,
    RuleSet,
)
from allot.validation.fields import FieldPath

SPEC: Final = FieldPath("spec")
DEVICES: Final = SPEC / "devices"
NAME: Final = ".name"
"""How an expression reads the name of a device."""
_WHOLE: Final = 10**9


class KubernetesWarning(NamedTuple):
    """One difference: where, which rule, and what v1.38 does."""

    path: FieldPath
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text} (rule {self.rule})"


def kubernetes_warnings(obj: Any) -> Iterable[KubernetesWarning]:
    """Where v1.38, with its default feature gates, would refuse a DRA object or decide otherwise about it."""
    match obj:
        case ResourceClaim():
            return _claim(obj.spec.devices, DEVICES)
        case ResourceClaimTemplate():
            return _claim(obj.spec.spec.devices, SPEC / "spec" / "devices")
        case DeviceClass():
            return _selectors(obj.spec.selectors, SPEC / "selectors")
        case ResourceSlice():
            return _slice(obj)
        case _:
            return ()


def rule_warnings(obj: Any, gates: FeatureGates) -> list[str]:
    """Those of `kubernetes_warnings` that a server with these rules should mention."""
    if isinstance(obj, RawObject):
        return []
    # Both attributes in one constraint are refused by the rule, so this warning is given under v1.38's rules.
    return [
        str(warning)
        for warning in kubernetes_warnings(obj)
        if warning.rule in gates or warning.rule == MATCH_OR_DISTINCT
    ]


# --- claims ---


def _claim(claim: DeviceClaim, path: FieldPath) -> Iterator[KubernetesWarning]:
    for index, request in enumerate(claim.requests):
        exactly = request.exactly
        if exactly is not None and (exactly.selectors or exactly.derived_attributes):
            yield from _asked(exactly, path / "requests" @ index / "exactly")
        for number, alternative in enumerate(request.first_available):
            yield from _asked(alternative, path / "requests" @ index / "firstAvailable" @ number)
    for index, constraint in enumerate(claim.constraints):
        here = path / "constraints" @ index
        match, distinct = constraint.match_attribute, constraint.distinct_attribute
        yield from _bare(match, here / "matchAttribute")
        yield from _bare(distinct, here / "distinctAttribute")
        if match is not None and distinct is not None:
            yield KubernetesWarning(
                here / "distinctAttribute",
                MATCH_OR_DISTINCT,
                "is ignored by Kubernetes v1.38 because matchAttribute is set, too;"
                " use two constraints",
            )


def _asked(
    request: ExactDeviceRequest | DeviceSubRequest, path: FieldPath
) -> Iterator[KubernetesWarning]:
    yield from _selectors(request.selectors, path / "selectors")
    for index, derived in enumerate(request.derived_attributes):
        here = path / "derivedAttributes" @ index
        yield from _bare(derived.name, here / "name")
        yield from _expression(derived.expression, here / "expression", compile_derived)


def _selectors(selectors: Iterable[DeviceSelector], path: FieldPath) -> Iterator[KubernetesWarning]:
    for index, selector in enumerate(selectors):
        if selector.cel is not None and NAME in selector.cel.expression:
            here = path @ index / "cel" / "expression"
            yield from _expression(selector.cel.expression, here, compile_selector)


def _expression(
    expression: str, path: FieldPath, compile_: Callable[[str, Origin, FeatureGates], object]
) -> Iterator[KubernetesWarning]:
    if NAME not in expression:
        return
    try:
        compile_(expression, Origin.NEW, DEFAULTS)
    except CelCompileError:
        return  # that is refused here as well
    try:
        compile_(expression, Origin.NEW, DEFAULTS.with_rules(RuleSet.V1_38))
    except CelCompileError:
        text = "Kubernetes v1.38 refuses it: there expressions cannot read device.name"
        yield KubernetesWarning(path, DEVICE_NAME_IN_CEL, text)


def _bare(name: str | None, path: FieldPath) -> Iterator[KubernetesWarning]:
    if name and "/" not in name:
        yield KubernetesWarning(
            path,
            BARE_DERIVED_NAMES,
            f'Kubernetes v1.38 refuses "{name}": there it must have a domain,'
            f" as in example.com/{name.replace('-', '_')}",
        )


# --- slices ---


def _slice(slice_: ResourceSlice) -> Iterator[KubernetesWarning]:
    for index, device in enumerate(slice_.spec.devices or ()):
        yield from _device(device, DEVICES @ index)


def _device(device: Device, path: FieldPath) -> Iterator[KubernetesWarning]:
    if bool(device.binding_conditions) != bool(device.binding_failure_conditions):
        has_conditions = bool(device.binding_conditions)
        given, missing = "bindingConditions", "bindingFailureConditions"
        if not has_conditions:
            given, missing = missing, given
        yield KubernetesWarning(
            path / given,
            ONE_KIND_OF_BINDING_CONDITIONS,
            f"Kubernetes v1.38 refuses it without {missing}",
        )
    for name, capacity in sorted(device.capacity.items()):
        policy = capacity.request_policy
        if policy is not None and policy.valid_range is not None:
            limits_path = path / "capacity" @ name / "requestPolicy" / "validRange"
            yield from _range(policy.valid_range, limits_path)


def _range(limits: CapacityRequestPolicyRange, path: FieldPath) -> Iterator[KubernetesWarning]:
    """Where a range is in fractions, requests are rounded to a step here, and to whole numbers there."""
    for name in ("min", "max", "step"):
        bound = getattr(limits, name)
        if limits.step is not None and bound is not None and bound.nanos % _WHOLE:
            yield KubernetesWarning(
                path / name,
                FRACTIONAL_RANGES_BY_DEFAULT,
                f"{bound} is not a whole number: Kubernetes v1.38 rounds it and what is requested"
                " up to whole numbers unless DRAFractionalCapacityRange is on",
            )
            return
