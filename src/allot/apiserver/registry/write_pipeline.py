"""The write pipeline: one create, update or status update, from the decoded object to the one that is stored.

The steps that differ between kinds are in their strategies (`allot.apiserver.kinds`):

    server-set metadata ──► strategy.prepare_* ──► strategy.validate_* ──► Accepted | Rejected | Refused

Admission runs around it: mutating plugins before, validating plugins after (`object_store`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.meta import ObjectMeta, OwnerReference
from allot.apiserver.kinds.request import WriteRequest, generated_name
from allot.apiserver.kinds.resources import Resource, per_resource
from allot.apiserver.kinds.strategy import StatusStrategy
from allot.validation.fields import FieldError, FieldPath, first_errors, invalid
from allot.validation.metadata import IMMUTABLE


class Accepted(msgspec.Struct, frozen=True):
    """The object to store."""

    object: Any
    warnings: list[str]


class Rejected(msgspec.Struct, frozen=True):
    """What is wrong with the object: answered with 422."""

    errors: list[FieldError]
    by_resource: bool = False
    """Whether the answer names the resource instead of the kind."""
    warnings: Sequence[str] = ()


class Refused(msgspec.Struct, frozen=True):
    """The request cannot be served: answered with 400, 409 or 422 before the object is validated."""

    code: int
    reason: str
    message: str
    shown: str = ""
    """What a client is told, if that is more than the message."""


Outcome = Accepted | Rejected | Refused


class Update(msgspec.Struct, frozen=True):
    """An update in two steps; mutating admission runs between them."""

    propose: Callable[[Any, WriteRequest], Any]
    """The object that the client wants in place of the stored one, which is the argument."""
    complete: Callable[[Any, Any, WriteRequest], Outcome]
    """The outcome for the proposed and the stored object."""


def accept(proposed: Any, _old: Any, _request: WriteRequest) -> Outcome:
    """Completes the update of a subresource that has no strategy: the proposed object is stored."""
    return Accepted(proposed, [])


class WritePipeline:
    """The writes of one resource."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._namespaced = resource.namespaced
        self._is_typed = resource.info.is_typed
        self._strategy = strategy = resource.strategy
        self._status_strategy = strategy if isinstance(strategy, StatusStrategy) else None

    def create(self, new: Any, request: WriteRequest) -> Outcome:
        strategy = self._strategy
        if len(new.metadata.owner_references) > 1:
            new = self._with_distinct_owners(new, request)
        metadata = metadata_for_create(new.metadata, request, namespaced=self._namespaced)
        placed = new if metadata is new.metadata else strategy.with_metadata(new, metadata)
        prepared = strategy.prepare_create(placed, request)
        early = len(request.warnings) if request.warnings else 0
        errors = strategy.validate_create(prepared, request)
        outcome = self._validated(prepared, errors, request, strategy.warnings, early)
        version = new.metadata.resource_version
        if version and _is_version(version) and not request.dry_run:
            return Refused(422, "", VERSION_OF_NEW) if isinstance(outcome, Accepted) else outcome
        return outcome

    def update(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        strategy = self._strategy
        is_current = _is_current(new.metadata, old.metadata)
        if not is_current:
            new = self._without_zero_version(new)
        if len(new.metadata.owner_references) > 1:
            new = self._with_distinct_owners(new, request)
        if not is_current:
            refused = self._unmet_precondition(new.metadata, old.metadata, request)
            if refused:
                return refused
        prepared = strategy.prepare_update(self._with_stored(new, old), old, request)
        errors = strategy.validate_update(prepared, old, request)
        return self._validated(prepared, errors, request, strategy.update_warnings)

    def update_status(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        """A write to the status of a kind that has one."""
        strategy = self._status_strategy
        assert strategy is not None
        if not _is_current(new.metadata, old.metadata):
            new = self._without_zero_version(new)
            refused = self._unmet_precondition(new.metadata, old.metadata, request)
            if refused:
                return refused
        new = self._with_stored(new, old)
        prepared = strategy.prepare_status_update(new, old, request)
        errors = strategy.validate_status_update(prepared, old, request)
        return self._validated(prepared, errors, request)

    def _validated(
        self,
        prepared: Any,
        errors: Iterable[FieldError],
        request: WriteRequest,
        warnings_about: Callable[[Any], list[str]] | None = None,
        early: int = 0,
    ) -> Outcome:
        """The outcome by the errors of validation; the first `early` warnings of the request come before those of the kind."""
        listed = first_errors(errors)
        given = request.warnings or []
        if listed:
            return Rejected(self._strategy.as_listed(listed, request), warnings=given)
        warnings = warnings_about(prepared) if warnings_about is not None else []
        return Accepted(
            prepared, [*given[:early], *warnings, *given[early:]] if given else warnings
        )

    def _without_zero_version(self, new: Any) -> Any:
        """The object; version 0 is the same as none."""
        version = new.metadata.resource_version
        if not version or version[0] != "0" or version.strip("0"):
            return new
        return self._strategy.with_metadata(new, replace(new.metadata, resource_version=""))

    def _with_distinct_owners(self, new: Any, request: WriteRequest) -> Any:
        """The object without owners that it names twice, which is warned about."""
        owners = new.metadata.owner_references
        distinct: dict[OwnerReference, None] = {}
        again: dict[str, None] = {}
        for owner in owners:
            if owner in distinct:
                again[owner.uid] = None
            distinct[owner] = None
        if not again:
            return new
        if request.warnings is not None:
            request.warnings.append(f"{SAME_OWNERS}{', '.join(again)}")
        metadata = replace(new.metadata, owner_references=tuple(distinct))
        return self._strategy.with_metadata(new, metadata)

    def _unmet_precondition(
        self, new: ObjectMeta, old: ObjectMeta, request: WriteRequest
    ) -> Outcome | None:
        """Why the write is for another object than the stored one, or for another version of it; or names none."""
        is_conditional = bool(new.resource_version)
        if not (is_conditional or self._strategy.accepts_unconditional_update(request.version)):
            return _without_version()
        if new.uid and new.uid != old.uid:
            if request.verb == "patch":
                return Rejected([invalid(FieldPath("metadata") / "uid", new.uid, IMMUTABLE)])
            path = storage_path(self._resource, old, dry_run=request.dry_run)
            shown = unmet_uid(path, new, old)
            return Refused(409, "Conflict", "UID precondition failed", shown)
        return unmet_precondition(new, old)

    def _with_stored(self, new: Any, old: Any) -> Any:
        is_read = self._is_typed or "data" not in new.__dict__  # so that it is written anew
        if is_read and keeps_stored(new.metadata, old.metadata):
            return new
        metadata = metadata_for_update(new.metadata, old.metadata)
        return self._strategy.with_metadata(new, metadata)


SAME_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
VERSION_OF_NEW: Final = "resourceVersion should not be set on objects to be created"


_MAX_VERSION: Final = 2**64 - 1
_MAX_DIGITS: Final = 20


def _version_problem(text: str) -> str:
    """Why it is no version of an object; empty if it is one."""
    if not (text.isascii() and text.isdecimal()):
        return "invalid syntax"
    digits = text.lstrip("0")
    if len(digits) > _MAX_DIGITS or int(digits or "0") > _MAX_VERSION:
        return "value out of range"
    return ""


def _is_version(text: str) -> bool:
    """Whether it is the version of an object: 0 and what is no number are none."""
    return bool(text.strip("0")) and not _version_problem(text)


def _is_current(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Whether it names the stored object in the version that is stored, as most updates do."""
    return new.resource_version == old.resource_version != "" and new.uid == old.uid


def _without_version() -> Outcome:
    path = FieldPath("metadata") / "resourceVersion"
    return Rejected([invalid(path, 0, "must be specified for an update")], by_resource=True)


@per_resource
def pipeline_for(resource: Resource) -> WritePipeline:
    return WritePipeline(resource)


def metadata_for_create(
    metadata: ObjectMeta, request: WriteRequest, *, namespaced: bool
) -> ObjectMeta:
    """Without what only the server sets, with a name and a namespace; the same metadata if it is that already."""
    if (
        metadata.name
        and bool(metadata.namespace) == namespaced
        and _set_by_server(metadata) == _NOTHING_SET
    ):
        return metadata
    return replace(
        metadata,
        name=metadata.name or generated_name(metadata, request.new_name_suffix),
        namespace=(metadata.namespace or request.namespace) if namespaced else "",
        **_SET_BY_SERVER,
    )


_SET_BY_SERVER: Final = {
    "uid": "",
    "resource_version": "",
    "creation_timestamp": None,
    "deletion_timestamp": None,
    "deletion_grace_period_seconds": None,
    "self_link": "",
}
"""Fields of metadata, and what they are before the server sets them."""
_NOTHING_SET: Final = tuple(_SET_BY_SERVER.values())
_set_by_server: Final = attrgetter(*_SET_BY_SERVER)


def unmet_precondition(new: ObjectMeta, old: ObjectMeta) -> Refused | None:
    if new.uid and new.uid != old.uid:
        return Refused(409, "Conflict", "UID precondition failed")
    version = new.resource_version
    if version and version != old.resource_version:
        return _wrong_version(version) or Refused(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version "
            "and try again",
        )
    return None


def _wrong_version(version: str) -> Refused | None:
    problem = _version_problem(version)
    if not problem:
        return None
    return Refused(422, "", f'strconv.ParseUint: parsing "{version}": {problem}')


def unmet_creation(resource: Resource, new: ObjectMeta, *, dry_run: bool) -> Refused | None:
    """Why an update that finds no object cannot create one: it names the uid of another, or no version."""
    version = new.resource_version
    if version and (wrong := _wrong_version(version)):
        return wrong
    if not new.uid:
        return None
    shown = unmet_uid(storage_path(resource, new, dry_run=dry_run), new, ObjectMeta())
    return Refused(409, "Conflict", "UID precondition failed", shown)


def unmet_uid(path: str, new: ObjectMeta, old: ObjectMeta) -> str:
    """The storage layer of Kubernetes finds it, and names the object by its key."""
    return (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {new.uid}, "
        f"UID in object meta: {old.uid}"
    )


_STORAGE_NAMES: Final = {
    "nodes": "minions",
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
}


def storage_path(resource: Resource, metadata: ObjectMeta, *, dry_run: bool) -> str:
    """The key of an object in Kubernetes' storage, as its errors show it."""
    name = _STORAGE_NAMES.get(resource.plural, resource.plural)
    grouped = [resource.group, name] if resource.custom is not None else [name]
    namespace = [metadata.namespace] if resource.namespaced else []
    root = [""] if dry_run else ["", "registry"]
    return "/".join([*root, *grouped, *namespace, metadata.name])


def metadata_for_update(metadata: ObjectMeta, stored: ObjectMeta) -> ObjectMeta:
    """What an update can never change is taken from the stored object."""
    grace = metadata.deletion_grace_period_seconds
    return replace(
        metadata,
        resource_version=metadata.resource_version or stored.resource_version,
        uid=stored.uid,
        generation=stored.generation,
        creation_timestamp=stored.creation_timestamp,
        deletion_timestamp=stored.deletion_timestamp or metadata.deletion_timestamp,
        deletion_grace_period_seconds=(
            stored.deletion_grace_period_seconds if grace is None else grace
        ),
    )


def keeps_stored(metadata: ObjectMeta, stored: ObjectMeta) -> bool:
    """Whether it is what `metadata_for_update` makes of it, as that of an object that was read and written back."""
    if not metadata.resource_version or _stored_fields(metadata) != _stored_fields(stored):
        return False
    return stored.deletion_timestamp in (None, metadata.deletion_timestamp) and (
        stored.deletion_grace_period_seconds is None
        or metadata.deletion_grace_period_seconds is not None
    )


_stored_fields: Final = attrgetter("uid", "generation", "creation_timestamp")
