"""Claims whose spec was sent before: those made from one template have equal specs, which are read once.

Only claims that are written just as they are written here are read this way, as the bodies of our own components are.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from allot.api.claims import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from allot.api.decoding import from_builtin
from allot.api.defaults import default_around
from allot.api.identities import GroupVersionKind
from allot.api.meta import ObjectMeta
from allot.api.plain_json import PlainStruct, read_plain
from allot.api.scheme import type_head
from allot.apiserver.watch_cache.known_specs import MAX_BODY, SpecByText


class SentClaim(PlainStruct, frozen=True):
    """A claim in the hub version, without its spec being read."""

    kind: str
    api_version: str
    metadata: ObjectMeta
    spec: Raw
    status: ResourceClaimStatus | UnsetType = UNSET


_decoder: Final = msgspec.json.Decoder(SentClaim, dec_hook=from_builtin)
_NO_STATUS: Final = ResourceClaimStatus()


class KnownClaims:
    """Reads claims with specs that were read before, in one version."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._head = type_head(gvk)
        self._specs: SpecByText[ResourceClaimSpec] = SpecByText()

    def find(self, body: bytes) -> ResourceClaim | None:
        """The claim in `body` with its defaults; None if its kind or its spec is not known, or something in it may be ignored."""
        sent = self._sent(body)
        spec = None if sent is None else self._specs.get(bytes(sent.spec))
        if sent is None or spec is None:
            return None
        status = _NO_STATUS if sent.status is UNSET else sent.status
        if sent.metadata.managed_fields or _has_opaque_parts(status):
            return None  # they may have anything inside
        return default_around(spec, sent.metadata, status)

    def add(self, body: bytes, spec: ResourceClaimSpec) -> None:
        """Remember the spec of the claim in `body`, which has no unknown and duplicate fields, with its defaults."""
        sent = self._sent(body)
        if sent is not None:
            self._specs.add(bytes(sent.spec), spec)

    def _sent(self, body: bytes) -> SentClaim | None:
        if len(body) > MAX_BODY or not body.startswith(self._head):
            return None
        return read_plain(body, _decoder)


def _has_opaque_parts(status: ResourceClaimStatus) -> bool:
    allocation = status.allocation
    return bool(status.devices) or (allocation is not None and bool(allocation.devices.config))
