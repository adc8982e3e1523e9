"""IPAddresses."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import joined
from allot.validation.immutable_fields import unchanged
from allot.validation.ip_addresses import address_name_problems
from allot.validation.networking import validate_ip_address


def _address_row(address: RawObject, _: Age) -> list[Cell]:
    parent = address.get("spec", "parentRef", default={})
    names = (parent.get(field) for field in ("group", "resource", "namespace", "name"))
    return [address.metadata.name, joined((name for name in names if name), "/")]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            name_problems=address_name_problems,
            validate=validate_ip_address,
            validate_change=unchanged("spec"),
        ),
    ),
    table=Table((NAME, Column("ParentRef")), _address_row),
    without_effect="services get addresses from the server's own range",
)
