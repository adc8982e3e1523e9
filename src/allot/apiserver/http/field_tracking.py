"""managedFields of objects that are written otherwise than by apply."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.decoding import DecodeError
from allot.api.times import written_time
from allot.apiserver.http.field_managers import (
    field_manager_of,
    new_document,
    partial_document,
    updated_object,
)
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.managed_fields.field_manager import manager_name
from allot.apiserver.registry.write_pipeline import Accepted, Outcome, Update
from allot.apiserver.watch_cache.codecs import codec_for

Managers = tuple[dict[str, Any], ...]
_EMPTY_LIST: Final = re.compile(rb'"managedFields"\s*:\s*\[\s*\]')


def manager_of(request: ApiRequest) -> str:
    """Who makes a request, as managedFields call it."""
    return manager_name(
        request.query.get("fieldManager", ""), request.headers.get("user-agent", "")
    )


def managers_of_new(obj: Any, request: ApiRequest, target: Target, now: datetime) -> Managers:
    """managedFields of a new object."""
    sent = obj.metadata.managed_fields
    # With entries that were sent it is compared as a whole.
    entries = field_manager_of(target).created(
        partial_document(obj, target) if sent else new_document(obj, target),
        sent,
        manager_of(request),
        written_time(now),
    )
    return tuple(entries)


def managers_after(
    new: Any, old: Any, request: ApiRequest, target: Target, now: datetime
) -> Managers:
    """managedFields of an updated object."""
    try:
        entries = field_manager_of(target).updated(
            updated_object(new, old, target),
            old.metadata.managed_fields,
            new.metadata.managed_fields,
            manager_of(request),
            written_time(now),
        )
    except DecodeError:  # it cannot be said in the version of an earlier manager
        return ()
    return tuple(entries)


def with_reset_managers(obj: Any, body: bytes, target: Target) -> Any:
    """The object in `body`: an empty list of managers means to start over, and none at all does not."""
    if b'"managedFields"' not in body or _EMPTY_LIST.search(body) is None:
        return obj
    metadata = msgspec.json.decode(body, type=dict[str, Any]).get("metadata") or {}
    return with_managers(obj, ({},), target) if metadata.get("managedFields") == [] else obj


def with_managers(obj: Any, managers: Managers, target: Target) -> Any:
    """The object with these managedFields, in the order in which they are written: a client may have sent another."""
    metadata = obj.metadata
    if not managers and not metadata.managed_fields:
        return obj
    changed = replace(metadata, managed_fields=managers)
    return codec_for(target.resource).with_metadata(obj, changed)


def tracked(update: Update, request: ApiRequest, target: Target) -> Update:
    """The same update, with managedFields of what the client proposes: admission owns nothing."""

    managers: Managers = ()

    def propose(old: Any, write: WriteRequest) -> Any:
        nonlocal managers
        new = update.propose(old, write)
        managers = managers_after(new, old, request, target, write.now)
        return new

    def complete(new: Any, old: Any, write: WriteRequest) -> Outcome:
        outcome = update.complete(new, old, write)
        if not isinstance(outcome, Accepted):
            return outcome
        return Accepted(with_managers(outcome.object, managers, target), outcome.warnings)

    return Update(propose, complete)


def with_managers_of(
    propose: Callable[[Any, WriteRequest], tuple[Any, Managers]],
    complete: Callable[[Any, Any, WriteRequest], Outcome],
    target: Target,
) -> Update:
    """An update whose outcome has the managedFields that come with the proposed object."""
    proposed: Managers = ()

    def first(old: Any, write: WriteRequest) -> Any:
        nonlocal proposed
        new, proposed = propose(old, write)
        return new

    def then(new: Any, old: Any, write: WriteRequest) -> Outcome:
        outcome = complete(new, old, write)
        if not isinstance(outcome, Accepted):
            return outcome
        return Accepted(with_managers(outcome.object, proposed, target), outcome.warnings)

    return Update(first, then)
