"""Events as values, and the interface that components record them with."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Final, NamedTuple, Protocol, TypeVar

from allot.client.resources import Resource

T = TypeVar("T")

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
NOTE_LIMIT: Final = 1024
_CUT: Final = " ..."
_NAMES: Final = (
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "fieldPath",
)
_has_value: Final = itemgetter(1)


class ObjectReference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
    """The part of the object, such as `spec.containers{main}`."""

    @property
    def identity(self) -> tuple[str, ...]:
        """All but the version of the object."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid, self.field_path)

    def as_json(self) -> dict[str, str]:
        return dict(filter(_has_value, zip(_NAMES, self, strict=True)))


def reference_to(resource: Resource[T], obj: T) -> ObjectReference:
    codec = resource.codec
    return ObjectReference(
        resource.api_version,
        resource.kind,
        *codec.key(obj),
        codec.uid(obj),
        codec.resource_version(obj),
    )


class EventSource(NamedTuple):
    """The component that reports an event, and its host or instance."""

    component: str
    instance: str = ""


class Event(NamedTuple):
    """An event. Two that differ only in the object's version are repetitions."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    source: EventSource
    related: ObjectReference | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations of the Event object, for programs."""
    is_routine: bool = False
    """Whether it may wait while the component is busy."""


class Recorder(Protocol):
    """What components record events with."""

    def event(
        self,
        regarding: ObjectReference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
        annotations: Mapping[str, str] | None = None,
        *,
        is_routine: bool = False,
    ) -> None:
        """Record an event about an object. Never blocks or raises.

        One that is routine may wait while the component is busy.
        """


def shortened(note: str, limit: int = NOTE_LIMIT) -> str:
    """A note within the API's limit, with an ellipsis if it was truncated."""
    if 4 * len(note) <= limit:
        return note  # however many bytes its characters take
    raw = note.encode()
    if len(raw) <= limit:
        return note
    return raw[: limit - len(_CUT)].decode("utf-8", "ignore") + _CUT
