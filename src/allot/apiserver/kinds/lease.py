"""Leases."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation import core_objects


def _lease_row(lease: RawObject, age: Age) -> list[Cell]:
    return [lease.metadata.name, text_at(lease, "spec", "holderIdentity"), age_of(lease, age)]


def lease_defaults(lease: Data) -> Data:
    return fill(lease, spec={})


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(validate=core_objects.validate_lease, needs_resource_version=True)
    ),
    defaults=lease_defaults,
    table=Table((NAME, Column("Holder"), AGE), _lease_row),
    is_created_by_update=True,
)
