"""Merge patches (RFC 7386): objects merge, null removes, everything else replaces."""

from __future__ import annotations

from typing import Any

from allot.apiserver.registry.patches.documents import decode_patch, is_same, not_a_map, plain
from allot.apiserver.registry.patches.errors import PatchError


def merge_patch(document: Any, patch: bytes) -> Any:
    """`document` with the patch's fields; null removes a field. `PatchError` if it is no object."""
    changes = decode_patch(patch)
    if changes is None:
        raise PatchError.malformed("Invalid JSON Patch")
    if not isinstance(changes, dict):
        raise PatchError.malformed(f"error decoding patch: {not_a_map(changes)}")
    return merged(document, changes)


def merged(target: Any, changes: dict[str, Any]) -> Any:
    """`target` with changes; the very same `target` if they change nothing that was kept as bytes."""
    before = plain(target)
    after: dict[str, Any] = dict(before) if isinstance(before, dict) else {}
    for name, value in changes.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(after.get(name), value)
        else:
            after[name] = value
    return target if before is not target and is_same(before, after) else after
