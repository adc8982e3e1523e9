"""The life of a namespace: active, terminating until its contents are gone, and then gone itself."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from allot.api.base import replace, whole_seconds
from allot.api.raw import RawObject
from allot.apiserver.defaults.core_kinds import namespace_defaults

FINALIZER: Final = "kubernetes"
"""Stands for everything in the namespace; whoever has removed it all removes this."""


def prepare_create(namespace: RawObject) -> RawObject:
    """A new namespace, by now with a name: labelled with it, and kept until it is empty."""
    finalizers = namespace.get("spec", "finalizers", default=[])
    if FINALIZER not in finalizers:
        namespace = namespace.with_value([*finalizers, FINALIZER], "spec", "finalizers")
    return type(namespace)(namespace_defaults(dict(namespace.data)))


def terminate(namespace: RawObject, now: datetime) -> RawObject:
    """A namespace that was deleted but still has finalizers. Deleting it again changes nothing."""
    if namespace.metadata.deletion_timestamp is None:
        metadata = replace(namespace.metadata, deletion_timestamp=whole_seconds(now))
        namespace = namespace.with_metadata(metadata)
    if namespace.get("status", "phase") == "Terminating":
        return namespace
    return namespace.with_value("Terminating", "status", "phase")


def finalize(new: RawObject, old: RawObject) -> RawObject:
    """A write to the finalize endpoint: the stored namespace with the finalizers that were sent."""
    finalizers = new.get("spec", "finalizers", default=[])
    kept = old.with_value(finalizers or None, "spec", "finalizers")
    version = new.metadata.resource_version or old.metadata.resource_version
    return kept.with_metadata(replace(kept.metadata, resource_version=version))
