"""ComponentStatuses: the health of the store, the scheduler and the controller manager, probed when asked for."""

from __future__ import annotations

from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table

HEALTHY: Final = "Healthy"
_WORDS: Final = {"True": "Healthy", "False": "Unhealthy"}


def _component_status_row(component: RawObject, _: Age) -> list[Cell]:
    condition: dict[str, str] = next(
        (each for each in component.get("conditions", default=[]) if each.get("type") == HEALTHY),
        {},
    )
    return [
        component.metadata.name,
        _WORDS.get(condition.get("status", ""), "Unknown"),
        condition.get("message", ""),
        condition.get("error", ""),
    ]


DEFINITION: Final = KindDefinition(
    table=Table(
        (NAME, Column("Status"), Column("Message"), Column("Error")), _component_status_row
    ),
    verbs=("get", "list"),
)
