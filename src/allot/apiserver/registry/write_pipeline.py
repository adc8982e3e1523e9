"""The write pipeline: one create, update or status update, from the decoded object to the one that is stored.

The steps that differ between kinds are in their strategies (`allot.apiserver.kinds`):

    server-set metadata ──► strategy.prepare_* ──► strategy.validate_* ──► Accepted | Rejected | Refused

Admission runs around it: mutating plugins before, validating plugins after (`object_store`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from allot.api.base import replace
from allot.api.meta import ObjectMeta
from allot.apiserver.kinds.request import WriteRequest, generated_name
from allot.apiserver.kinds.resources import Resource, per_resource
from allot.apiserver.kinds.strategy import StatusStrategy
from allot.validation.fields import FieldError, FieldPath, invalid


class Accepted(NamedTuple):
    """The object to store."""

    object: Any
    warnings: list[str]


class Rejected(NamedTuple):
    """What is wrong with the object: answered with 422."""

    errors: list[FieldError]
    by_resource: bool = False
    """Whether the answer names the resource instead of the kind."""
    warnings: Sequence[str] = ()


class Refused(NamedTuple):
    """The request cannot be served: answered with 400 or 409 before the object is validated."""

    code: int
    reason: str
    message: str


Outcome = Accepted | Rejected | Refused


class Update(NamedTuple):
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
        self._namespaced = resource.namespaced
        self._strategy = resource.strategy

    def create(self, new: Any, request: WriteRequest) -> Outcome:
        strategy = self._strategy
        if new.metadata.resource_version:
            return Refused(
                400, "BadRequest", "resourceVersion should not be set on objects to be created"
            )
        metadata = metadata_for_create(new.metadata, request, namespaced=self._namespaced)
        prepared = strategy.prepare_create(strategy.with_metadata(new, metadata), request)
        errors = strategy.first_errors(strategy.validate_create(prepared, request), request)
        if errors:
            return Rejected(errors, warnings=request.warnings or ())
        return Accepted(prepared, [*strategy.warnings(prepared), *(request.warnings or ())])

    def update(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        strategy = self._strategy
        if strategy.requires_version and not new.metadata.resource_version:
            return _without_version()
        refused = unmet_precondition(new.metadata, old.metadata)
        if refused:
            return refused
        prepared = strategy.prepare_update(self._with_stored(new, old, request), old, request)
        errors = strategy.first_errors(strategy.validate_update(prepared, old, request), request)
        if errors:
            return Rejected(errors, warnings=request.warnings or ())
        return Accepted(prepared, [*strategy.warnings(prepared), *(request.warnings or ())])

    def update_status(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        """A write to the status of a kind that has one."""
        strategy = self._strategy
        assert isinstance(strategy, StatusStrategy)
        if strategy.requires_version and not new.metadata.resource_version:
            return _without_version()
        refused = unmet_precondition(new.metadata, old.metadata)
        if refused:
            return refused
        new = self._with_stored(new, old, request)
        prepared = strategy.prepare_status_update(new, old, request)
        errors = strategy.validate_status_update(prepared, old, request)
        listed = strategy.first_errors(errors, request)
        if listed:
            return Rejected(listed, warnings=request.warnings or ())
        return Accepted(prepared, [*(request.warnings or ())])

    def _with_stored(self, new: Any, old: Any, request: WriteRequest) -> Any:
        unconditional = self._strategy.accepts_unconditional_update(request.version)
        metadata = metadata_for_update(new.metadata, old.metadata, unconditional=unconditional)
        return self._strategy.with_metadata(new, metadata)


def _without_version() -> Outcome:
    path = FieldPath("metadata") / "resourceVersion"
    return Rejected([invalid(path, 0, "must be specified for an update")], by_resource=True)


@per_resource
def pipeline_for(resource: Resource) -> WritePipeline:
    return WritePipeline(resource)


def metadata_for_create(
    metadata: ObjectMeta, request: WriteRequest, *, namespaced: bool
) -> ObjectMeta:
    """Without what only the server sets, with a name and a namespace."""
    return replace(
        metadata,
        name=generated_name(metadata, request.new_name_suffix),
        namespace=(metadata.namespace or request.namespace) if namespaced else "",
        uid="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        self_link="",
    )


def unmet_precondition(new: ObjectMeta, old: ObjectMeta) -> Refused | None:
    if new.uid and new.uid != old.uid:
        return Refused(409, "Conflict", "UID precondition failed")
    if new.resource_version and new.resource_version != old.resource_version:
        return Refused(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version "
            "and try again",
        )
    return None


def metadata_for_update(
    metadata: ObjectMeta, stored: ObjectMeta, *, unconditional: bool
) -> ObjectMeta:
    """What an update can never change is taken from the stored object."""
    version = metadata.resource_version
    if not version and unconditional:
        version = stored.resource_version
    grace = metadata.deletion_grace_period_seconds
    return replace(
        metadata,
        resource_version=version,
        uid=stored.uid,
        generation=stored.generation,
        creation_timestamp=stored.creation_timestamp,
        deletion_timestamp=stored.deletion_timestamp or metadata.deletion_timestamp,
        deletion_grace_period_seconds=(
            stored.deletion_grace_period_seconds if grace is None else grace
        ),
    )
