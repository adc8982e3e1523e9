"""PATCH with `application/apply-patch+yaml`: fields are set, owned and removed as `managed_fields` decides.

An object that does not exist is created.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.decoding import DecodeError
from allot.api.managed_fields import without_managed_fields
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, Cause, Details, bad_request
from allot.apiserver.http.claim_names import ClaimNames, with_claim_names
from allot.apiserver.http.field_managers import (
    KindVersions,
    field_manager_of,
    parts_of,
    plain_document,
)
from allot.apiserver.http.field_tracking import Managers
from allot.apiserver.http.routes import Target
from allot.apiserver.managed_fields.comparison import ABSENT, same_value
from allot.apiserver.managed_fields.conflict_errors import (
    CONFLICT_CAUSE,
    conflict_causes,
    conflict_message,
)
from allot.apiserver.managed_fields.field_manager import (
    ApplyError,
    FieldManager,
    Merged,
    object_description,
)
from allot.apiserver.managed_fields.updater import ApplyConflictError, Document
from allot.apiserver.managed_fields.value_types import STRING, ListType, MapType, ValueType
from allot.apiserver.pacing import release_interpreter
from allot.apiserver.watch_cache.codec import Codec, PartialCodec
from allot.apiserver.watch_cache.codecs import RawCodec, codec_for, type_meta

TYPE_META: Final = frozenset(("kind", "apiVersion"))
MAX_TRIES: Final = 5
"""How often an object may come and go while it is applied."""


class Configuration(NamedTuple):
    """What a request applies, and as whom."""

    document: Document
    manager: str
    force: bool
    misfit_code: int = 400
    """The code of the answer if it does not fit the schema."""
    claim_names: ClaimNames | None = None
    """What is applied, if it is nothing but the names of a pod's claims."""


def apply_to(
    old: Any, configuration: Configuration, target: Target, now: datetime
) -> tuple[Any, Managers]:
    """The object that an apply makes of a stored one, before it is checked, and its managedFields."""
    if configuration.claim_names is not None:
        names, document = configuration.claim_names, configuration.document
        named = with_claim_names(old, names, document, configuration.manager, target, now)
        if named is not None:
            return named
    codec = codec_for(target.resource)
    if isinstance(codec, RawCodec) and codec.has_parts((), target.version):
        found = _applied_alone(codec, old, configuration, target, now)
        if found is not None:
            return found
    return _applied_to_whole(codec, old, configuration, target, now)


def _applied_to_whole(
    codec: Codec, old: Any, configuration: Configuration, target: Target, now: datetime
) -> tuple[Any, Managers]:
    bare, known = without_managed_fields(old), old.metadata.managed_fields
    live = plain_document(bare, target)
    merged = merged_document(field_manager_of(target), live, known, configuration, now)
    if not merged.changed:
        return old, tuple(merged.entries)
    obj = None
    if isinstance(codec, PartialCodec):
        obj = _with_changed_parts(codec, bare, live, merged.document, target, now)
    if obj is None:
        obj = _decoded(merged, configuration, target, now)
    return obj, tuple(merged.entries)


def _applied_alone(
    codec: PartialCodec,
    old: RawObject,
    configuration: Configuration,
    target: Target,
    now: datetime,
) -> tuple[Any, Managers] | None:
    """The same, looking at no more than what is applied; None if that is not enough."""
    live, metadata = parts_of(old, target), old.metadata
    named = {"name": metadata.name, "uid": metadata.uid}
    if metadata.namespace:
        named["namespace"] = metadata.namespace
    merged = field_manager_of(target).applied_alone(
        live,
        named,
        metadata.managed_fields,
        configuration.document,
        configuration.manager,
        written_time(now),
    )
    if merged is None:
        return None
    bare = without_managed_fields(old)
    obj = _with_changed_parts(codec, bare, live, merged.document, target, now)
    return None if obj is None else (obj, tuple(merged.entries))


