"""The top-level fields of an object that a patch touches. The others stay as they are and need not be looked at."""

from __future__ import annotations

from typing import Final

import msgspec

from allot.apiserver.registry.patches.keyed_lists import is_directive


class _Operation(msgspec.Struct, rename={"source": "from"}):
    """The places of one operation of a JSON patch."""

    path: str
    source: str | None = None


_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_operations: Final = msgspec.json.Decoder(list[_Operation])


def touched_parts(format_: str, patch: bytes) -> frozenset[str] | None:
    """The fields that a merge, strategic or JSON patch may read or change; None if these may be all of them."""
    try:
        if format_ == "json":
            return _parts_of_operations(_operations.decode(patch))
        names = frozenset(_fields.decode(patch))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if any(map(is_directive, names)) else names


def _parts_of_operations(operations: list[_Operation]) -> frozenset[str] | None:
    pointers = [operation.path for operation in operations]
    pointers += [operation.source for operation in operations if operation.source is not None]
    parts = frozenset(pointer[1:].partition("/")[0] for pointer in pointers)
    is_plain = all(pointer.startswith("/") for pointer in pointers) and not any(
        "~" in part for part in parts
    )
    return parts if is_plain else None
