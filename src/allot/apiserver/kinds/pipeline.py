"""One write from the decoded object to the one that will be stored, or to what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.kinds import Kind
from allot.api.meta import ObjectMeta
from allot.apiserver.kinds.cluster_kinds import (
    DeviceClassStrategy,
    DeviceTaintRuleStrategy,
    ResourcePoolStatusRequestStrategy,
    ResourceSliceStrategy,
)
from allot.apiserver.kinds.request import WriteRequest, generated_name
from allot.apiserver.kinds.resource_claim import (
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from allot.apiserver.kinds.strategy import StatusStrategy, Strategy
from allot.validation.fields import FieldError, FieldPath, first_errors

STRATEGIES: Final[dict[str, Strategy[Any]]] = {
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "DeviceClass": DeviceClassStrategy(),
    "DeviceTaintRule": DeviceTaintRuleStrategy(),
    "ResourcePoolStatusRequest": ResourcePoolStatusRequestStrategy(),
}


class Accepted(NamedTuple):
    """The object to store."""

    object: Any
    warnings: list[str]


class Rejected(NamedTuple):
    """What is wrong with the object: answered with 422."""

    errors: list[FieldError]


class Refused(NamedTuple):
    """The request itself cannot be: answered with 400 or 409 before the object is looked at."""

    code: int
    reason: str
    message: str


Outcome = Accepted | Rejected | Refused


def create(new: Any, kind: Kind, request: WriteRequest) -> Outcome:
    strategy = STRATEGIES[kind.name]
    if new.metadata.resource_version:
        return Refused(
            400, "BadRequest", "resourceVersion should not be set on objects to be created"
        )
    metadata = metadata_for_create(new.metadata, request, namespaced=kind.namespaced)
    prepared = strategy.prepare_create(replace(new, metadata=metadata), request)
    errors = _in_version(strategy.validate_create(prepared, request), kind, request.version)
    return Rejected(errors) if errors else Accepted(prepared, strategy.warnings(prepared))


def update(new: Any, old: Any, kind: Kind, request: WriteRequest) -> Outcome:
    strategy = STRATEGIES[kind.name]
    refused = unmet_precondition(new.metadata, old.metadata)
    if refused:
        return refused
    unconditional = strategy.accepts_unconditional_update(request.version)
    metadata = metadata_for_update(new.metadata, old.metadata, unconditional=unconditional)
    new = replace(new, metadata=metadata)
    prepared = strategy.prepare_update(new, old, request)
    errors = _in_version(strategy.validate_update(prepared, old, request), kind, request.version)
    return Rejected(errors) if errors else Accepted(prepared, strategy.warnings(prepared))


def update_status(new: Any, old: Any, kind: Kind, request: WriteRequest) -> Outcome:
    """A write to the status of a kind that has one."""
    strategy = STRATEGIES[kind.name]
    assert isinstance(strategy, StatusStrategy)
    refused = unmet_precondition(new.metadata, old.metadata)
    if refused:
        return refused
    unconditional = strategy.accepts_unconditional_update(request.version)
    metadata = metadata_for_update(new.metadata, old.metadata, unconditional=unconditional)
    new = replace(new, metadata=metadata)
    prepared = strategy.prepare_status_update(new, old, request)
    errors = _in_version(
        strategy.validate_status_update(prepared, old, request), kind, request.version
    )
    return Rejected(errors) if errors else Accepted(prepared, [])


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


# --- paths of declared rules ---

_in_exactly: Final = re.compile(r"(\.requests\[\d+\])\.exactly\b")
_in_device: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name$)")


def _in_version(errors: Iterable[FieldError], kind: Kind, version: str) -> list[FieldError]:
    """Declared rules speak of the fields of the request's version, the others of v1."""
    listed = first_errors(errors)
    if version == "v1beta1":
        listed = [
            error._replace(path=FieldPath(_flat_path(str(error.path), kind)))
            if error.declared
            else error
            for error in listed
        ]
    # Hand-written rules answer first.
    return sorted(listed, key=lambda error: error.declared)


def _flat_path(path: str, kind: Kind) -> str:
    if kind.name == "ResourceSlice":
        return _in_device.sub(r"\1.basic.", path)
    return _in_exactly.sub(r"\1", path)
