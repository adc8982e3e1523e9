"""Endpoints."""

from __future__ import annotations

from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change_each, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import first_few, or_none


def endpoints_defaults(endpoints: Data) -> Data:
    return change_each(
        endpoints,
        "subsets",
        lambda subset: change_each(subset, "ports", lambda port: fill(port, protocol="TCP")),
    )


def _endpoints_row(endpoints: RawObject, age: Age) -> list[Cell]:
    served: list[str] = []
    for subset in endpoints.get("subsets", default=[]):
        addresses = [address.get("ip", "") for address in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        served += [
            _address(address, port.get("port", 0)) for port in ports for address in addresses
        ] or (addresses if not ports else [])
    metadata = endpoints.metadata
    return [metadata.name, or_none(first_few(served)), age(metadata.creation_timestamp)]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


DEFINITION: Final = KindDefinition(
    defaults=endpoints_defaults,
    table=Table((NAME, Column("Endpoints"), AGE), _endpoints_row),
    is_created_by_update=True,
)
