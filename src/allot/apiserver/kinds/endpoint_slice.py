"""EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, change_each, fill, without
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import Generation, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, UNSET, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, first_few, text_at
from allot.validation import endpoint_slices
from allot.validation.fields import FieldError


def endpoint_slice_defaults(endpoint_slice: Data) -> Data:
    endpoint_slice = change_each(endpoint_slice, "endpoints", _endpoint_defaults)
    return change_each(endpoint_slice, "ports", _endpoint_port_defaults)


def _endpoint_defaults(endpoint: Data) -> Data:
    return change(fill(endpoint, conditions={}), "hints", _hint_defaults)


def _hint_defaults(hints: Data) -> Data:
    return change_each(hints, "forZones", lambda zone: zone if "name" in zone else {"name": ""})


def _endpoint_port_defaults(port: Data) -> Data:
    defaults = {"name": "", "protocol": "TCP"}
    missing = {name: value for name, value in defaults.items() if port.get(name) is None}
    return port | missing if missing else port


class EndpointSliceStrategy(RawStrategy):
    """EndpointSlices show lists that are empty as null. Their writer does not own those it does not name."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return super().prepare_create(_prepared(new), request)

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        return super().prepare_update(_prepared(new), old, request)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self._validate_metadata_update(new, old)
        yield from endpoint_slices.validate_endpoint_slice_update(new, old)

    def warnings(self, new: RawObject) -> list[str]:
        return endpoint_slices.address_type_warnings(new) + super().warnings(new)


def _prepared(endpoint_slice: RawObject) -> RawObject:
    """With all of its lists, and without the topology that v1 has for what older versions said."""
    data = change_each(
        dict(endpoint_slice.data),
        "endpoints",
        lambda endpoint: without(endpoint, "deprecatedTopology"),
    )
    for name in ("endpoints", "ports"):
        endpoint_slice = endpoint_slice.with_value(data.get(name) or None, name)
    return endpoint_slice.with_missing({"endpoints": None, "ports": None})


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
        EndpointSliceStrategy,
        KindRules(
            validate=endpoint_slices.validate_endpoint_slice,
            warnings=endpoint_slices.address_warnings,
            generation=Generation((("endpoints",), ("ports",), ("metadata", "labels"))),
        ),
    ),
    defaults=endpoint_slice_defaults,
    table=Table(
        (NAME, Column("AddressType"), Column("Ports"), Column("Endpoints"), AGE),
        _endpoint_slice_row,
    ),
)
