"""PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data
from allot.apiserver.defaults.workloads import with_counters
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, number
from allot.apiserver.printers.words import count_at
from allot.validation import workloads
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import FieldError


def budget_defaults(budget: Data) -> Data:
    return with_counters(budget, _COUNTERS)


def _budget_row(budget: RawObject, age: Age) -> list[Cell]:
    return [
        budget.metadata.name,
        str(budget.get("spec", "minAvailable", default="N/A")),
        str(budget.get("spec", "maxUnavailable", default="N/A")),
        count_at(budget, "status", "disruptionsAllowed"),
        age(budget.metadata.creation_timestamp),
    ]


_COUNTERS: Final = {
    "disruptionsAllowed": 0,
    "currentHealthy": 0,
    "desiredHealthy": 0,
    "expectedPods": 0,
}


class BudgetStrategy(RawStrategy):
    """Budgets: the counts in their status are validated, too."""

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_status_update(new, old, request)
        yield from workloads.validate_budget_status(new)


DEFINITION: Final = KindDefinition(
    strategy=partial(
        BudgetStrategy,
        KindRules(
            name_problems=path_segment_problems,
            validate=workloads.validate_budget,
            status=_COUNTERS,
            generation=COUNTED,
            needs_resource_version=True,
        ),
    ),
    defaults=budget_defaults,
    table=Table(
        (
            NAME,
            Column("Min Available"),
            Column("Max Unavailable"),
            number("Allowed Disruptions"),
            AGE,
        ),
        _budget_row,
    ),
    subresources=(STATUS,),
)
