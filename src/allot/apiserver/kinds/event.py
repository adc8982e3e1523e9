"""Events. Those of events.k8s.io are stored as core events, with other field names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import always_written
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.ages import time_at
from allot.apiserver.printers.column import Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import joined, text_at
from allot.validation import events
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import FieldError


def _event_row(event: RawObject, age: Age) -> list[Cell]:
    first = time_at(event, "firstTimestamp") or time_at(event, "eventTime")
    last = time_at(event, "series", "lastObservedTime") or time_at(event, "lastTimestamp") or first
    kind, name = text_at(event, "involvedObject", "kind"), text_at(event, "involvedObject", "name")
    count = event.get("series", "count") or event.get("count") or 1
    return [
        age(last),
        text_at(event, "type"),
        text_at(event, "reason"),
        f"{kind.lower()}/{name}" if name else kind.lower(),
        text_at(event, "involvedObject", "fieldPath"),
        _source(event),
        text_at(event, "message").strip(),
        age(first),
        str(count),
        event.metadata.name,
    ]


def _source(event: RawObject) -> str:
    component = event.get("source", "component") or event.get("reportingComponent") or ""
    host = event.get("source", "host") or event.get("reportingInstance") or ""
    return joined((part for part in (component, host) if part), ", ")


_ALWAYS_WRITTEN: Final[Mapping[str, Any]] = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""Fields that the Go type writes even if they are empty."""


class EventStrategy(RawStrategy):
    """Events show all of their times, the unknown ones as null. Their writer does not own those."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return _with_empty_fields(super().prepare_create(new, request))

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        return _with_empty_fields(super().prepare_update(new, old, request))

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        """Metadata is looked at when all else is right."""
        found = list(events.validate_event(new))
        yield from found or super().validate_create(new, request)


class EventsGroupStrategy(EventStrategy):
    """Events of events.k8s.io: with more rules, after metadata, and without changes."""

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        return chain(
            events.validate_event(new, "reportingController"),
            RawStrategy.validate_create(self, new, request),
            events.validate_new_event(new),
        )

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from events.validate_event(new, "reportingController")
        yield from self._validate_metadata_update(new, old)
        yield from events.validate_event_change(new, old)


def _with_empty_fields(event: RawObject) -> RawObject:
    event = event.with_missing(_ALWAYS_WRITTEN)
    series = event.rest.get("series")
    if series is None:
        return event
    return event.with_value(always_written(series, "lastObservedTime"), "series")


_FIELDS: Final = {
    "involvedObject.kind": "involvedObject.kind",
    "involvedObject.namespace": "involvedObject.namespace",
    "involvedObject.name": "involvedObject.name",
    "involvedObject.uid": "involvedObject.uid",
    "involvedObject.apiVersion": "involvedObject.apiVersion",
    "involvedObject.resourceVersion": "involvedObject.resourceVersion",
    "involvedObject.fieldPath": "involvedObject.fieldPath",
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "source.component",
    "type": "type",
}
_EVENTS_GROUP_FIELDS: Final = {
    name.replace("involvedObject", "regarding").replace("Component", "Controller"): path
    for name, path in _FIELDS.items()
    if name != "source"
}


DEFINITION: Final = KindDefinition(
    strategy=partial(
        EventStrategy,
        KindRules(
            path_segment_problems,
            validate_change=lambda new, _: events.validate_event(new),
        ),
    ),
    table=Table(
        (
            Column("Last Seen"),
            Column("Type"),
            Column("Reason"),
            Column("Object"),
            wide("Subobject"),
            wide("Source"),
            Column("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ),
        _event_row,
    ),
    selectable_fields=_FIELDS,
    is_created_by_update=True,
)
DEFINITION_BY_GROUP: Final = {
    "events.k8s.io": DEFINITION._replace(
        strategy=partial(EventsGroupStrategy, KindRules()), selectable_fields=_EVENTS_GROUP_FIELDS
    )
}
