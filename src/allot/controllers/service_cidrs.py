"""ServiceCIDRs are ready from the start, and stay until no address of theirs is in use.

An IPAddress in a range is in use unless another range has it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError
from allot.client.resources import IP_ADDRESSES, SERVICE_CIDRS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.volume_protection import with_finalizer
from allot.controllers.workloads.conditions import ConditionUpdate, conditions_of, with_condition
from allot.controllers.workloads.status_writes import write_status

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
READY: Final = ConditionUpdate("Ready", "True", "", "Kubernetes Service CIDR is ready")
TERMINATING: Final = ConditionUpdate(
    "Ready",
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)


def networks_of(service_cidr: RawObject) -> list[IPv4Network | IPv6Network]:
    return [ip_network(cidr) for cidr in service_cidr.get("spec", "cidrs", default=[])]


def is_in_use(
    service_cidr: RawObject, others: Iterable[RawObject], addresses: Iterable[str]
) -> bool:
    """Whether an address is in this range and in none of the others that stay."""
    own = networks_of(service_cidr)
    remaining = [
        network
        for other in others
        if other.metadata.deletion_timestamp is None
        for network in networks_of(other)
    ]
    return any(
        any(address in network for network in own)
        and not any(address in network for network in remaining)
        for address in map(ip_address, addresses)
    )


class ServiceCidrController(QueueController[ObjectKey]):
    """Writes the condition `Ready`, and holds ranges in use with a finalizer."""

    name = "service-cidr-controller"
    queue_name = "ipaddresses"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._cidrs = context.informers.informer(SERVICE_CIDRS)
        self._cidrs.add_handlers(
            on_add=self._look_at,
            on_update=lambda _, new: self._look_at(new),
            on_delete=self._forget,
        )
        self._addresses = context.informers.informer(IP_ADDRESSES)
        self._addresses.add_handlers(on_delete=lambda _: self._look_at_deleted())
        self._deleted: set[ObjectKey] = set()

    def _look_at(self, service_cidr: RawObject) -> None:
        self.queue.add(service_cidr.key)
        if service_cidr.metadata.deletion_timestamp is not None:
            self._deleted.add(service_cidr.key)
        self._look_at_deleted()

    def _forget(self, service_cidr: RawObject) -> None:
        self._deleted.discard(service_cidr.key)

    def _look_at_deleted(self) -> None:
        """Another range, or an address that is gone, may let them go."""
        for key in self._deleted:
            self.queue.add(key)

    async def reconcile(self, key: ObjectKey) -> None:
        found = self._cidrs.get(key)
        if found is None:
            return
        is_deleted = found.metadata.deletion_timestamp is not None
        if is_deleted and FINALIZER in found.metadata.finalizers and self._is_in_use(found):
            await self._write_condition(found, TERMINATING)
            return
        changed = with_finalizer(found, FINALIZER, is_wanted=not is_deleted)
        if changed is not found:
            try:
                changed = await self.client.update(SERVICE_CIDRS, changed)
            except ApiStatusError as error:
                if not error.is_not_found:
                    raise
                return
        if not is_deleted:
            await self._write_condition(changed, READY)

    def _is_in_use(self, service_cidr: RawObject) -> bool:
        others = [each for each in self._cidrs.list() if each.key != service_cidr.key]
        return is_in_use(
            service_cidr, others, (each.metadata.name for each in self._addresses.list())
        )

    async def _write_condition(self, service_cidr: RawObject, wanted: ConditionUpdate) -> None:
        conditions = with_condition(conditions_of(service_cidr), wanted, self.clock.today())
        await write_status(
            self.client, SERVICE_CIDRS, service_cidr, {"conditions": list(conditions)}
        )
