"""EndpointSlices."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change_each, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import Generation, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, UNSET, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, first_few, text_at
from allot.validation import services
from allot.validation.immutable_fields import unchanged


def endpoint_slice_defaults(endpoint_slice: Data) -> Data:
    endpoint_slice = fill(endpoint_slice, endpoints=[])
    endpoint_slice = change_each(
        endpoint_slice, "endpoints", lambda endpoint: fill(endpoint, conditions={})
    )
    return change_each(endpoint_slice, "ports", _endpoint_port_defaults)


def _endpoint_port_defaults(port: Data) -> Data:
    port = fill(port, protocol="TCP")
    return port | {"name": ""} if port.get("name") is None else port


def _endpoint_slice_row(endpoint_slice: RawObject, age: Age) -> list[Cell]:
    ports: list[dict[str, Any]] = endpoint_slice.get("ports", default=[])
    addresses = [
        address
        for endpoint in endpoint_slice.get("endpoints", default=[])
        for address in endpoint.get("addresses") or []
    ]
    return [
        endpoint_slice.metadata.name,
        text_at(endpoint_slice, "addressType"),
        first_few([port.get("port") or "*" for port in ports]) or UNSET,
        first_few(addresses) or UNSET,
        age_of(endpoint_slice, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=services.validate_endpoint_slice,
            validate_change=unchanged("addressType"),
            generation=Generation((("endpoints",), ("ports",), ("metadata", "labels"))),
        ),
    ),
    defaults=endpoint_slice_defaults,
    table=Table(
        (NAME, Column("AddressType"), Column("Ports"), Column("Endpoints"), AGE),
        _endpoint_slice_row,
    ),
)
