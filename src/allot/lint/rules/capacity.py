"""Capacity requests against the devices that are known (KEP-5075)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allot.allocation.capacity import CapacityError, consumption
from allot.allocation.devices import PoolDevice
from allot.api.quantity import Quantity
from allot.api.slices import DeviceCapacity
from allot.cel.device import split_name
from allot.features import FRACTIONAL_CAPACITY_RANGE, FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.fixes import RenameKey
from allot.lint.known_objects import KnownObjects
from allot.lint.rules.availability import another_may_do, refusal
from allot.lint.spelling import did_you_mean, only_typo
from allot.lint.subjects import Alternative, LintSubject


def capacity_names(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Names that no candidate has. They are compared literally."""
    for alternative in _alternatives(subject):
        devices = known.candidates(alternative) or known.devices
        for name in alternative.capacity if devices else ():
            if any(name in device.device.capacity for device in devices):
                continue
            path = _path(alternative, name)
            spellings = _other_spellings(name, devices)
            if spellings:
                fix = RenameKey(path, spellings[0]) if len(spellings) == 1 else None
                written = " or ".join(f'"{each}"' for each in spellings)
                yield Problem(
                    rules.CAPACITY_NAME,
                    path,
                    f'the devices {known.where} publish this capacity as {written}, not as "{name}"; '
                    "names of capacities are compared literally",
                    fix,
                )
                continue
            names = {each for device in devices for each in device.device.capacity}
            hint = did_you_mean(name, names)
            if hint or (
                (known.candidates(alternative) or known.is_live)
                and not _is_excused(subject, alternative, known, gates)
            ):
                meant = only_typo(name, names)
                yield Problem(
                    rules.CAPACITY_NAME,
                    path,
                    f'no device {known.where} that the request accepts has the capacity "{name}"'
                    + (hint or _available(names)),
                    RenameKey(path, meant) if meant is not None else None,
                )


def _available(names: set[str]) -> str:
    return f"; available: {', '.join(sorted(names))}" if names else ""


def _other_spellings(name: str, devices: Sequence[PoolDevice]) -> list[str]:
    """How devices write the same name: with or without the domain of their driver."""
    found = {
        each
        for device in devices
        for each in device.device.capacity
        if split_name(each, device.id.driver) == split_name(name, device.id.driver)
    }
    return sorted(found)


def capacity_amounts(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Amounts that no candidate can provide."""
    fractional = FRACTIONAL_CAPACITY_RANGE in gates
    for alternative in _alternatives(subject):
        devices = known.candidates(alternative) or ()
        for name, amount in alternative.capacity.items():
            path = _path(alternative, name)
            if amount.nanos < 0:
                yield Problem(rules.CAPACITY_REQUEST, path, f"{amount} is negative")
                continue
            having = [device for device in devices if name in device.device.capacity]
            refusals = [
                refusal(name, amount, device.device.capacity[name], fractional=fractional)
                for device in having
            ]
            if refusals and all(refusals) and not _is_excused(subject, alternative, known, gates):
                device, why = having[0], refusals[0]
                others = len(having) - 1
                alike = (
                    f", and {others} more device{'s do' if others > 1 else ' does'} not"
                    if others
                    else ""
                )
                yield Problem(
                    rules.CAPACITY_REQUEST,
                    path,
                    f"no device {known.where} provides {amount}: {device.id}: {why}{alike}",
                )


def capacity_rounding(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Amounts that clusters with and without DRAFractionalCapacityRange round differently."""
    for alternative in _alternatives(subject):
        for name, amount in alternative.capacity.items():
            for device in known.candidates(alternative) or ():
                capacity = device.device.capacity.get(name)
                if capacity is None:
                    continue
                on = _consumed(name, amount, capacity, fractional=True)
                off = _consumed(name, amount, capacity, fractional=False)
                if on is not None and off is not None and on != off:
                    yield Problem(
                        rules.CAPACITY_ROUNDING,
                        _path(alternative, name),
                        f"{amount} of {device.id} consumes {on} with DRAFractionalCapacityRange (on "
                        f"by default in allot), and {off} without it (the default of Kubernetes "
                        "v1.38)",
                    )
                    break


def _consumed(
    name: str, amount: Quantity, capacity: DeviceCapacity, *, fractional: bool
) -> Quantity | None:
    try:
        consumed = consumption([(name, capacity)], {name: amount}, fractional=fractional)
    except CapacityError:
        return None
    return consumed[name] if consumed is not None else None


def _is_excused(
    subject: LintSubject, alternative: Alternative, known: KnownObjects, gates: FeatureGates
) -> bool:
    return subject.claim is not None and another_may_do(alternative, subject.claim, known, gates)


def _alternatives(subject: LintSubject) -> Iterator[Alternative]:
    if subject.claim is not None:
        yield from subject.claim.alternatives()


def _path(alternative: Alternative, name: str) -> str:
    return f"{alternative.path}.capacity.requests[{name}]"
