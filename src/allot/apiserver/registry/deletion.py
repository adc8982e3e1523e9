"""Deletion: an object is removed at once, or marked and kept until its finalizers are removed."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.base import ApiObject, Int64, replace
from allot.api.core import Namespace, Pod
from allot.api.custom_resources import CustomResourceDefinition
from allot.api.meta import ObjectMeta
from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.kinds.custom_resource_definition import terminate as terminate_definition
from allot.apiserver.kinds.namespace import terminate
from allot.apiserver.kinds.pod_deletion import PodDeletion, graceful_delete
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.codec import Codec

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
POLICIES: Final = ("Foreground", "Background", "Orphan")


class Preconditions(ApiObject, frozen=True):
    """What must be true of the object for the delete to happen."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(ApiObject, frozen=True):
    """The options of a delete, in its body or its query."""

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


class Gone(NamedTuple):
    """The object is removed."""


class Kept(NamedTuple):
    """The object stays for now, as given."""

    object: Any


def check_preconditions(options: DeleteOptions, metadata: ObjectMeta, resource: Resource) -> None:
    wanted = options.preconditions
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != metadata.uid:
        raise _mismatch(resource, metadata.name, "UID", wanted.uid, metadata.uid)
    version = wanted.resource_version
    if version is not None and version != metadata.resource_version:
        found = metadata.resource_version
        raise _mismatch(resource, metadata.name, "ResourceVersion", version, found)


def _mismatch(resource: Resource, name: str, what: str, wanted: str, found: str) -> ApiError:
    happened = "deleted and then recreated" if what == "UID" else "modified"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind} "{name}": the {what} in the precondition '
        f"({wanted}) does not match the {what} in record ({found}). The object might have been "
        f"{happened}",
        Details(name, resource.group, resource.kind),
    )


def delete_outcome(obj: Any, codec: Codec, options: DeleteOptions, now: datetime) -> Gone | Kept:
    """What a delete leaves of an object."""
    metadata: ObjectMeta = obj.metadata
    finalizers = _finalizers(metadata, options)
    if isinstance(obj, CustomResourceDefinition) and metadata.deletion_timestamp is None:
        marked = replace(metadata, finalizers=finalizers)
        return Kept(terminate_definition(obj.with_metadata(marked), now))
    end = _end(obj, options, now)
    if end.delete_now and not finalizers and not _is_held(obj):
        return Gone()
    first = metadata.deletion_timestamp is None
    marked = replace(
        metadata,
        finalizers=finalizers,
        deletion_timestamp=end.deletion_timestamp,
        deletion_grace_period_seconds=end.grace_period_seconds,
        generation=metadata.generation + 1
        if metadata.generation and first
        else metadata.generation,
    )
    kept = codec.with_metadata(obj, marked)
    if isinstance(kept, Namespace):
        kept = terminate(kept, now)
    return Kept(kept)


def is_finished(obj: Any) -> bool:
    """Whether an object that was marked for deletion has nothing left to wait for."""
    metadata: ObjectMeta = obj.metadata
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
        and not _is_held(obj)
    )


def _is_held(obj: Any) -> bool:
    """Namespaces have finalizers of their own: they go when they are empty."""
    return isinstance(obj, Namespace) and bool(obj.get("spec", "finalizers"))


def _end(obj: Any, options: DeleteOptions, now: datetime) -> PodDeletion:
    """When the object ends; only pods have time to stop."""
    if isinstance(obj, Pod):
        return graceful_delete(obj, options.grace_period_seconds, now)
    return PodDeletion(obj.metadata.deletion_timestamp or now, 0, delete_now=True)


def _finalizers(metadata: ObjectMeta, options: DeleteOptions) -> tuple[str, ...]:
    """The finalizers with those that tell the garbage collector what to do with dependents."""
    policy = options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        return metadata.finalizers
    kept = [name for name in metadata.finalizers if name not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return (*kept, *added)
