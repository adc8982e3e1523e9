"""What a newly allocated share consumes (KEP-5075): every capacity that its device publishes, none negative.

Kubernetes v1.38 does not check this. A share without consumed capacity would let others overcommit the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from allot.api.claims import ResourceClaim
from allot.api.identities import DeviceId
from allot.api.slices import Device
from allot.features import FeatureGates
from allot.rules import CHECK_CONSUMED_CAPACITY
from allot.validation.fields import FieldError, FieldPath, invalid, required


def validate_consumed_capacity(
    new: ResourceClaim,
    old: ResourceClaim,
    published: Mapping[DeviceId, Device],
    gates: FeatureGates,
) -> Iterator[FieldError]:
    """Errors of a new allocation. Stored ones are not validated again."""
    allocation = new.status.allocation
    if (
        CHECK_CONSUMED_CAPACITY not in gates
        or allocation is None
        or old.status.allocation is not None
    ):
        return
    for index, result in enumerate(allocation.devices.results):
        if result.share_id is None:
            continue
        path = FieldPath("status.allocation.devices.results") @ index / "consumedCapacity"
        for name, amount in sorted(result.consumed_capacity.items()):
            if amount.nanos < 0:
                yield invalid(path @ name, str(amount), "must not be negative")
        device = published.get(result.device_id)
        for name in sorted(device.capacity if device is not None else ()):
            if name not in result.consumed_capacity:
                yield required(
                    path @ name, "a share states what it consumes of each capacity of its device"
                )
