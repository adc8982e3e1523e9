"""Services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.metadata import validate_labels
from allot.validation.names import validate_label, validate_label_key, validate_subdomain
from allot.validation.networking import PORT_RANGE, validate_port_name
from allot.validation.parts import parts
from allot.validation.service_addresses import SPEC, validate_addresses
from allot.validation.service_traffic import validate_traffic

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
SERVICE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
AFFINITIES: Final = ("ClientIP", "None")
MAX_AFFINITY_SECONDS: Final = 86_400


def _shown_port(protocol: str, number: int) -> dict[str, Any]:
    """Protocol and number of a port, as Kubernetes shows them in errors."""
    return {
        "Name": "",
        "Protocol": protocol,
        "AppProtocol": None,
        "Port": number,
        "TargetPort": 0,
        "NodePort": 0,
    }


def validate_service(service: RawObject) -> Iterator[FieldError]:
    spec = service.get("spec", default={})
    type_, ports = spec.get("type") or "", parts(spec, "ports")
    if type_ == "ExternalName":
        name = str(spec.get("externalName") or "").removesuffix(".")
        if name:
            yield from validate_subdomain(name, SPEC / "externalName")
        else:
            yield required(SPEC / "externalName")
    elif not ports and spec.get("clusterIP") != "None":
        yield required(SPEC / "ports")
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = SPEC / "ports" @ index
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            yield required(path / "name")
        elif name:
            yield from validate_label(name, path / "name")
            if name in names:
                yield duplicate(path / "name", name)
        names.add(name)
        if not 1 <= (port.get("port") or 0) <= 65535:
            yield invalid(path / "port", port.get("port") or 0, PORT_RANGE)
        protocol = port.get("protocol") or ""
        if not protocol:
            yield required(path / "protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(path / "protocol", protocol, PROTOCOLS)
        yield from _validate_target_port(port.get("targetPort"), path / "targetPort")
        if port.get("appProtocol") is not None:
            yield from validate_label_key(port["appProtocol"], path / "appProtocol")
        if type_ == "ClusterIP" and port.get("nodePort"):
            yield forbidden(path / "nodePort", "may not be used when `type` is 'ClusterIP'")
    known: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        number, protocol = port.get("port") or 0, port.get("protocol") or ""
        if (protocol, number) in known:
            yield duplicate(SPEC / "ports" @ index, _shown_port(protocol, number))
        known.add((protocol, number))
    yield from validate_labels(spec.get("selector") or {}, SPEC / "selector")
    yield from validate_affinity(spec)
    if type_ not in SERVICE_TYPES:
        yield not_supported(SPEC / "type", type_, SERVICE_TYPES)
    yield from validate_addresses(spec)
    yield from validate_traffic(spec)


def _validate_target_port(port: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(port, str):
        yield from validate_port_name(port, path)
    elif not 1 <= (port or 0) <= 65535:
        yield invalid(path, port or 0, PORT_RANGE)


def validate_affinity(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    affinity = spec.get("sessionAffinity") or ""
    if not affinity:
        yield required(SPEC / "sessionAffinity")
    elif affinity not in AFFINITIES:
        yield not_supported(SPEC / "sessionAffinity", affinity, AFFINITIES)
    client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    seconds = client_ip.get("timeoutSeconds")
    if affinity == "ClientIP" and seconds is not None and not 0 < seconds <= MAX_AFFINITY_SECONDS:
        path = SPEC / "sessionAffinityConfig" / "clientIP" / "timeoutSeconds"
        rule = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
        yield invalid(path, seconds, rule)
