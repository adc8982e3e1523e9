"""Where a webhook is: a URL, or a service, whose endpoints are looked up in Services and EndpointSlices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from allot.apiserver.dynamic_admission.webhook_client import Endpoint, WebhookCallError
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named

SERVICE_NAME = "kubernetes.io/service-name"


class WebhookEndpoints:
    """Finds the address of a webhook."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._services = resource_named("", "services")
        self._slices = resource_named("discovery.k8s.io", "endpointslices")

    async def find(self, client: Mapping[str, Any], seconds: int) -> Endpoint:
        """The endpoint of a `clientConfig`; `WebhookCallError` if it has none."""
        query = f"timeout={seconds}s"
        url = client.get("url")
        if url:
            parsed = urlsplit(url)
            host, port = parsed.hostname or "", parsed.port or 443
            path = f"{parsed.path or '/'}?{query}"
            shown = f"https://{parsed.netloc}{path}"
            return Endpoint(host, port, host, path, shown)
        service = client.get("service") or {}
        name, namespace = service.get("name", ""), service.get("namespace", "")
        port = service.get("port") or 443
        server_name = f"{name}.{namespace}.svc"
        path = f"{service.get('path') or '/'}?{query}"
        shown = f"https://{server_name}:{port}{path}"
        try:
            host, target = await self._address(namespace, name, port)
        except LookupError as error:
            raise WebhookCallError(f'Post "{shown}": {error.args[0]}') from None
        return Endpoint(host, target, server_name, path, shown)

    async def _address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """An address behind a port of a service; LookupError with the reason if it has none."""
        services = self._caches.of(self._services)
        await services.refresh()
        stored = services.get(self._caches.key(self._services, namespace, name))
        if stored is None:
            raise LookupError(f'service "{name}" not found')
        spec = stored.object.get("spec", default={})
        ports = [each for each in spec.get("ports") or () if each.get("port") == port]
        if not ports:
            raise LookupError(f'no service port {port} found for service "{name}"')
        if spec.get("type") == "ExternalName":
            return str(spec.get("externalName", "")), port
        slices = self._caches.of(self._slices)
        await slices.refresh()
        for each in slices.select(key_prefix(self._slices, namespace)):
            if each.object.metadata.labels.get(SERVICE_NAME) != name:
                continue
            found = _ready_address(each.object.data, ports[0].get("name", ""))
            if found is not None:
                return found
        raise LookupError(f'no endpoints available for service "{name}"')


def _ready_address(endpoints: Mapping[str, Any], port_name: str) -> tuple[str, int] | None:
    ports = [
        each["port"]
        for each in endpoints.get("ports") or ()
        if (each.get("name") or "") == port_name and isinstance(each.get("port"), int)
    ]
    for endpoint in endpoints.get("endpoints") or ():
        is_ready = (endpoint.get("conditions") or {}).get("ready", True)
        addresses = endpoint.get("addresses") or ()
        if ports and addresses and is_ready is not False:
            return str(addresses[0]), ports[0]
    return None
