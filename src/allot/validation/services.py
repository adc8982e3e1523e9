"""Services and EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    not_supported,
    required,
)
from allot.validation.ip_addresses import (
    NOT_AN_ADDRESS,
    address_name_problems,
    parse_address,
)
from allot.validation.metadata import IMMUTABLE
from allot.validation.names import validate_label
from allot.validation.parts import parts
from allot.validation.pod_basics import PORT_RANGE

SPEC: Final = FieldPath("spec")
HEADLESS: Final = "None"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
SERVICE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
ADDRESS_TYPES: Final = ("IPv4", "IPv6", "FQDN")


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
    if type_ not in SERVICE_TYPES:
        yield not_supported(SPEC / "type", type_, SERVICE_TYPES)
    if type_ == "ExternalName":
        if not spec.get("externalName"):
            yield required(SPEC / "externalName")
    elif not ports and spec.get("clusterIP") != "None":
        yield required(SPEC / "ports")
    names: set[str] = set()
    known: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path = SPEC / "ports" @ index
        number, protocol = port.get("port") or 0, port.get("protocol") or ""
        if (protocol, number) in known:
            yield duplicate(path, _shown_port(protocol, number))
        known.add((protocol, number))
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
    yield from _validate_service_addresses(spec)


def _validate_service_addresses(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    if spec.get("type") != "ExternalName" and spec.get("clusterIP") != HEADLESS:
        addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
        for index, address in enumerate(addresses):
            if address and parse_address(str(address)) is None:
                yield invalid(SPEC / "clusterIPs" @ index, address, NOT_AN_ADDRESS)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        for problem in address_name_problems(str(address)):
            yield invalid(SPEC / "externalIPs" @ index, address, problem)


def validate_service_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """The address of a service is immutable once set."""
    before, after = old.get("spec", "clusterIP"), new.get("spec", "clusterIP")
    has_address = "ExternalName" not in (old.get("spec", "type"), new.get("spec", "type"))
    if before and has_address and after != before:
        yield invalid(SPEC / "clusterIP", after or "", IMMUTABLE)


def validate_endpoint_slice(endpoint_slice: RawObject) -> Iterator[FieldError]:
    type_ = endpoint_slice.get("addressType", default="")
    if not type_:
        yield required(FieldPath("addressType"))
    elif type_ not in ADDRESS_TYPES:
        yield not_supported(FieldPath("addressType"), type_, ADDRESS_TYPES)
