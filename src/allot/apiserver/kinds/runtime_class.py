"""RuntimeClasses."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation import core_objects
from allot.validation.immutable_fields import unchanged


def _runtime_class_row(runtime_class: RawObject, age: Age) -> list[Cell]:
    return [
        runtime_class.metadata.name,
        text_at(runtime_class, "handler"),
        age_of(runtime_class, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=core_objects.validate_runtime_class,
            validate_change=unchanged("handler"),
            needs_resource_version=True,
        ),
    ),
    table=Table((NAME, Column("Handler"), AGE), _runtime_class_row),
    is_created_by_update=True,
)
