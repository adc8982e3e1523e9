"""Capacities in slices that the API server accepts, and that no request can use (KEP-5075)."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.slices import DeviceCapacity, ResourceSlice
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import LintSubject


def slice_capacities(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    slice_ = subject.object
    if not isinstance(slice_, ResourceSlice):
        return
    for index, device in enumerate(slice_.spec.devices or ()):
        for name, capacity in device.capacity.items():
            path = f"spec.devices[{index}].capacity[{name}]"
            yield from _capacity_problems(device.name, name, capacity, path)


def _capacity_problems(
    device: str, name: str, capacity: DeviceCapacity, path: str
) -> Iterator[Problem]:
    if capacity.value.nanos < 0:
        yield Problem(
            rules.NEGATIVE_CAPACITY,
            f"{path}.value",
            f"the capacity {name} of {device} is {capacity.value}: no request can be satisfied from it",
        )
    policy = capacity.request_policy
    if policy is None:
        return
    range_ = policy.valid_range
    if range_ is not None and range_.min is not None and range_.min.nanos < 0:
        yield Problem(
            rules.NEGATIVE_MINIMUM,
            f"{path}.requestPolicy.validRange.min",
            f"the minimum {range_.min} is negative; write 0 or more",
        )
    if policy.default is not None and policy.default > capacity.value:
        yield Problem(
            rules.DEFAULT_ABOVE_VALUE,
            f"{path}.requestPolicy.default",
            f"the default {policy.default} is more than the capacity {capacity.value}: a request "
            f"that does not state an amount of {name} never fits",
        )
