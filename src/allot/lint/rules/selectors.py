"""Expressions on the devices that are known: what they read, where they fail, what they select."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from allot.allocation.devices import PoolDevice
from allot.api.classes import DeviceClass
from allot.api.resource import DeviceSelector
from allot.cel import (
    CelCompileError,
    CelEvaluationError,
    Origin,
    compile_derived,
    compile_selector,
)
from allot.cel.access import NO_SUCH_KEY
from allot.cel.device import split_name
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.expression_errors import compiled
from allot.lint.expressions import expressions_in
from allot.lint.findings import Problem
from allot.lint.known_objects import Failure, KnownObjects, select
from allot.lint.rules.availability import another_may_do
from allot.lint.spelling import close_names, did_you_mean
from allot.lint.subjects import LintSubject

_NOUNS: Final = {"attributes": "attribute", "capacity": "capacity"}
_MOST_DEVICES: Final = 3
_MOST_VALUES: Final = 5


# --- attributes and capacities that are read ---


def unknown_attributes(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Reads of what no device has, of a driver whose devices are known, or with a typo."""
    if not known.devices or subject.object is None:
        return
    for expression in expressions_in(subject.manifest.data):
        program = compiled(expression, gates)
        for place in program.reads if program is not None else ():
            match place:
                case ("attributes" | "capacity" as kind, domain, identifier) if identifier:
                    names = known.attribute_names if kind == "attributes" else known.capacity_names
                    name = f"{domain}/{identifier}"
                    if name not in names and _is_reportable(name, domain, names, known):
                        noun = _NOUNS[kind]
                        message = f'no device {known.where} has the {noun} "{name}"'
                        hint = did_you_mean(name, names) or _in_other_domain(identifier, names)
                        yield Problem(rules.UNKNOWN_ATTRIBUTE, expression.path, message + hint)


def _is_reportable(name: str, domain: str, names: frozenset[str], known: KnownObjects) -> bool:
    domains = {each.rpartition("/")[0] for each in names}
    drivers = {device.id.driver for device in known.devices}
    return known.is_live or domain in domains | drivers or bool(close_names(name, names))


def _in_other_domain(identifier: str, names: frozenset[str]) -> str:
    elsewhere = sorted(name for name in names if name.rpartition("/")[2] == identifier)
    return f'; did you mean "{elsewhere[0]}"?' if elsewhere else ""


# --- devices that are selected ---


