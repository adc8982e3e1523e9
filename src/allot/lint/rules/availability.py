"""Whether the devices that are known can satisfy an alternative.

An alternative that cannot be satisfied is not reported while another one can: prioritized lists name
hardware that not every cluster has (KEP-4816).
"""

from __future__ import annotations

from collections import Counter

from allot.allocation.capacity import CapacityError, consumption
from allot.allocation.devices import PoolDevice
from allot.api.quantity import Quantity
from allot.api.slices import DeviceCapacity
from allot.features import FRACTIONAL_CAPACITY_RANGE, FeatureGates
from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import Alternative, ClaimView


def another_may_do(
    alternative: Alternative, claim: ClaimView, known: KnownObjects, gates: FeatureGates
) -> bool:
    """Whether another alternative of the same request may be satisfied."""
    return any(
        other.request == alternative.request
        and other.label != alternative.label
        and not _cannot_be_satisfied(other, known, gates)
        for other in claim.alternatives()
    )


def _cannot_be_satisfied(
    alternative: Alternative, known: KnownObjects, gates: FeatureGates
) -> bool:
    candidates = known.candidates(alternative)
    if candidates is None:
        return False  # nothing is known
    fractional = FRACTIONAL_CAPACITY_RANGE in gates
    able = tuple(
        device
        for device in candidates
        if all(
            name in device.device.capacity
            and not refusal(name, amount, device.device.capacity[name], fractional=fractional)
            for name, amount in alternative.capacity.items()
        )
    )
    return not able or alternative.needed > most_on_one_node(able)[0]


def most_on_one_node(devices: tuple[PoolDevice, ...]) -> tuple[int, str]:
    """The most devices that one node can use, and its name. A node selector may select any node."""
    by_node = Counter(_node_of(device) for device in devices)
    anywhere = by_node.pop("", 0)
    if not by_node:
        return anywhere, ""
    node, count = max(by_node.items(), key=lambda item: (item[1], item[0]))
    return count + anywhere, node


def _node_of(device: PoolDevice) -> str:
    spec = device.slice.spec
    return (device.device.node_name if spec.per_device_node_selection else spec.node_name) or ""


def refusal(name: str, amount: Quantity, capacity: DeviceCapacity, *, fractional: bool) -> str:
    """Why a device does not provide the amount; empty if it does."""
    try:
        consumed = consumption([(name, capacity)], {name: amount}, fractional=fractional)
    except CapacityError as error:
        return str(error)
    if consumed is not None:
        if consumed[name] <= capacity.value:
            return ""
        rounded = f" (rounded up to {consumed[name]})" if consumed[name] != amount else ""
        return f"it has {capacity.value}{rounded}"
    policy = capacity.request_policy
    if policy is not None and policy.valid_range is not None:
        return f"the maximum of its request policy is {policy.valid_range.max}"
    values = ", ".join(map(str, policy.valid_values)) if policy is not None else ""
    return f"the valid values of its request policy are {values}"
