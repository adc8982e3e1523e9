"""Objects without `metadata.managedFields`, for components that do not use them."""

from __future__ import annotations

from typing import Any, TypeVar

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


def _bare(obj: Any) -> Any:
    if "data" not in obj.__dict__:  # the metadata is not JSON yet
        return obj.with_metadata(replace(obj.metadata, managed_fields=()))
    metadata = obj.data.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return type(obj)({**obj.data, "metadata": kept})
