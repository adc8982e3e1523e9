"""Objects without `metadata.managedFields`, for components that do not use them."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import force_setattr

from allot.api.base import replace
from allot.api.raw import RawObject

T = TypeVar("T")


def without_managed_fields(obj: T) -> T:
    """The object without managedFields; the same one if it has none. Nothing is changed in place."""
    if isinstance(obj, RawObject):
        bare: T = _bare(obj)
        return bare
    typed: Any = obj
    metadata = getattr(typed, "metadata", None)
    if not getattr(metadata, "managed_fields", ()):
        return obj
    assert metadata is not None
    found: T = replace(typed, metadata=replace(metadata, managed_fields=()))
    return found


def strip_managed_fields(obj: object) -> None:
    """Remove managedFields in place, from an object that was just decoded and is not shared yet."""
    if isinstance(obj, RawObject):
        metadata: Any = obj.data.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
    else:
        metadata = getattr(obj, "metadata", None)
        if getattr(metadata, "managed_fields", ()):
            force_setattr(metadata, "managed_fields", ())


def _bare(obj: Any) -> Any:
    if "data" not in obj.__dict__:  # the metadata is not JSON yet
        return obj.with_metadata(replace(obj.metadata, managed_fields=()))
    metadata = obj.data.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return type(obj)({**obj.data, "metadata": kept})
