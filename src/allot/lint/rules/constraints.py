"""Constraints between devices: attributes that exist, values that can be compared and that suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from allot.allocation.attributes import AttributeSet
from allot.allocation.devices import PoolDevice
from allot.api.claims import DeviceConstraint
from allot.cel import CelCompileError, Origin, compile_derived
from allot.cel.device import split_name
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem, Rule
from allot.lint.known_objects import KnownObjects
from allot.lint.spelling import did_you_mean
from allot.lint.subjects import Alternative, ClaimView, LintSubject

_MOST_VALUES: Final = 4

_KINDS_BY_TYPE: Final = {
    "string": "string",
    "int": "int",
    "bool": "bool",
    "kubernetes.Semver": "version",
    "list(string)": "string",
    "list(int)": "int",
    "list(bool)": "bool",
    "list(kubernetes.Semver)": "version",
}
"""The kind of attribute that an expression of this static type derives."""


def match_and_distinct(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Both in one constraint. Kubernetes v1.38 accepts that and ignores distinctAttribute."""
    if subject.claim is None:
        return
    for path, constraint in subject.claim.constraints():
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            yield Problem(
                rules.MATCH_AND_DISTINCT,
                path,
                "has matchAttribute and distinctAttribute, and KEP-5075 allows exactly one; "
                "Kubernetes v1.38 ignores distinctAttribute. Write two constraints",
            )


