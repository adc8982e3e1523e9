"""Allocates the cluster IP and the node ports of services."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.defaults.services import SERVICE_NETWORK, with_addresses
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Pacer, Workers
from allot.apiserver.registry.begin_hooks import Begun
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import MISSING, Put, Store
from allot.validation.fields import FieldPath, invalid
from allot.validation.ip_addresses import parse_address


class ServiceAddresses:
    """Allocates unique cluster IPs and node ports.

    Every allocation also writes one common key, on condition that the key has not changed since the free addresses
    were read: so no address is allocated twice, also with several API servers.
    """

    KEY: Final = "service-addresses"

    def __init__(self, store: Store, caches: Caches, workers: Workers) -> None:
        self._store = store
        self._workers = workers
        self._caches = caches
        self._services = resource_named("", "services")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._services and operation != "delete"

    async def begin(self, attributes: AdmissionAttributes) -> Begun:
        lock = await self._store.get(self.KEY)
        cache = self._caches.of(self._services)
        await cache.refresh()
        own = self._caches.key(self._services, *attributes.key)
        addresses: set[Any] = set()
        ports: set[Any] = set()
        async for stored in Pacer().each(cache.select(cache.prefix)):
            if stored.key != own:
                address, taken = await self._workers.run(
                    stored.decoding_work, partial(_stored_addresses, stored)
                )
                addresses.add(address)
                ports.update(taken)
        service: RawObject = attributes.new
        before: RawObject | None = attributes.old
        self._refuse_outside(attributes)
        self._refuse_taken(attributes, addresses - {None, "", "None"}, ports - {None, 0})
        data = with_addresses(dict(service.data), addresses, ports)
        if before is not None and _addresses(data) == _addresses(before.data):
            return Begun(type(service)(data))
        operation = Put(self.KEY, b"", lock.revision if lock else MISSING)
        return Begun(type(service)(data), (operation,))

    def _refuse_outside(self, attributes: AdmissionAttributes) -> None:
        """Reject an address that is not in the cluster's range with 422."""
        address, _ = _addresses(attributes.new.data)
        parsed = parse_address(str(address or ""))
        before = None if attributes.old is None else _addresses(attributes.old.data)[0]
        if parsed is None or parsed in SERVICE_NETWORK or address == before:
            return
        rule = (
            f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
            f"The range of valid IPs is {SERVICE_NETWORK}"
        )
        error = invalid(FieldPath("spec") / "clusterIPs", [address], rule)
        raise api_errors.invalid("", "Service", attributes.key.name, [error])

    def _refuse_taken(
        self, attributes: AdmissionAttributes, addresses: set[Any], ports: set[Any]
    ) -> None:
        """Reject an address or port of another service with 422."""
        errors = []
        spec = FieldPath("spec")
        address, asked = _addresses(attributes.new.data)
        if address in addresses:
            errors.append(
                invalid(
                    spec / "clusterIPs",
                    [address],
                    f"failed to allocate IP {address}: provided IP is already allocated",
                )
            )
        errors += [
            invalid(spec / "ports" @ index / "nodePort", port, "provided port is already allocated")
            for index, port in enumerate(asked)
            if port in ports
        ]
        if errors:
            raise api_errors.invalid("", "Service", attributes.key.name, errors)


def _addresses(service: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The cluster IP and the node ports of a service."""
    spec = service.get("spec") or {}
    return spec.get("clusterIP"), [port.get("nodePort") for port in spec.get("ports") or ()]


def _stored_addresses(stored: StoredObject) -> tuple[Any, list[Any]]:
    return _addresses(stored.object.data)
