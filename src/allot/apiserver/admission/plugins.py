"""The admission plugins that are always on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import Admitted, Attempt
from allot.apiserver.defaults import (
    Denied,
    PriorityClasses,
    resolve_priority,
    with_addresses,
    with_job_selector,
)
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Pacer
from allot.apiserver.registry.caches import Caches, resource_named
from allot.storage.interface import MISSING, Put, Store
from allot.validation.fields import FieldPath, invalid

KEPT_NAMESPACES: Final = ("default", "kube-public", "kube-system")


class NamespaceLifecycle:
    """Keeps the namespaces that every cluster has."""

    def __init__(self) -> None:
        self._namespaces = resource_named("", "namespaces")

    def handles(self, verb: str, resource: Resource) -> bool:
        return resource is self._namespaces and verb == "delete"

    async def admit(self, attempt: Attempt) -> Admitted:
        name = attempt.key.name
        if name in KEPT_NAMESPACES:
            raise api_errors.forbidden(attempt.resource, name, "this namespace may not be deleted")
        return Admitted(attempt.new)


class PodPriority:
    """Looks up the number behind a new pod's priority class."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._classes = resource_named("scheduling.k8s.io", "priorityclasses")
        self._pods = resource_named("", "pods")

    def handles(self, verb: str, resource: Resource) -> bool:
        return resource is self._pods and verb == "create"

    async def admit(self, attempt: Attempt) -> Admitted:
        cache = self._caches.of(self._classes)
        await cache.refresh()
        classes = [stored.object.data async for stored in Pacer().each(cache.select(cache.prefix))]
        by_name = {found["metadata"]["name"]: found for found in classes}
        defaults = [found for found in classes if found.get("globalDefault")]
        lowest = min(defaults, key=lambda found: found.get("value", 0), default=None)
        known = PriorityClasses(by_name.get, lowest)
        resolved = resolve_priority(dict(attempt.new.data), known)
        if isinstance(resolved, Denied):
            raise api_errors.forbidden(attempt.resource, attempt.key.name, resolved.message)
        return Admitted(type(attempt.new)(resolved))


class JobSelector:
    """Gives a new job the selector and labels that carry its uid."""

    def __init__(self) -> None:
        self._jobs = resource_named("batch", "jobs")

    def handles(self, verb: str, resource: Resource) -> bool:
        return resource is self._jobs and verb == "create"

    async def admit(self, attempt: Attempt) -> Admitted:
        job: RawObject = attempt.new
        data: dict[str, Any] = with_job_selector(dict(job.data))
        return Admitted(type(job)(data))


class ServiceAddresses:
    """Gives services cluster IPs and node ports that nobody else has.

    Whoever gives one away also writes one common key, and only if it is what it was before looking for what
    is free: so no address is given away twice, whichever server does it.
    """

    KEY: Final = "service-addresses"

    def __init__(self, store: Store, caches: Caches) -> None:
        self._store = store
        self._caches = caches
        self._services = resource_named("", "services")

    def handles(self, verb: str, resource: Resource) -> bool:
        return resource is self._services and verb != "delete"

    async def admit(self, attempt: Attempt) -> Admitted:
        lock = await self._store.get(self.KEY)
        cache = self._caches.of(self._services)
        await cache.refresh()
        own = self._caches.key(self._services, *attempt.key)
        addresses: set[Any] = set()
        ports: set[Any] = set()
        async for stored in Pacer().each(cache.select(cache.prefix)):
            if stored.key != own:
                address, taken = _addresses(stored.object.data)
                addresses.add(address)
                ports.update(taken)
        service: RawObject = attempt.new
        self._refuse_taken(attempt, addresses - {None, "", "None"}, ports - {None, 0})
        data = with_addresses(dict(service.data), addresses, ports)
        before: RawObject | None = attempt.old
        if before is not None and _addresses(data) == _addresses(before.data):
            return Admitted(type(service)(data))
        operation = Put(self.KEY, b"", lock.revision if lock else MISSING)
        return Admitted(type(service)(data), (operation,))

    def _refuse_taken(self, attempt: Attempt, addresses: set[Any], ports: set[Any]) -> None:
        """422 for an address or port that another service has."""
        errors = []
        spec = FieldPath("spec")
        address, asked = _addresses(attempt.new.data)
        if address in addresses:
            errors.append(
                invalid(
                    spec / "clusterIPs" @ 0,
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
            raise api_errors.invalid("", "Service", attempt.key.name, errors)


def _addresses(service: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The cluster IP and the node ports of a service."""
    spec = service.get("spec") or {}
    return spec.get("clusterIP"), [port.get("nodePort") for port in spec.get("ports") or ()]
