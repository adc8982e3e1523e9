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
        consumed, device = result.consumed_capacity, published.get(result.device_id)
        negative = [name for name, amount in consumed.items() if amount.nanos < 0]
        missing = device.capacity.keys() - consumed.keys() if device is not None else ()
        if not negative and not missing:
            continue
        path = FieldPath("status.allocation.devices.results") @ index / "consumedCapacity"
        for name in sorted(negative):
            yield invalid(path @ name, str(consumed[name]), "must not be negative")
        for name in sorted(missing):
            yield required(
                path @ name, "a share states what it consumes of each capacity of its device"
            )
