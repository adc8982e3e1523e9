"""APIServices."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of
from allot.validation.api_service import validate_api_service
from allot.validation.core_names import path_segment_problems

HTTPS: Final = 443


def api_service_defaults(service: Data) -> Data:
    return change(
        service, "spec", lambda spec: change(spec, "service", lambda s: fill(s, port=HTTPS))
    )


def _service_row(service: RawObject, age: Age) -> list[Cell]:
    backend = service.get("spec", "service")
    where = "Local"
    if backend is not None:
        where = f"{backend.get('namespace', '')}/{backend.get('name', '')}"
    return [service.metadata.name, where, _availability(service), age_of(service, age)]


def _availability(service: RawObject) -> str:
    condition = service.condition("Available")
    if condition is None:
        return "Unknown"
    status, reason = str(condition.get("status", "")), condition.get("reason", "")
    return status if status == "True" or not reason else f"{status} ({reason})"


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(name_problems=path_segment_problems, validate=validate_api_service, status={}),
    ),
    defaults=api_service_defaults,
    table=Table((NAME, Column("Service"), Column("Available"), AGE), _service_row),
    subresources=(STATUS,),
    plain_tables=("status",),
    without_effect="requests are not passed on to extension API servers",
)
