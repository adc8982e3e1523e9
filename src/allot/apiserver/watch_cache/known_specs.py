"""Specs of new objects that were sent before: pods made from one template have equal specs, which are read once.

Of such an object only the metadata is looked at. Whatever is unusual about it is left to those who read it as a whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from allot.api.identities import GroupVersionKind
from allot.api.strictness import has_no_duplicates
from allot.apiserver.schemas.empty_values import may_have_empty_values
from allot.apiserver.schemas.fields import Type
from allot.apiserver.schemas.strictness import fits
from allot.apiserver.schemas.types import type_named, type_of

MAX_KNOWN: Final = 256
MAX_BYTES: Final = 4096
"""Larger specs are read every time."""
MAX_BODY: Final = 2 * MAX_BYTES


class SentParts(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """An object that has metadata and a spec, and nothing else."""

    kind: str | UnsetType = UNSET
    api_version: str | UnsetType = UNSET
    metadata: dict[str, Any]
    spec: Raw


_decode: Final = msgspec.json.Decoder(SentParts).decode
_encode: Final = msgspec.json.Encoder().encode


def sent_parts(body: bytes) -> SentParts | None:
    """The parts of the object in `body`; None if it has others, or is large."""
    if len(body) > MAX_BODY:
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class KnownSpecs:
    """Specs of one kind with their defaults, by the JSON in which they were sent. When there are too many, all are forgotten."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._gvk = gvk
        self._known: dict[bytes, dict[str, Any]] = {}

    def find(self, parts: SentParts, body: bytes) -> dict[str, Any] | None:
        """The spec of the object in `body`, if it is known and nothing at all is to be said about the rest."""
        spec = self._known.get(bytes(parts.spec))
        if spec is None:
            return None
        metadata = _encode(parts.metadata)
        if b"null" in metadata or may_have_empty_values(metadata):
            return None
        is_right = fits(parts.metadata, _metadata_type(self._gvk), strict=True)
        return spec if is_right and has_no_duplicates(body, parts) else None

    def add(self, parts: SentParts, spec: dict[str, Any]) -> None:
        """Remember the spec of an object without unknown and duplicate fields."""
        text = bytes(parts.spec)
        if len(text) <= MAX_BYTES:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[text] = spec


@cache
def _metadata_type(gvk: GroupVersionKind) -> Type:
    schema = type_of(gvk)
    assert schema is not None
    return type_named(schema.fields["metadata"].type)
