"""Finding, setting and removing conditions in a status, with their transition times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.controllers.workloads.accessors import (
    Json,
)


class ConditionUpdate(NamedTuple):
    """A condition without times, which are added when it is set."""

    type: str
    status: str
    reason: str
    message: str


def conditions_of(obj: RawObject) -> tuple[Json, ...]:
    return tuple(obj.get("status", "conditions", default=()))


def find_condition(conditions: Iterable[Json], type_: str) -> Json | None:
    return next((found for found in conditions if found.get("type") == type_), None)


def is_true(conditions: Iterable[Json], type_: str) -> bool:
    found = find_condition(conditions, type_)
    return found is not None and found.get("status") == "True"


def without_condition(conditions: Iterable[Json], type_: str) -> tuple[Json, ...]:
    return tuple(found for found in conditions if found.get("type") != type_)


def with_condition(
    conditions: Sequence[Json],
    wanted: ConditionUpdate,
    now: datetime,
    *,
    dated: Sequence[str] = (),
    refresh: bool = False,
) -> tuple[Json, ...]:
    """The conditions with this one set.

    A condition with the same status and reason stays unchanged, unless `refresh` is set. `dated` are
    timestamps beside lastTransitionTime that are set on every write.
    """
    known = find_condition(conditions, wanted.type)
    is_new = known is None or known.get("status") != wanted.status
    if not refresh and known is not None and not is_new and known.get("reason") == wanted.reason:
        return tuple(conditions)
    moment = written_time(now)
    made: Json = {
        **wanted._asdict(),
        "lastTransitionTime": moment if is_new or known is None else known["lastTransitionTime"],
        **dict.fromkeys(dated, moment),
    }
    # As in Kubernetes, a condition that changes becomes the last one.
    return (*without_condition(conditions, wanted.type), made)
