"""The endpoints of the service `kubernetes`: where pods reach the API server."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

SERVICE: Final = "kubernetes"
NAMESPACE: Final = "default"
PORT_NAME: Final = "https"
_UNROUTED: Final = {4: "192.0.2.1", 6: "2001:db8::1"}
"""Addresses of documentation: no packet is sent to them."""


class ServerEndpoint(NamedTuple):
    """An address that other machines can connect to."""

    address: str
    port: int


def server_endpoint(bound: str) -> ServerEndpoint | None:
    """The endpoint of a server that listens on `bound`, a host and a port.

    A server that listens on a loopback address has none: Kubernetes does not accept such addresses in endpoints.
    """
    host, _, port = bound.rpartition(":")
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return None
    if address.is_unspecified:
        address = ip_address(_own_address(address.version))
    if address.is_loopback or address.is_unspecified:
        return None
    return ServerEndpoint(str(address), int(port))


def _own_address(version: int) -> str:
    """The address of the interface with the default route; an unspecified one without such a route."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_UNROUTED[version], 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "0.0.0.0" if version == 4 else "::"  # noqa: S104 - not bound to


def endpoint_documents(endpoint: ServerEndpoint) -> list[dict[str, Any]]:
    """The Endpoints and the EndpointSlice."""
    metadata = {"name": SERVICE, "namespace": NAMESPACE}
    port = {"name": PORT_NAME, "port": endpoint.port, "protocol": "TCP"}
    subset = {"addresses": [{"ip": endpoint.address}], "ports": [port]}
    version = ip_address(endpoint.address).version
    return [
        {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": metadata | {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [subset],
        },
        {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": metadata
            | {"generation": 1, "labels": {"kubernetes.io/service-name": SERVICE}},
            "addressType": f"IPv{version}",
            "endpoints": [{"addresses": [endpoint.address], "conditions": {"ready": True}}],
            "ports": [port],
        },
    ]


def with_address(stored: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The stored Endpoints or EndpointSlice with the address in `wanted`; those of other servers are kept.

    Endpoints of another port are of servers that have gone.
    """
    if wanted["kind"] == "EndpointSlice":
        is_same = stored.get("ports") == wanted["ports"]
        return _joined(stored, wanted, "endpoints") if is_same else stored | _parts(wanted)
    subsets = stored.get("subsets") or [{}]
    (own,) = wanted["subsets"]
    if len(subsets) > 1 or subsets[0].get("ports") != own["ports"]:
        return stored | _parts(wanted)
    return stored | {"subsets": [_joined(subsets[0], own, "addresses")]}


def _parts(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "metadata"}


def _joined(stored: dict[str, Any], wanted: dict[str, Any], field: str) -> dict[str, Any]:
    found = stored.get(field) or []
    return stored | {field: [*found, *(item for item in wanted[field] if item not in found)]}
