"""Which claims hold a device and for which pods, kept up to date claim by claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allot.allocation.allocated_devices import Ledger
from allot.allocation.explain.amounts import amount
from allot.api.base import ApiObject, always
from allot.api.claims import DeviceRequestAllocationResult, ResourceClaim
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.slices import Device
from allot.features import FeatureGates
from allot.scheduler.plugins.dynamic_resources.binding_conditions import examined_devices


class Holder(ApiObject, frozen=True):
    """A claim that holds a device or shares of it, and the pods that it is reserved for."""

    claim: str = always(str)
    pods: tuple[str, ...] = always(tuple)
    consumed: dict[str, str] = always(dict)
    """Capacity that its shares consume, by name."""
    waits_for: tuple[str, ...] = ()
    """Binding conditions that are not True yet."""
    failure: str = ""
    """A binding failure condition that is True."""


class DeviceHolders:
    """The claims of a cluster, by the devices that they hold."""

    def __init__(self, gates: FeatureGates, claims: Iterable[ResourceClaim] = ()) -> None:
        self.ledger = Ledger(gates)
        self._by_name: dict[str, ResourceClaim] = {}
        self._same_for_all: dict[str, Holder] = {}
        """Holders of claims of which every device says the same: without shares and binding conditions."""
        for claim in claims:
            self.put(claim)

    def put(self, claim: ResourceClaim) -> None:
        """Add a claim, or take another version of it."""
        if claim.status.allocation is None:
            self.remove(claim)
            return
        name = str(claim.key)
        self._by_name[name] = claim
        self._same_for_all.pop(name, None)
        self.ledger.add(name, claim.status.allocation)

    def remove(self, claim: ResourceClaim) -> None:
        name = str(claim.key)
        if self._by_name.pop(name, None) is not None:
            self._same_for_all.pop(name, None)
            self.ledger.remove(name)

    def devices_held(self) -> dict[DeviceId, None]:
        return dict.fromkeys((*self.ledger.dedicated, *self.ledger.shared))

    def holders(self, device: DeviceId) -> tuple[Holder, ...]:
        names = self.ledger.holders(device)
        if len(names) > 1:
            names = tuple(sorted(set(names)))
        return tuple(
            self._same_for_all.get(name) or self._holder(name, self._by_name[name], device)
            for name in names
        )

    def _holder(self, name: str, claim: ResourceClaim, device: DeviceId) -> Holder:
        allocation = claim.status.allocation
        assert allocation is not None
        if not any(map(_has_own_facts, allocation.devices.results)):
            return self._same_for_all.setdefault(name, Holder(name, _pods(claim)))
        return self._holder_of_device(claim, device)

    def _holder_of_device(self, claim: ResourceClaim, device: DeviceId) -> Holder:
        allocation = claim.status.allocation
        assert allocation is not None
        consumed: dict[str, Quantity] = {}
        for result in allocation.devices.results:
            if result.device_id == device:
                for name, share in result.consumed_capacity.items():
                    consumed[name] = consumed[name] + share if name in consumed else share
        examined = [each for each in examined_devices(claim) if each.device.device_id == device]
        failures = [each.failure for each in examined if each.failure is not None]
        return Holder(
            claim=str(claim.key),
            pods=_pods(claim),
            consumed={name: str(total) for name, total in sorted(consumed.items())},
            waits_for=() if failures else tuple(name for each in examined for name in each.lacking),
            failure=failures[0].type if failures else "",
        )

    def remaining(self, id_: DeviceId, device: Device) -> dict[str, str]:
        """The capacity that is left of a device that can be shared."""
        if not device.allow_multiple_allocations:
            return {}
        consumed: Mapping[str, int] = self.ledger.consumed(id_, device.capacity.items())
        is_taken = self.ledger.is_dedicated(id_)
        return {
            name: str(
                amount(
                    0 if is_taken else max(0, capacity.value.nanos - consumed.get(name, 0)),
                    capacity.value,
                )
            )
            for name, capacity in sorted(device.capacity.items())
        }


def _has_own_facts(result: DeviceRequestAllocationResult) -> bool:
    return bool(
        result.binding_conditions or result.binding_failure_conditions or result.consumed_capacity
    )


def _pods(claim: ResourceClaim) -> tuple[str, ...]:
    return tuple(
        f"{claim.metadata.namespace}/{consumer.name}"
        for consumer in claim.status.reserved_for
        if consumer.resource == "pods"
    )
