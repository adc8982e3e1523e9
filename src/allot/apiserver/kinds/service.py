"""Services. Addresses are allocated by `allot.apiserver.registry.service_addresses`."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.services import keep_addresses, service_defaults
from allot.apiserver.kinds.definition import SERVICE_PROXY, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import joined, labels_text, or_none, text_at
from allot.validation import service_addresses, services
from allot.validation.formats import label_problems


def _service_row(service: RawObject, age: Age) -> list[Cell]:
    return [
        service.metadata.name,
        text_at(service, "spec", "type"),
        or_none(service.get("spec", "clusterIP")),
        _external_addresses(service),
        or_none(joined(_port_text(port) for port in service.get("spec", "ports", default=[]))),
        age(service.metadata.creation_timestamp),
        labels_text(service.get("spec", "selector")),
    ]


def _external_addresses(service: RawObject) -> str:
    external = service.get("spec", "externalIPs", default=[])
    match service.get("spec", "type"):
        case "LoadBalancer":
            ingress = service.get("status", "loadBalancer", "ingress", default=[])
            given = sorted({item.get("ip") or item.get("hostname") or "" for item in ingress})
            return joined([*(address for address in given if address), *external]) or "<pending>"
        case "ExternalName":
            return text_at(service, "spec", "externalName")
    return or_none(joined(external))


def _port_text(port: dict[str, Any]) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', 'TCP')}"


TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"


def _service_warnings(service: RawObject) -> list[str]:
    spec = service.get("spec", default={})
    found = []
    if TOPOLOGY_HINTS in service.metadata.annotations:
        found.append(
            f"annotation {TOPOLOGY_HINTS} is deprecated,"
            " please use service.kubernetes.io/topology-mode instead"
        )
    if spec.get("clusterIP") == service_addresses.HEADLESS:
        ignored = {
            "loadBalancerIP": bool(spec.get("loadBalancerIP")),
            "externalIPs": bool(spec.get("externalIPs")),
            "SessionAffinity": spec.get("sessionAffinity") == "ClientIP",
        }
        found += [
            f"spec.{name} is ignored for headless services"
            for name, is_set in ignored.items()
            if is_set
        ]
    elif spec.get("externalIPs"):
        found.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )
    return found


class ServiceStrategy(RawStrategy):
    """Services: what the server gave out stays, whether or not a client repeats it."""

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_update(new, old, request)
        return type(new)(keep_addresses(dict(new.data), dict(old.data)))


DEFINITION: Final = KindDefinition(
    strategy=partial(
        ServiceStrategy,
        KindRules(
            label_problems,
            services.validate_service,
            service_addresses.validate_service_update,
            status={"loadBalancer": {}},
            warnings=_service_warnings,
        ),
    ),
    defaults=service_defaults,
    table=Table(
        (
            NAME,
            Column("Type"),
            Column("Cluster-IP"),
            Column("External-IP"),
            Column("Port(s)"),
            AGE,
            wide("Selector"),
        ),
        _service_row,
    ),
    subresources=(SERVICE_PROXY, STATUS),
    selectable_fields={"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
    returns_deleted_in=("v1",),
    is_created_by_update=True,
)
