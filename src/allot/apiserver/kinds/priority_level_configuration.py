"""PriorityLevelConfigurations."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation.flow_control import validate_priority_level

SHARES: Final = 30
_QUEUING: Final = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


def priority_level_defaults(level: Data) -> Data:
    def limited(given: Data) -> Data:
        given = fill(given, nominalConcurrencyShares=SHARES, lendablePercent=0)
        return change(given, "limitResponse", lambda r: change(r, "queuing", _queuing))

    def exempt(given: Data) -> Data:
        return fill(given, nominalConcurrencyShares=0, lendablePercent=0)

    def spec_defaults(spec: Data) -> Data:
        return change(change(spec, "limited", limited), "exempt", exempt)

    return change(level, "spec", spec_defaults)


def _queuing(given: Data) -> Data:
    """Zero is not set."""
    missing = {name: value for name, value in _QUEUING.items() if not given.get(name)}
    return {**given, **missing} if missing else given


def _level_row(level: RawObject, age: Age) -> list[Cell]:
    shares = level.get("spec", "limited", "nominalConcurrencyShares")
    queuing: dict[str, Any] = level.get("spec", "limited", "limitResponse", "queuing", default={})
    return [
        level.metadata.name,
        text_at(level, "spec", "type"),
        shares if isinstance(shares, int) else NONE,
        *(queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        age_of(level, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(validate=validate_priority_level, status={}, generation=COUNTED)
    ),
    defaults=priority_level_defaults,
    table=Table(
        (
            NAME,
            Column("Type"),
            Column("NominalConcurrencyShares"),
            Column("Queues"),
            Column("HandSize"),
            Column("QueueLengthLimit"),
            AGE,
        ),
        _level_row,
    ),
    subresources=(STATUS,),
    without_effect="requests are limited by the server's own flow control",
)
