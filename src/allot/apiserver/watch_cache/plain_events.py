"""Events as schedulers write them, of which there are as many as pods: nothing is to be said about their types and fields."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from allot.api.meta import ObjectMeta
from allot.api.plain_json import PlainStruct, read_plain

MAX_PLAIN: Final = 4096
"""Bytes."""
HEAD: Final = b'{"kind":"Event","apiVersion":"events.k8s.io/v1",'


class _Metadata(PlainStruct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Reference(PlainStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Event(PlainStruct, frozen=True, kw_only=True):
    kind: str
    api_version: str
    metadata: _Metadata
    type: str = ""
    reason: str = ""
    event_time: Annotated[datetime, msgspec.Meta(tz=True)]
    action: str = ""
    regarding: _Reference
    note: str = ""
    reporting_controller: str = ""
    reporting_instance: str = ""


_decoder: Final = msgspec.json.Decoder(_Event)


def plain_event(body: bytes) -> tuple[ObjectMeta, dict[str, Any]] | None:
    """The metadata and the whole of the Event of events.k8s.io/v1 in `body`; None if it has other fields than events of schedulers, or is written otherwise."""
    if not body.startswith(HEAD) or len(body) > MAX_PLAIN:
        return None
    event = read_plain(body, _decoder)
    if event is None or not event.event_time.microsecond:  # a time without them is refused
        return None
    metadata = ObjectMeta(name=event.metadata.name, namespace=event.metadata.namespace)
    return metadata, msgspec.json.decode(body)
