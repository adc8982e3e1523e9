"""Objects as they are stored: their bytes, how much work they are, and which of two equal states is kept."""

from __future__ import annotations

from typing import Any

from allot.api.base import replace
from allot.apiserver.admission.chain import Mutated
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.managed_fields.managers import same_but_for_times
from allot.apiserver.object_limits import check_object_size
from allot.apiserver.pacing import LARGE, SLOW
from allot.apiserver.watch_cache.codec import Codec


def encode_for_storage(codec: Codec, obj: Any) -> bytes:
    """The object in its storage version; raises `ApiError` if it is too large."""
    body = codec.encode(obj, codec.storage_version)
    if len(body) > LARGE:
        check_object_size(len(body))
    return body


def with_known_times(new: Any, old: Any, codec: Codec) -> Any:
    """The object as it is stored, if nothing differs but when its managers wrote."""
    entries, known = new.metadata.managed_fields, old.metadata.managed_fields
    if len(entries) != len(known) or entries == known or not same_but_for_times(entries, known):
        return new
    unchanged = codec.with_metadata(new, replace(new.metadata, managed_fields=known))
    return unchanged if unchanged == old else new


def work_after(mutated: Mutated, resource: Resource, size: int) -> int:
    """The work on an object after the plugins, if it was `size` before."""
    size = max(size, mutated.changed_size) + mutated.grown_by
    if resource.info.is_typed and mutated.changed_size * SLOW > LARGE:
        return max(size, LARGE + 1)  # there may be new expressions to compile
    return size
