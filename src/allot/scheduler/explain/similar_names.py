"""Names that may have been meant instead of one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from allot.api.identities import ObjectKey

MAX_SIMILAR: Final = 3
NEARLY: Final = 0.8
"""How similar names must be; names in one domain are similar by that alone."""


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most three, the most similar first."""
    return tuple(get_close_matches(name, sorted(set(known)), MAX_SIMILAR, NEARLY))


def similar_names(name: str, known: Iterable[str]) -> str:
    """`a, b or c`, if these may have been meant; empty if there is nothing like it."""
    return alternatives(close_names(name, known))


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def close_objects(key: ObjectKey, objects: Iterable[Any]) -> tuple[str, ...]:
    """Names of objects in the same namespace that may have been meant."""
    in_namespace = (each.metadata for each in objects if each.metadata.namespace == key.namespace)
    return close_names(key.name, (metadata.name for metadata in in_namespace))
