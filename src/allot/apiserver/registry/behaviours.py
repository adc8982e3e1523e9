"""The write pipeline of each resource, whatever family its kind belongs to."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.api.scheme import KINDS
from allot.apiserver.kinds import pipeline
from allot.apiserver.kinds.pipeline import (
    Accepted,
    Outcome,
    Refused,
    Rejected,
    metadata_for_create,
    metadata_for_update,
    unmet_precondition,
)
from allot.apiserver.kinds.raw_kinds import strategy_for
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.resources import Resource
from allot.validation.fields import first_errors


class Behaviour(Protocol):
    """What becomes of an object that somebody wants to write."""

    def create(self, new: Any, request: WriteRequest) -> Outcome: ...

    def update(self, new: Any, old: Any, request: WriteRequest) -> Outcome: ...

    def update_status(self, new: Any, old: Any, request: WriteRequest) -> Outcome: ...


class TypedBehaviour:
    """Kinds of resource.k8s.io."""

    def __init__(self, resource: Resource) -> None:
        self._kind = KINDS[resource.kind]

    def create(self, new: Any, request: WriteRequest) -> Outcome:
        return pipeline.create(new, self._kind, request)

    def update(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        return pipeline.update(new, old, self._kind, request)

    def update_status(self, new: Any, old: Any, request: WriteRequest) -> Outcome:
        return pipeline.update_status(new, old, self._kind, request)


class RawBehaviour:
    """All other kinds."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._strategy = strategy_for(resource)

    def create(self, new: RawObject, request: WriteRequest) -> Outcome:
        if new.metadata.resource_version:
            return Refused(
                400, "BadRequest", "resourceVersion should not be set on objects to be created"
            )
        namespaced = self._resource.namespaced
        metadata = metadata_for_create(new.metadata, request, namespaced=namespaced)
        prepared = self._strategy.prepare_create(new.with_metadata(metadata), request)
        errors = first_errors(self._strategy.validate_create(prepared, request))
        if errors:
            return Rejected(errors)
        return Accepted(prepared, self._strategy.warnings(prepared))

    def update(self, new: RawObject, old: RawObject, request: WriteRequest) -> Outcome:
        refused = unmet_precondition(new.metadata, old.metadata)
        if refused:
            return refused
        prepared = self._strategy.prepare_update(self._with_stored(new, old, request), old, request)
        errors = first_errors(self._strategy.validate_update(prepared, old, request))
        if errors:
            return Rejected(errors)
        return Accepted(prepared, self._strategy.warnings(prepared))

    def update_status(self, new: RawObject, old: RawObject, request: WriteRequest) -> Outcome:
        refused = unmet_precondition(new.metadata, old.metadata)
        if refused:
            return refused
        new = self._with_stored(new, old, request)
        prepared = self._strategy.prepare_status_update(new, old, request)
        errors = first_errors(self._strategy.validate_status_update(prepared, old, request))
        return Rejected(errors) if errors else Accepted(prepared, [])

    def _with_stored(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        unconditional = self._strategy.accepts_unconditional_update(request.version)
        metadata = metadata_for_update(new.metadata, old.metadata, unconditional=unconditional)
        return new.with_metadata(metadata)


@cache
def behaviour_for(resource: Resource) -> Behaviour:
    return TypedBehaviour(resource) if resource.group == DRA else RawBehaviour(resource)
