"""Writes the condition `Available` of APIServices.

Local ones always are. This server passes no requests on to others, so an extension API server is never available; the
reason is the first of Kubernetes' checks that fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.request import Caller, RequestInfo, WriteRequest
from allot.apiserver.pacing import Pacer
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.write_pipeline import Update, pipeline_for
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

USER: Final = "system:apiserver"
CONDITION: Final = "Available"
SERVICE_NAME: Final = "kubernetes.io/service-name"
SECONDS_BETWEEN_LOOKS: Final = 1.0
"""Where services are named: changes of services and EndpointSlices come in bursts."""
NOT_PASSED_ON: Final = "requests are not passed on to extension API servers"


class Availability(NamedTuple):
    """A condition without its time."""

    status: str
    reason: str
    message: str


LOCAL: Final = Availability("True", "Local", "Local APIServices are always available")


def availability(
    api_service: RawObject, service: RawObject | None, slices: Iterable[RawObject]
) -> Availability:
    """`service` and `slices` are what the APIService names, and the EndpointSlices of that."""
    backend = api_service.get("spec", "service")
    if not isinstance(backend, dict):
        return LOCAL
    name, namespace, port = backend.get("name"), backend.get("namespace"), backend.get("port", 443)
    shown = f'service/{name} in "{namespace}"'
    if service is None:
        return Availability("False", "ServiceNotFound", f"{shown} is not present")
    if service.get("spec", "type", default="ClusterIP") == "ClusterIP":
        ports = service.get("spec", "ports", default=[])
        names = [each.get("name", "") for each in ports if each.get("port") == port]
        if not names:
            return Availability(
                "False", "ServicePortError", f"{shown} is not listening on port {port}"
            )
        found = list(slices)
        if not found:
            return Availability(
                "False", "EndpointsNotFound", f"cannot find endpointslices for {shown}"
            )
        if not any(_has_address(each, names[0]) for each in found):
            return Availability(
                "False",
                "MissingEndpoints",
                f'endpointslices for {shown} have no addresses with port name "{names[0]}"',
            )
    group, version = api_service.get("spec", "group"), api_service.get("spec", "version")
    host = service.get("spec", "externalName") or service.get("spec", "clusterIP")
    url = f"https://{host}:{port}/apis/{group}/{version}"
    message = f"failing or missing response from {url}: {NOT_PASSED_ON}"
    return Availability("False", "FailedDiscoveryCheck", message)


def _has_address(slice_: RawObject, port_name: str) -> bool:
    ports = slice_.get("ports", default=[])
    if not any((port.get("name") or "") == port_name for port in ports):
        return False
    return any(
        endpoint.get("addresses") and (endpoint.get("conditions") or {}).get("ready") is not False
        for endpoint in slice_.get("endpoints", default=[])
    )


def with_availability(api_service: RawObject, found: Availability, now: datetime) -> RawObject:
    conditions: list[dict[str, Any]] = api_service.get("status", "conditions", default=[])
    before = next((each for each in conditions if each.get("type") == CONDITION), {})
    if Availability(*(before.get(name, "") for name in Availability._fields)) == found:
        return api_service
    is_same = before.get("status") == found.status
    time = before.get("lastTransitionTime") if is_same else written_time(now)
    condition = {"type": CONDITION, "lastTransitionTime": time, **found._asdict()}
    others = [each for each in conditions if each.get("type") != CONDITION]
    return api_service.with_value([*others, condition], "status", "conditions")


class ApiServiceAvailability:
    """Looks at all APIServices when one of them changes, or a service or an EndpointSlice if one of them names a service."""

    def __init__(self, caches: Caches, objects: ObjectStore, clock: Callable[[], datetime]) -> None:
        self._caches = caches
        self._objects = objects
        self._clock = clock
        self._api_services = resource_named("apiregistration.k8s.io", "apiservices")
        self._services = resource_named("", "services")
        self._slices = resource_named("discovery.k8s.io", "endpointslices")
        self._changed = asyncio.Event()
        self._has_remote = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        listeners = {
            self._api_services: self._changed.set,
            self._services: self._backend_changed,
            self._slices: self._backend_changed,
        }
        for resource, listener in listeners.items():
            cache = self._caches.of(resource)
            await cache.start()
            cache.listen(listener)
        self._changed.set()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._look_at_all()
            if self._has_remote:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    def _backend_changed(self) -> None:
        if self._has_remote:
            self._changed.set()

    async def _look_at_all(self) -> None:
        cache, pacer = self._caches.of(self._api_services), Pacer()
        self._has_remote = False
        slices: dict[tuple[str, str], list[RawObject]] | None = None
        async for stored in pacer.each(list(cache.select(cache.prefix))):
            api_service: RawObject = stored.object
            found = LOCAL
            if isinstance(backend := api_service.get("spec", "service"), dict):
                self._has_remote = True
                slices = await self._slices_by_service(pacer) if slices is None else slices
                found = self._availability(api_service, backend, slices)
            if with_availability(api_service, found, self._clock()) is api_service:
                continue
            try:
                await self._write(api_service.metadata.name, found)
            except ApiError as error:  # deleted meanwhile, or denied
                log.info("status of APIService %s: %s", api_service.metadata.name, error)
            except Exception:
                log.exception("status of APIService %s", api_service.metadata.name)

    def is_remote(self, group: str, version: str) -> bool:
        """Whether requests for an API would have to be passed on."""
        key = self._caches.key(self._api_services, "", f"{version}.{group}")
        stored = self._caches.of(self._api_services).get(key)
        return stored is not None and stored.object.get("spec", "service") is not None

    def _availability(
        self,
        api_service: RawObject,
        backend: dict[str, Any],
        slices: dict[tuple[str, str], list[RawObject]],
    ) -> Availability:
        name, namespace = str(backend.get("name")), str(backend.get("namespace"))
        key = self._caches.key(self._services, namespace, name)
        stored = self._caches.of(self._services).get(key)
        service: RawObject | None = None if stored is None else stored.object
        return availability(api_service, service, slices.get((namespace, name), ()))

    async def _slices_by_service(self, pacer: Pacer) -> dict[tuple[str, str], list[RawObject]]:
        """All EndpointSlices by namespace and name of their service."""
        cache = self._caches.of(self._slices)
        found: dict[tuple[str, str], list[RawObject]] = {}
        async for stored in pacer.each(list(cache.select(cache.prefix))):
            metadata = stored.object.metadata
            if name := metadata.labels.get(SERVICE_NAME):
                found.setdefault((metadata.namespace, name), []).append(stored.object)
        return found

    async def _write(self, name: str, found: Availability) -> None:
        def updated(old: RawObject, write: WriteRequest) -> RawObject:
            return with_availability(old, found, write.now)

        info = RequestInfo(Caller(USER, {}, lambda _: True), "v1", "update", subresource="status")
        update = Update(updated, pipeline_for(self._api_services).update_status)
        await self._objects.update(self._api_services, ObjectKey("", name), (update, info))
