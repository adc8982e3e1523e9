"""FlowSchemas."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, count_at, or_none, text_at
from allot.validation.flow_control import validate_flow_schema

PRECEDENCE: Final = 1000


def flow_schema_defaults(schema: Data) -> Data:
    """A precedence of zero is none."""
    return change(
        schema,
        "spec",
        lambda spec: (
            spec if spec.get("matchingPrecedence") else {**spec, "matchingPrecedence": PRECEDENCE}
        ),
    )


def _schema_row(schema: RawObject, age: Age) -> list[Cell]:
    return [
        schema.metadata.name,
        or_none(text_at(schema, "spec", "priorityLevelConfiguration", "name")),
        count_at(schema, "spec", "matchingPrecedence"),
        text_at(schema, "spec", "distinguisherMethod", "type") or NONE,
        age_of(schema, age),
        _dangling(schema),
    ]


def _matching_order(schema: RawObject) -> tuple[int, str]:
    return count_at(schema, "spec", "matchingPrecedence"), schema.metadata.name


def _dangling(schema: RawObject) -> str:
    found = schema.condition("Dangling")
    return "?" if found is None else str(found.get("status", ""))


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(validate=validate_flow_schema, status={}, generation=COUNTED)
    ),
    defaults=flow_schema_defaults,
    table=Table(
        (
            NAME,
            Column("PriorityLevel"),
            Column("MatchingPrecedence"),
            Column("DistinguisherMethod"),
            AGE,
            Column("MissingPL"),
        ),
        _schema_row,
        order=_matching_order,
    ),
    subresources=(STATUS,),
    without_effect="requests are limited by the server's own flow control",
)
