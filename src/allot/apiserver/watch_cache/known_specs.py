"""Specs of new objects that were sent before: objects made from one template have equal specs, which are read once.

Of such an object only the rest is looked at. Whatever is unusual about it is left to those who read it as a whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from allot.api.base import replace
from allot.api.identities import GroupVersionKind
from allot.api.meta import ObjectMeta
from allot.api.plain_json import read_plain
from allot.api.strictness import has_no_duplicates
from allot.apiserver.schemas.empty_values import may_have_empty_values
from allot.apiserver.schemas.fields import Type
from allot.apiserver.schemas.strictness import fits
from allot.apiserver.schemas.types import type_named, type_of

Spec = TypeVar("Spec")

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
    metadata: Raw
    spec: Raw


_decode: Final = msgspec.json.Decoder(SentParts).decode
_encode: Final = msgspec.json.Encoder().encode
_metadata_decoder: Final = msgspec.json.Decoder(ObjectMeta)
_NOT_READ: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def sent_parts(body: bytes) -> SentParts | None:
    """The parts of the object in `body`; None if it has others, or is large."""
    if len(body) > MAX_BODY:
        return None
    try:
        return _decode(body)
    except _NOT_READ:
        return None


PlainParts = tuple[ObjectMeta, dict[str, Any]]
"""The metadata of an object, and its spec with defaults."""


class SpecByText(dict[bytes, Spec]):
    """Specs with their defaults, by the JSON in which they were sent. When there are too many, all are forgotten."""

    def add(self, text: bytes, spec: Spec) -> None:
        """Remember the spec of an object without unknown and duplicate fields, if it is small."""
        if len(text) <= MAX_BYTES:
            if len(self) >= MAX_KNOWN:
                self.clear()
            self[text] = spec


class KnownSpecs:
    """Specs of one raw kind."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._gvk = gvk
        kind, version = f'"kind":"{gvk.kind}"', f'"apiVersion":"{gvk.group_version}"'
        self._heads = (f"{{{kind},{version},".encode(), f"{{{version},{kind},".encode())
        self._length_of_rest = len(self._heads[0]) + len('"metadata":,"spec":}')
        self._known: SpecByText[dict[str, Any]] = SpecByText()

    def find_plain(self, body: bytes) -> PlainParts | None:
        """The parts of the object in `body`, if it says of which kind it is, its spec is known, and its metadata is written just as it is here."""
        parts = sent_parts(body) if body.startswith(self._heads) else None
        if parts is None:
            return None
        spec_json, metadata_json = bytes(parts.spec), bytes(parts.metadata)
        spec = self._known.get(spec_json)
        if spec is None:
            return None
        if len(spec_json) + len(metadata_json) + self._length_of_rest != len(body):
            return None  # there are spaces, or a field is there twice
        metadata = read_plain(metadata_json, _metadata_decoder)
        if metadata is None or metadata.managed_fields:  # whose entries may have any fields
            return None
        return metadata, spec

    def find(self, parts: SentParts, body: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The metadata and the spec of the object in `body`, if that is known and nothing at all is to be said about the rest."""
        spec = self._known.get(bytes(parts.spec))
        if spec is None:
            return None
        try:
            metadata = msgspec.json.decode(parts.metadata)
        except _NOT_READ:
            return None
        written = _encode(metadata)
        if b"null" in written or may_have_empty_values(written):
            return None
        is_right = fits(metadata, _metadata_type(self._gvk), strict=True)
        whole = replace(parts, metadata=metadata)
        return (metadata, spec) if is_right and has_no_duplicates(body, whole) else None

    def add(self, parts: SentParts, spec: dict[str, Any]) -> None:
        self._known.add(bytes(parts.spec), spec)


@cache
def _metadata_type(gvk: GroupVersionKind) -> Type:
    schema = type_of(gvk)
    assert schema is not None
    return type_named(schema.fields["metadata"].type)