def class_selectors(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Selectors of a class. They are evaluated on all devices, of any driver."""
    if not isinstance(subject.object, DeviceClass) or not known.devices:
        return
    selectors = subject.object.spec.selectors
    selection = select(known.devices, selectors)
    if not selection.is_compiled:
        return
    yield from _failures("spec.selectors", selection.failures)
    # Files need not have the devices of every class.
    if known.is_live and not selection.accepted and not selection.failures:
        yield Problem(
            rules.SELECTOR_NEVER,
            _first_path("spec.selectors", selectors),
            f"no device {known.where} belongs to this class"
            + _values_read(selectors, known.devices),
        )


def request_selectors(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Selectors of requests, on the devices of their class."""
    if subject.claim is None:
        return
    for alternative in subject.claim.alternatives():
        selectors = alternative.spec.selectors
        of_class = known.of_class(alternative.spec.device_class_name)
        selection = known.selected(alternative)
        if not selectors or of_class is None or selection is None or not selection.is_compiled:
            continue
        path = f"{alternative.path}.selectors"
        yield from _failures(path, selection.failures)
        if selection.accepted or selection.failures:
            continue
        if not another_may_do(alternative, subject.claim, known, gates):
            yield Problem(
                rules.SELECTOR_NEVER,
                _first_path(path, selectors),
                f"true for none of the {_devices(len(of_class.accepted))} of class "
                f"{alternative.spec.device_class_name} {known.where}"
                + _values_read(selectors, of_class.accepted),
            )


def _first_path(path: str, selectors: Sequence[DeviceSelector]) -> str:
    return f"{path}[0].cel.expression" if len(selectors) == 1 else path


def _failures(path: str, failures: Sequence[Failure]) -> Iterator[Problem]:
    """One problem for each selector that fails."""
    by_selector: dict[int, list[Failure]] = {}
    for failure in failures:
        by_selector.setdefault(failure.selector, []).append(failure)
    for index, found in by_selector.items():
        yield Problem(
            rules.SELECTOR_ERROR,
            f"{path}[{index}].cel.expression",
            f"fails on {named_devices([failure.device for failure in found])}: {found[0].text}. "
            f"The scheduler stops there and the pod stays pending; {_remedy(found[0].text)}",
        )


def _remedy(error: str) -> str:
    if error.startswith(NO_SUCH_KEY):
        return "guard the read with has()"
    return "correct the expression, or exclude such devices with a condition before it"


def derivations(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Derived attributes that fail on candidates of their request."""
    if subject.claim is None:
        return
    for alternative in subject.claim.alternatives():
        candidates = known.candidates(alternative) or ()
        for index, derived in enumerate(alternative.spec.derived_attributes):
            failed, text = _failing(derived.expression, candidates)
            if failed:
                yield Problem(
                    rules.SELECTOR_ERROR,
                    f"{alternative.path}.derivedAttributes[{index}].expression",
                    f"fails on {named_devices(failed)}: {text}. The scheduler stops there and the "
                    "pod stays pending; guard the read with has(), or exclude such devices with a "
                    "selector",
                )


def _failing(expression: str, devices: Sequence[PoolDevice]) -> tuple[list[PoolDevice], str]:
    try:
        program = compile_derived(expression, Origin.STORED)
    except CelCompileError:
        return [], ""
    failed, text = [], ""
    for device in devices:
        try:
            program.attribute(device.prepared)
        except CelEvaluationError as error:
            failed.append(device)
            text = text or error.text
    return failed, text


# --- taints ---


def unknown_taints(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Tolerations of taints that no device has."""
    if subject.claim is None or not known.devices:
        return
    for alternative in subject.claim.alternatives():
        for index, toleration in enumerate(alternative.spec.tolerations):
            if toleration.key and toleration.key not in known.taint_keys:
                hint = did_you_mean(toleration.key, known.taint_keys)
                if not hint:
                    keys = ", ".join(sorted(known.taint_keys))
                    hint = f"; taints that devices have: {keys}" if keys else ""
                yield Problem(
                    rules.UNKNOWN_TAINT,
                    f"{alternative.path}.tolerations[{index}].key",
                    f'no device {known.where} has a taint with the key "{toleration.key}"{hint}',
                )


# --- messages ---


def named_devices(devices: Sequence[PoolDevice]) -> str:
    """`2 devices (a/b/c, a/b/d)`."""
    shown = ", ".join(str(device.id) for device in devices[:_MOST_DEVICES])
    more = len(devices) - _MOST_DEVICES
    return f"{_devices(len(devices))} ({shown}{f' and {more} more' if more > 0 else ''})"


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"


def _values_read(selectors: Sequence[DeviceSelector], devices: Sequence[PoolDevice]) -> str:
    """The devices' values of the attributes and capacities that the expressions read."""
    shown: list[str] = []
    for selector in selectors:
        text = selector.cel.expression if selector.cel is not None else ""
        for place in compile_selector(text, Origin.STORED).reads:
            if len(place) != 3 or not place[2]:
                continue
            values = sorted({_shown(device, *place) for device in devices} - {""})
            if values:
                more = (
                    f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
                )
                listed = ", ".join(values[:_MOST_VALUES]) + more
                shown.append(f"{place[1]}/{place[2]}: {listed}")
    return f". Their values: {'; '.join(shown)}" if shown else ""


def _shown(device: PoolDevice, kind: str, domain: str, identifier: str) -> str:
    entries = device.device.attributes if kind == "attributes" else device.device.capacity
    for name, entry in entries.items():
        if split_name(name, device.id.driver) == (domain, identifier):
            return str(getattr(entry, "value", "")) or _attribute_text(entry)
    return ""


def _attribute_text(attribute: object) -> str:
    for field in ("string", "version", "int_", "bool_", "strings", "versions", "ints", "bools"):
        value = getattr(attribute, field)
        if value is not None:
            if isinstance(value, str):
                return f'"{value}"'
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""
