"""The result of a write: the stored object with warnings, or the error of the write pipeline."""

from __future__ import annotations

from typing import Any

import msgspec

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.storage_encoding import with_known_times
from allot.apiserver.registry.write_pipeline import (
    Accepted,
    Outcome,
    Refused,
    Rejected,
    Update,
    unmet_creation,
)
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.features import FeatureGates
from allot.validation.kubernetes_warnings import rule_warnings


class Written(msgspec.Struct, frozen=True):
    """The object after a write, and warnings for the client."""

    stored: StoredObject
    warnings: list[str]
    gone: bool = False
    created: bool = False
    """Whether an apply or an update made the object."""
    as_sent: bool | None = None
    """Whether an update stored what its client sent, if the client has to know."""

    def with_warnings(self, first: list[str]) -> Written:
        """The same, after the warnings of decoding."""
        return replace(self, warnings=[*first, *self.warnings]) if first else self


def is_as_sent(sent: Any, written: Written) -> bool:
    """Whether a typed object is stored as it was sent, but for what the server alone knows: its version and managers."""
    kept, known = None, sent.metadata
    if sent.__class__ is ResourceClaim:  # what is kept of one is what is stored
        kept = written.stored.kept_content
    stored = written.stored.object if kept is None else kept
    metadata = replace(
        stored.metadata,
        resource_version=known.resource_version,
        managed_fields=known.managed_fields,
    )
    return not written.gone and bool(replace(stored, metadata=metadata) == sent)


def accepted(outcome: Outcome, resource: Resource, name: str) -> tuple[Any, list[str]]:
    """The object that the write pipeline accepts, and its warnings; raises `ApiError` if it does not."""
    if isinstance(outcome, Accepted):
        return outcome.object, outcome.warnings
    match outcome:
        case Rejected(errors, by_resource, warnings):
            kind = resource.plural if by_resource else resource.kind
            group = resource.stored_as[0] if resource.stored_as else resource.group
            refusal = api_errors.invalid(group, kind, name, errors)
            refusal.warnings += warnings
            raise refusal
        case Refused(409, _, message, shown):
            raise api_errors.conflict(resource, name, shown or message)
        case Refused(code, reason, message):
            raise ApiError(code, reason, message)


def completed(
    update: Update, proposed: Any, old: Any, request: WriteRequest, resource: Resource
) -> tuple[Any, list[str]]:
    """What an update stores in place of `old`, and warnings; raises `ApiError` if the proposed object is not accepted."""
    outcome = update.complete(proposed, old, request)
    new, warnings = accepted(outcome, resource, old.metadata.name)
    if new.metadata.managed_fields is not old.metadata.managed_fields:
        # Managers may own a hundred thousand fields: of a large object this is not on the event loop.
        new = with_known_times(new, old, storage_codec(resource))
    if isinstance(new, RawObject) or new.spec == old.spec:
        return new, warnings
    return new, [*warnings, *rule_warnings(new, request.gates)]


class RuleWarnings:
    """Warnings about new objects. Claims made from one template share their spec, which is looked at once."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates
        self._last: tuple[object, list[str]] = (object(), [])
        """The last spec of a DRA object, and the warnings about it."""

    def about(self, new: Any) -> list[str]:
        """Those about a DRA object; there are none about others."""
        spec, known = self._last
        if new.spec is not spec:
            known = rule_warnings(new, self._gates)
            self._last = new.spec, known
        return known


def creatable_by_update(resource: Resource, obj: Any, *, dry_run: bool) -> Any:
    """A new object from the body of an update that found none; raises `ApiError` if it is for another object.

    The version of one that existed does not matter, unless it is none.
    """
    refused = unmet_creation(resource, obj.metadata, dry_run=dry_run)
    if refused is not None:
        accepted(refused, resource, obj.metadata.name)
    return resource.strategy.with_metadata(obj, replace(obj.metadata, resource_version=""))
