"""Events, of their old and of their new API. Both are stored with the field names of the old one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.fields import FieldError, FieldPath, invalid, required
from allot.validation.formats import label_key_problems
from allot.validation.metadata import IMMUTABLE, MAX_BYTES_OF_CHARACTER

MAX_WORD: Final = 128
MAX_NOTE: Final = 1024
_SHORT_WORD: Final = MAX_WORD // MAX_BYTES_OF_CHARACTER
_SHORT_NOTE: Final = MAX_NOTE // MAX_BYTES_OF_CHARACTER
"""Texts of so many characters are within the limits, which are in bytes, whatever the characters are."""
CLUSTER_EVENT_NAMESPACE: Final = "default"
NAMESPACES_OF_CLUSTER_EVENTS: Final = ("default", "kube-system")
"""Where events with an `eventTime` are that are about cluster-scoped objects."""
EVENT_TYPES: Final = ("Normal", "Warning")
_UNCHANGED: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action",
    "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
_REFERENCE_FIELDS: Final = {
    "Kind": "kind", "Namespace": "namespace", "Name": "name", "UID": "uid", "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion", "FieldPath": "fieldPath",
}  # fmt: skip


def validate_event(
    event: RawObject, controller: str = "reportingComponent"
) -> Iterator[FieldError]:
    """One with an `eventTime` says who reports what. One without is in the namespace of what it is about.

    `controller` is what the API calls the field with the reporter.
    """
    data = event.rest
    if data.get("eventTime") is None:
        yield from _validate_namespace(event)
        return
    if event.metadata.namespace not in NAMESPACES_OF_CLUSTER_EVENTS:
        about = event.get("involvedObject", "namespace", default="")
        if not about:
            yield _wrong_namespace(about)
    reporter = data.get("reportingComponent") or ""
    if not reporter:
        yield required(FieldPath(controller))
    for problem in _reporter_problems(reporter):
        yield invalid(FieldPath(controller), reporter, problem)
    for field in ("reportingInstance", "action", "reason"):
        word = data.get(field)
        if not word:
            yield required(FieldPath(field))
        elif len(word) > _SHORT_WORD and len(word.encode()) > MAX_WORD:
            yield _wrong(field, f"can have at most {MAX_WORD} characters")
    note = data.get("message") or ""
    if len(note) > _SHORT_NOTE and len(note.encode()) > MAX_NOTE:
        yield _wrong("message", f"can have at most {MAX_NOTE} characters")


@lru_cache(256)
def _reporter_problems(reporter: str) -> tuple[str, ...]:
    """Of the few components that report very many events."""
    return tuple(label_key_problems(reporter))


def _validate_namespace(event: RawObject) -> Iterator[FieldError]:
    """An event is in the namespace of its object, or in the default one for cluster-scoped objects."""
    about = event.get("involvedObject", "namespace", default="")
    if event.metadata.namespace != (about or CLUSTER_EVENT_NAMESPACE):
        yield _wrong_namespace(about)


def _wrong_namespace(about: str) -> FieldError:
    path = FieldPath("involvedObject") / "namespace"
    return invalid(path, about, "does not match event.namespace")


def validate_new_event(event: RawObject) -> Iterator[FieldError]:
    """A new event of the new API has a time and a type, and no fields of the old API."""
    data = event.rest
    if "series" in data:
        yield from validate_series(data["series"])
    if data.get("eventTime") is None:
        yield required(FieldPath("eventTime"))
    type_ = data.get("type") or ""
    if type_ not in EVENT_TYPES:
        yield _wrong("type", f"has invalid value: {type_}")
    for field in filter(data.get, _OLD_FIELDS):
        yield _wrong(field, "needs to be unset")


_OLD_FIELDS: Final = ("firstTimestamp", "lastTimestamp", "count", "source")


def validate_series(series: Mapping[str, Any] | None) -> Iterator[FieldError]:
    """Of an event of the new API."""
    if series is None:
        return
    path = FieldPath("series")
    if (series.get("count") or 0) < 2:
        yield invalid(path / "count", "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        yield required(path / "lastObservedTime")


def validate_event_change(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """Of an event of the new API: only its series changes."""
    if new.get("series") != old.get("series"):
        yield from validate_series(new.get("series"))
    for field in _UNCHANGED:
        value = new.get(field)
        if (value or None) != (old.get(field) or None):
            name = "reportingController" if field == "reportingComponent" else field
            yield invalid(FieldPath(name), _shown(field, value), IMMUTABLE)


def _shown(field: str, value: Any) -> Any:
    """References are shown as Kubernetes has them in memory."""
    if field not in ("involvedObject", "related") or value is None:
        return value
    return {name: value.get(key) or "" for name, key in _REFERENCE_FIELDS.items()}


def _wrong(field: str, rule: str) -> FieldError:
    """The value is not shown."""
    return invalid(FieldPath(field), "", rule)
