"""Services: defaults, and the addresses and ports the server gives out."""

from __future__ import annotations

from collections.abc import Container
from ipaddress import IPv4Network
from typing import Any, Final
from zlib import crc32

from allot.apiserver.defaults.filling import (
    Data,
    change_each,
    fill,
    is_missing,
    items,
    make,
    part,
    without,
)

AFFINITY_SECONDS: Final = 10_800
SERVICE_NETWORK: Final = IPv4Network("10.0.0.0/16")
"""As the ServiceCIDR `kubernetes` says."""
NODE_PORTS: Final = range(30_000, 32_768)
_WITH_IP: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_PORTS: Final = ("NodePort", "LoadBalancer")


def service_defaults(service: Data) -> Data:
    return make(service, "spec", _spec_defaults)


def _spec_defaults(spec: Data) -> Data:
    spec = fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "None":
        spec = without(spec, "sessionAffinityConfig")
    elif spec["sessionAffinity"] == "ClientIP":
        spec = _with_affinity_timeout(spec)
    spec = change_each(spec, "ports", _port_defaults)
    if spec["type"] in _WITH_IP and spec.get("internalTrafficPolicy") is None:
        spec = spec | {"internalTrafficPolicy": "Cluster"}
    if spec["type"] in _WITH_PORTS or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec = fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        spec = fill(spec, allocateLoadBalancerNodePorts=True)
    return spec


def _with_affinity_timeout(spec: Data) -> Data:
    client_ip = part(spec, "sessionAffinityConfig", "clientIP")
    if client_ip.get("timeoutSeconds") is not None:
        return spec
    return spec | {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}}


def _port_defaults(port: Data) -> Data:
    port = fill(port, protocol="TCP")
    target = port.get("targetPort")
    if (is_missing(target) or target == 0) and "port" in port:
        return port | {"targetPort": port["port"]}
    return port


# --- addresses ---

_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def keep_addresses(service: Data, old: Data) -> Data:
    """An update that does not mention the addresses and node ports of a service leaves them."""
    spec, before = service.get("spec"), old.get("spec")
    if not isinstance(spec, dict) or not isinstance(before, dict):
        return service
    spec = _without_other_types_fields(_with_same_addresses(spec, before), before)
    if spec.get("type") in _WITH_IP and before.get("type") in _WITH_IP:
        spec = fill(spec, **{name: before[name] for name in _ADDRESS_FIELDS if name in before})
    if spec.get("type") in _WITH_PORTS:
        spec = _keep_node_ports(spec, before)
    return service if spec is service["spec"] else service | {"spec": spec}


def _with_same_addresses(spec: Data, before: Data) -> Data:
    """A change of one of the two fields for the address changes both."""
    address = spec.get("clusterIP") or ""
    if address == before.get("clusterIP") or spec.get("clusterIPs") != before.get("clusterIPs"):
        return spec
    others = (spec.get("clusterIPs") or [])[1:]
    if address:
        return spec | {"clusterIPs": [address, *others]}
    return without(without(spec, "clusterIP"), "clusterIPs")


def _without_other_types_fields(spec: Data, before: Data) -> Data:
    """Without what only services of the type before have, if it is not changed."""
    gone: set[str] = set()
    if _changes_to_none_of(_WITH_IP, spec, before):
        gone.update((*_ADDRESS_FIELDS, "internalTrafficPolicy"))
    if _changes_to_none_of(("LoadBalancer",), spec, before):
        gone.update(("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"))
    if _changes_to_none_of(_WITH_PORTS, spec, before):
        gone.add("externalTrafficPolicy")
        numbers = [port.get("nodePort") for port in items(before, "ports")]
        if [port.get("nodePort") for port in items(spec, "ports")] == numbers:
            spec = change_each(spec, "ports", lambda port: without(port, "nodePort"))
    return {
        name: value for name, value in spec.items() if name not in gone or value != before.get(name)
    }


def _changes_to_none_of(types: tuple[str, ...], spec: Data, before: Data) -> bool:
    return before.get("type") in types and spec.get("type") not in types


def _keep_node_ports(spec: Data, before: Data) -> Data:
    """Ports are recognised by number and protocol."""
    numbers = {_identity(port): port.get("nodePort") for port in items(before, "ports")}
    asked_for = {port.get("nodePort") for port in items(spec, "ports")}

    def with_kept_port(port: Data) -> Data:
        number = numbers.get(_identity(port))
        if port.get("nodePort") or number is None or number in asked_for:
            return port
        return port | {"nodePort": number}

    return change_each(spec, "ports", with_kept_port)


def _identity(port: Data) -> tuple[Any, Any]:
    return (port.get("port"), port.get("protocol"))


def with_addresses(service: Data, taken_ips: Container[str], taken_ports: Container[int]) -> Data:
    """A service with a cluster IP and node ports, where it needs them and has none.

    What comes out depends only on the name of the service and on what is taken: the search starts
    at a place computed from the name and takes the next one that is free. If nothing is free, the
    service goes without.
    """
    spec = service.get("spec")
    if not isinstance(spec, dict):
        return service
    start = _start(service)
    if spec.get("type") in _WITH_IP:
        spec = _with_cluster_ip(spec, start, taken_ips)
    if spec.get("type") in _WITH_PORTS and spec.get("allocateLoadBalancerNodePorts") is not False:
        spec = _with_node_ports(spec, start, taken_ports)
    return service if spec is service["spec"] else service | {"spec": spec}


def _start(service: Data) -> int:
    metadata = part(service, "metadata")
    return crc32(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".encode())


def _with_cluster_ip(spec: Data, start: int, taken: Container[str]) -> Data:
    address = spec.get("clusterIP") or _free_address(start, taken)
    if not address:
        return spec
    return fill(
        spec,
        clusterIP=address,
        clusterIPs=[address],
        ipFamilies=["IPv6" if ":" in address else "IPv4"],
        ipFamilyPolicy="SingleStack",
    )


def _free_address(start: int, taken: Container[str]) -> str:
    # The first addresses are left to well-known services, such as the API server and DNS.
    hosts = range(256, SERVICE_NETWORK.num_addresses - 1)
    for step in range(len(hosts)):
        address = str(SERVICE_NETWORK[hosts[(start + step) % len(hosts)]])
        if address not in taken:
            return address
    return ""


def _with_node_ports(spec: Data, start: int, taken: Container[int]) -> Data:
    asked_for = {port.get("nodePort") for port in items(spec, "ports")}
    free = (
        number
        for step in range(len(NODE_PORTS))
        if (number := NODE_PORTS[(start + step) % len(NODE_PORTS)]) not in taken
        and number not in asked_for
    )

    def with_node_port(port: Data) -> Data:
        if port.get("nodePort"):
            return port
        number = next(free, None)
        return port | {"nodePort": number} if number else port

    return change_each(spec, "ports", with_node_port)
