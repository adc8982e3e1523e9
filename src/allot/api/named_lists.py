"""Lists that are sent without items, where Kubernetes tells them from lists that are not sent.

Typed objects have an empty tuple for both. In the metadata that a template has for its claims the first becomes a `NamedList`,
which is equal to an empty tuple.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from allot.api.base import replace


class NamedList(tuple[Any, ...]):
    """An empty list that a client named."""

    __slots__ = ()


EMPTY: Final = NamedList()
_LISTS: Final = {
    "ownerReferences": "owner_references", "finalizers": "finalizers", "managedFields": "managed_fields",
}  # fmt: skip
_is_named: Final = re.compile(rb'"(%s)"\s*:\s*\[\s*\]' % "|".join(_LISTS).encode()).search
"""Whether one may be there; stored templates have such lists with items, elsewhere."""


def with_named_lists(template: Any, body: bytes) -> Any:
    """A ResourceClaimTemplate of any version, as it was read from `body`."""
    if not _is_named(body):
        return template
    spec = msgspec.json.decode(body).get("spec") or {}
    metadata = spec.get("metadata") or {}
    named = {field: EMPTY for name, field in _LISTS.items() if metadata.get(name) == []}
    if not named:
        return template
    changed = replace(template.spec, metadata=replace(template.spec.metadata, **named))
    return replace(template, spec=changed)
