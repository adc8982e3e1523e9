"""The result of a write: the stored object with warnings, or the error of the write pipeline."""

from __future__ import annotations

from typing import Any

import msgspec

from allot.api.base import replace
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.write_pipeline import Accepted, Outcome, Refused, Rejected
from allot.apiserver.watch_cache.stored_objects import StoredObject


class Written(msgspec.Struct, frozen=True):
    """The object after a write, and warnings for the client."""

    stored: StoredObject
    warnings: list[str]
    gone: bool = False
    created: bool = False
    """Whether an apply made the object."""

    def with_warnings(self, first: list[str]) -> Written:
        """The same, after the warnings of decoding."""
        return replace(self, warnings=[*first, *self.warnings]) if first else self


def accepted(outcome: Outcome, resource: Resource, name: str) -> tuple[Any, list[str]]:
    """The object that the write pipeline accepts, and its warnings; raises `ApiError` if it does not."""
    if isinstance(outcome, Accepted):
        return outcome.object, outcome.warnings
    match outcome:
        case Rejected(errors, by_resource, warnings):
            kind = resource.plural if by_resource else resource.kind
            refusal = api_errors.invalid(resource.group, kind, name, errors)
            refusal.warnings += warnings
            raise refusal
        case Refused(409, _, message, shown):
            raise api_errors.conflict(resource, name, shown or message)
        case Refused(code, reason, message):
            raise ApiError(code, reason, message)