def new_object(configuration: Configuration, target: Target, now: datetime) -> tuple[Any, Managers]:
    """The object that an apply makes where there was none, before it is checked, and its managedFields."""
    merged = merged_document(field_manager_of(target), None, (), configuration, now)
    metadata = merged.document.get("metadata") or {}
    if metadata.get("uid"):
        raise api_errors.conflict(
            target.resource,
            target.name,
            f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing "
            "object was found",
        )
    if not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    fresh = {name: value for name, value in metadata.items() if name != "resourceVersion"}
    document = {**merged.document, "metadata": fresh}
    obj = _decoded(merged._replace(document=document), configuration, target, now)
    return obj, tuple(merged.entries)


def merged_document(
    manager: FieldManager,
    live: Document | None,
    known: Managers,
    configuration: Configuration,
    now: datetime,
) -> Merged:
    """What is applied laid over the live object; `ApiError` if others own it, or it makes no sense."""
    try:
        return manager.applied(
            live,
            known,
            configuration.document,
            configuration.manager,
            written_time(now),
            force=configuration.force,
        )
    except ApplyConflictError as error:
        raise _conflict(error) from None
    except ApplyError as error:
        raise _refusal(configuration, error) from None
    except DecodeError as error:
        raise _not_convertible(configuration, str(error.located)) from None


def _conflict(error: ApplyConflictError) -> ApiError:
    causes = tuple(
        Cause(CONFLICT_CAUSE, message, field) for message, field in conflict_causes(error)
    )
    return ApiError(409, "Conflict", conflict_message(error), Details(causes=causes))


def _refusal(configuration: Configuration, error: ApplyError) -> ApiError:
    code = configuration.misfit_code if error.code == 500 else error.code
    return ApiError(code, "BadRequest" if code == 400 else "", error.message)


def _not_convertible(configuration: Configuration, problem: str) -> ApiError:
    described = object_description(configuration.document)
    gvk = described.partition("; ")[2]
    message = (
        f"failed to convert new object ({described}) to proper version: unable to convert "
        f"unstructured object to {gvk}: {problem}"
    )
    return _refusal(configuration, ApplyError(500, message))


def _decoded(merged: Merged, configuration: Configuration, target: Target, now: datetime) -> Any:
    codec = codec_for(target.resource)
    type_ = KindVersions(target.resource).type_of(str(merged.document["apiVersion"]))
    body = msgspec.json.encode(merged.document)
    if b"null" in body:
        body = msgspec.json.encode(_with_zeroes(type_, merged.document))
    release_interpreter(len(body))
    try:
        return codec.decode(body, target.version, now)
    except DecodeError as error:
        raise _not_convertible(configuration, str(error.located)) from None


def _with_changed_parts(
    codec: PartialCodec,
    old: Any,
    live: Document,
    document: Document,
    target: Target,
    now: datetime,
) -> Any:
    """`old` with the top-level fields in which two documents differ; None if the whole object has to be decoded."""
    changed = {
        name: after
        for name, after in document.items()
        if after is not (before := live.get(name, ABSENT))
        and (before is ABSENT or not same_value(before, after))
    }
    names = [*changed]
    if not live.keys() <= document.keys():
        names += [name for name in live if name not in document]
    if not codec.has_parts(names, target.version):
        return None
    kind, api_version = type_meta(target.resource, target.version)
    body = msgspec.json.encode({**changed, "kind": kind, "apiVersion": api_version})
    if b"null" in body or not changed.keys().isdisjoint(TYPE_META):
        return None
    try:
        obj, unknown = codec.with_parts(old, names, body, target.version, now)
    except DecodeError:  # the error is about the whole object
        return None
    return None if unknown else obj


def _with_zeroes(type_: ValueType, value: Any) -> Any:
    """null in a map of texts is an empty text: the key stays."""
    part = type_.part_for(value)
    if isinstance(value, dict) and isinstance(part, MapType):
        return _map_with_zeroes(part, value)
    if isinstance(value, list) and isinstance(part, ListType):
        return [_with_zeroes(part.element, item) for item in value]
    return value


def _map_with_zeroes(part: MapType, value: dict[str, Any]) -> dict[str, Any]:
    if part.element is not None and part.element.scalar == STRING:
        return {name: "" if item is None else item for name, item in value.items()}
    return {
        name: item if (type_ := part.type_of(name)) is None else _with_zeroes(type_, item)
        for name, item in value.items()
    }
