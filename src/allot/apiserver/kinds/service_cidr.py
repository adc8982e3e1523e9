"""ServiceCIDRs."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, joined
from allot.validation.immutable_fields import unchanged
from allot.validation.networking import validate_service_cidr


def _service_cidr_row(service_cidr: RawObject, age: Age) -> list[Cell]:
    cidrs = service_cidr.get("spec", "cidrs", default=[])
    return [service_cidr.metadata.name, joined(cidrs), age_of(service_cidr, age)]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(validate=validate_service_cidr, validate_change=unchanged("spec"), status={}),
    ),
    table=Table((NAME, Column("CIDRs"), AGE), _service_cidr_row),
    subresources=(STATUS,),
    without_effect="services get addresses from the server's own range",
)
