"""Why a strategic merge patch does not fit the types of an object, in Go's words.

Go decodes a patched object from maps, not from JSON, and says other words than its JSON decoder does.
"""

from __future__ import annotations

import re
from typing import Final

from allot.api.decoding import DecodeError
from allot.apiserver.schemas.mismatches import NAMED_STRINGS

_mismatch: Final = re.compile(
    r"json: cannot unmarshal (\w+)(?: \S+)? into Go struct field \S+ of type (.*)"
)
_KINDS: Final = {"object": "map", "array": "slice", "string": "string", "bool": "bool"}
_SCALARS: Final = frozenset({"string", "bool", "int32", "int64", "float64"})


def conversion_problem(error: DecodeError) -> str:
    """The error of a document that a strategic merge patch made."""
    found = _mismatch.fullmatch(str(error))
    if found is None:
        return str(error)
    json_kind, wanted = found.groups()
    source = _KINDS.get(json_kind) or ("float64" if re.search("[.eE]", error.value) else "int64")
    if wanted.startswith("map[") or wanted == "v1.ResourceList":
        return f"cannot restore map from {source}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {source}"
    kind = "string" if wanted in NAMED_STRINGS else wanted
    if kind not in _SCALARS:
        return f"cannot restore struct from: {source}"
    if json_kind == "number" and kind != "bool" and not (source == "float64" and kind == "string"):
        return f"cannot convert {source} to {wanted}"
    return f"unrecognized type: {kind}"
