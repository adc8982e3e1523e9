"""PriorityClasses."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import Generation, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, flag, number
from allot.apiserver.printers.words import age_of, text_at
from allot.validation import core_objects


def priority_class_defaults(priority_class: Data) -> Data:
    return fill(priority_class, preemptionPolicy="PreemptLowerPriority", value=0)


def _priority_class_row(priority_class: RawObject, age: Age) -> list[Cell]:
    return [
        priority_class.metadata.name,
        int(priority_class.get("value", default=0)),
        bool(priority_class.get("globalDefault", default=False)),
        age_of(priority_class, age),
        text_at(priority_class, "preemptionPolicy"),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=core_objects.validate_priority_class,
            validate_change=core_objects.validate_priority_class_update,
            generation=Generation(()),
        ),
    ),
    defaults=priority_class_defaults,
    table=Table(
        (NAME, number("Value"), flag("Global-Default"), AGE, Column("PreemptionPolicy")),
        _priority_class_row,
    ),
)