def contradicting_constraints(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Two constraints that ask the same devices to match and to be distinct in one attribute."""
    claim = subject.claim
    if claim is None:
        return
    constraints = list(claim.constraints())
    for path, distinct in constraints:
        attribute = distinct.distinct_attribute
        if attribute is None or distinct.match_attribute is not None:
            continue
        for _, match in constraints:
            if match.match_attribute != attribute:
                continue
            needed, names = _devices_subject_to_both(claim, match, distinct)
            if needed > 1:
                yield Problem(
                    rules.MATCH_AND_DISTINCT,
                    f"{path}.distinctAttribute",
                    f"{attribute} must match and be distinct for the {needed} devices of "
                    f"{', '.join(names)}: no devices satisfy both",
                )
                break


def _devices_subject_to_both(
    claim: ClaimView, match: DeviceConstraint, distinct: DeviceConstraint
) -> tuple[int, list[str]]:
    needed, names = 0, []
    for index, request in enumerate(claim.devices.requests):
        counts = [
            alternative.needed
            if alternative.is_subject_to(match) and alternative.is_subject_to(distinct)
            else 0
            for alternative in claim.alternatives_of(index)
        ]
        if min(counts, default=0):
            needed += min(counts)
            names.append(request.name)
    return needed, names


# --- values ---


class Side(NamedTuple):
    """The values that one request, or alternative, contributes to a constraint."""

    alternative: Alternative
    is_derived: bool
    kinds: frozenset[str]
    """The types that its values have, or can have; empty if nothing is known."""
    values: tuple[tuple[PoolDevice, AttributeSet], ...]
    candidates: tuple[PoolDevice, ...] | None


def compared_values(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """The values that constraints compare: the first problem of each constraint."""
    claim = subject.claim
    if claim is None:
        return
    for path, constraint in claim.constraints():
        is_match = constraint.match_attribute is not None
        attribute = constraint.match_attribute or constraint.distinct_attribute
        if not attribute:
            continue
        field = f"{path}.{'matchAttribute' if is_match else 'distinctAttribute'}"
        sides = [
            _side(alternative, attribute, known)
            for alternative in claim.alternatives()
            if alternative.is_subject_to(constraint)
        ]
        message = _missing_attribute(attribute, sides, known)
        if message is not None:
            rule, text = message
            yield Problem(rule, field, text)
        elif is_match and (types := _different_types(attribute, sides)):
            yield Problem(rules.CONSTRAINT_TYPES, field, types)
        elif is_match and (values := _nothing_in_common(sides, claim, known)):
            yield Problem(rules.CONSTRAINT_VALUES, field, values)
        elif not is_match and (few := _too_few_values(attribute, sides, claim, known)):
            yield Problem(rules.CONSTRAINT_VALUES, field, few)


def _side(alternative: Alternative, attribute: str, known: KnownObjects) -> Side:
    expression = alternative.derived(attribute)
    values = known.values(alternative, attribute)
    kinds = frozenset(value.kind for _, value in values if value.values)
    if expression is not None and not kinds:
        kinds = _static_kinds(expression)
    candidates = known.candidates(alternative)
    return Side(alternative, expression is not None, kinds, values, candidates)


def _static_kinds(expression: str) -> frozenset[str]:
    try:
        output = str(compile_derived(expression, Origin.STORED).output_type)
    except CelCompileError:
        return frozenset()
    kind = _KINDS_BY_TYPE.get(output)
    return frozenset((kind,)) if kind else frozenset()


def _missing_attribute(
    attribute: str, sides: Sequence[Side], known: KnownObjects
) -> tuple[Rule, str] | None:
    """A request none of whose devices has the attribute."""
    derives = [side for side in sides if side.is_derived]
    for side in sides:
        if side.is_derived or side.values:
            continue
        label = side.alternative.label
        if derives and (side.candidates or "/" not in attribute):
            others = ", ".join(other.alternative.label for other in derives)
            devices = (
                f"and none of its devices {known.where} publishes it"
                if side.candidates
                else "and a bare name exists only where it is derived"
            )
            return rules.ONE_SIDED_DERIVATION, (
                f'"{attribute}" is derived by {others}, but not by {label}, {devices}; derive it in '
                f"{label} as well"
            )
        if side.candidates:
            hint = _near_attribute(attribute, side.candidates)
            if side.alternative.subrequest and not hint:
                continue  # other alternatives may have it
            return rules.CONSTRAINT_ATTRIBUTE, (
                f'none of the devices of {label} {known.where} has the attribute "{attribute}"{hint}'
            )
        if known.devices and attribute not in known.attribute_names:
            # The class is not known, but no device at all has the attribute.
            hint = _near_attribute(attribute, known.devices)
            if hint or known.is_live:
                return rules.CONSTRAINT_ATTRIBUTE, (
                    f'no device {known.where} has the attribute "{attribute}"{hint}'
                )
    return None


def _near_attribute(attribute: str, devices: Sequence[PoolDevice]) -> str:
    names = {
        "/".join(split_name(name, device.id.driver))
        for device in devices
        for name in device.device.attributes
    }
    hint = did_you_mean(attribute, names)
    if hint:
        return hint
    bare = attribute.rpartition("/")[2]
    elsewhere = sorted(name for name in names if name.rpartition("/")[2] == bare)
    return f'; did you mean "{elsewhere[0]}"?' if elsewhere else ""


def _different_types(attribute: str, sides: Sequence[Side]) -> str:
    typed = [side for side in sides if side.kinds]
    for number, side in enumerate(typed):
        for other in typed[:number]:
            if other.alternative.request == side.alternative.request:
                continue  # alternatives of one request never meet
            if side.kinds.isdisjoint(other.kinds):
                return (
                    f'the values of "{attribute}" have different types and never match: '
                    f"{_typed_text(other)} and {_typed_text(side)}. Convert one of them, for "
                    "example with string() or int()"
                )
    return ""


def _typed_text(side: Side) -> str:
    kind = " or ".join(sorted(side.kinds))
    if not side.values:
        return f"{side.alternative.label} has {kind}"
    device, value = side.values[0]
    return f"{side.alternative.label} has {kind} ({_value_text(value)} on {device.id.device})"


def _value_text(value: AttributeSet) -> str:
    quote = '"' if value.kind in ("string", "version") else ""
    return ", ".join(f"{quote}{each}{quote}" for each in sorted(value.values, key=str))


def _nothing_in_common(sides: Sequence[Side], claim: ClaimView, known: KnownObjects) -> str:
    """Two requests whose devices have no value in common, whichever alternatives are chosen."""
    subject_to = {side.alternative.label for side in sides}
    values: dict[str, set[tuple[str, int | str]]] = {}
    for side in sides:
        values.setdefault(side.alternative.request, set()).update(_all_values(side))
    for alternative in claim.alternatives():
        if alternative.label not in subject_to or not known.candidates(alternative):
            values.pop(alternative.request, None)
    names = list(values)
    for number, ours in enumerate(names):
        for theirs in names[:number]:
            if values[ours] and values[theirs] and values[ours].isdisjoint(values[theirs]):
                return (
                    f"no devices {known.where} match: {theirs} has {_listed(values[theirs])} and "
                    f"{ours} has {_listed(values[ours])}"
                )
    return ""


def _too_few_values(
    attribute: str, sides: Sequence[Side], claim: ClaimView, known: KnownObjects
) -> str:
    """Fewer different values than devices that must differ."""
    if any(side.candidates is None for side in sides):
        return ""
    values = set().union(*(_all_values(side) for side in sides)) if sides else set()
    fewest: dict[str, int] = {}
    for side in sides:
        request, count = side.alternative.request, side.alternative.needed
        fewest[request] = min(fewest.get(request, count), count)
    # An alternative that the constraint does not name needs no value.
    subject_to = {side.alternative.label for side in sides}
    for alternative in claim.alternatives():
        if alternative.label not in subject_to:
            fewest.pop(alternative.request, None)
    needed = sum(fewest.values())
    if not values or needed <= len(values):
        return ""
    return (
        f"needs {needed} different values of {attribute}, and the devices {known.where} have "
        f"{len(values)}: {_listed(values)}"
    )


def _all_values(side: Side) -> set[tuple[str, int | str]]:
    return {(value.kind, each) for _, value in side.values for each in value.values}


def _listed(values: set[tuple[str, int | str]]) -> str:
    texts = sorted(_value_text(AttributeSet(kind, frozenset((v,)), False)) for kind, v in values)
    more = f" and {len(texts) - _MOST_VALUES} more" if len(texts) > _MOST_VALUES else ""
    return ", ".join(texts[:_MOST_VALUES]) + more
