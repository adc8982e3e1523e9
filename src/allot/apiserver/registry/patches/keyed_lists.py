"""Lists in strategic merge patches: items are told apart by a key, or, if they are scalars, by their value.

Items that a patch mentions come in its order. Each of the others stays before whatever it was in
front of, as far as that leaves the order of the patch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

from allot.apiserver.registry.patches.documents import identity, plain
from allot.apiserver.registry.patches.errors import PatchError, shown_value

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList/"
ORDER_OF: Final = "$setElementOrder/"


def is_directive(name: str) -> bool:
    """Whether a field of a patch is an instruction instead of a field."""
    return name in (DIRECTIVE, RETAIN_KEYS) or name.startswith((DELETE_FROM, ORDER_OF))


class ListRule(NamedTuple):
    """What tells the items of a list apart: the value of a field, or without one the items themselves."""

    merge_key: str = ""

    def identity(self, item: Any) -> Hashable:
        """None for an item without the key: it is like no other."""
        if not self.merge_key:
            return identity(item)
        value = plain(item)
        if not isinstance(value, dict) or self.merge_key not in value:
            return None
        return identity(value[self.merge_key])

    def required_identity(self, item: Any) -> Hashable:
        """`PatchError` for an item without the key."""
        found = self.identity(item)
        if found is None:
            shown = shown_value(plain(item))
            raise PatchError.unclassified(
                f"map: {shown} does not contain declared merge key: {self.merge_key}"
            )
        return found

    def identities(self, items: list[Any]) -> list[Hashable]:
        return [self.identity(item) for item in items]


def merged_scalars(live: list[Any], changes: list[Any], rule: ListRule) -> list[Any]:
    """All values of both lists, each once."""
    union = {rule.identity(item): item for item in reversed([*live, *changes])}
    items = list(reversed(union.values()))
    return in_order(items, rule.identities(changes), rule.identities(live), rule)


def merged_items(
    live: list[Any],
    changes: list[Any],
    rule: ListRule,
    merge: Callable[[Any, dict[str, Any]], Any],
) -> list[Any]:
    """Items with the same key merged, the patch's others added, those that it deletes gone."""
    kept: list[dict[str, Any]] = []
    deleted: set[Hashable] = set()
    is_replaced = False
    if not all(isinstance(change, dict) for change in changes):
        shown = f"[{shown_value(list(map(plain, live)))} {shown_value(changes)}]"
        raise PatchError.unclassified(f"list element types are not identical: {shown}")
    for change in changes:
        match change.get(DIRECTIVE):
            case None if DIRECTIVE not in change:
                kept.append(change)
            case "merge":
                raise PatchError.unclassified("merging lists cannot yet be specified in the patch")
            case "delete":
                deleted.add(rule.required_identity(change))
            case "replace":
                is_replaced = True
            case other:
                raise PatchError.wrong_directive(other, change)
    if is_replaced:
        live = []
    items = [item for item in live if rule.identity(item) not in deleted]
    place: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        place.setdefault(rule.identity(item), index)
    for change in kept:
        key = rule.required_identity(change)
        index = place.setdefault(key, len(items))
        if index == len(items):
            items.append(merge(None, change))
        else:
            items[index] = merge(items[index], change)
    return in_order(items, rule.identities(list(kept)), rule.identities(live), rule)


def in_order(
    items: list[Any], wanted: list[Hashable], live: list[Hashable], rule: ListRule
) -> list[Any]:
    """Items in the wanted order, and those it does not name where they were in the live list."""
    if not wanted or len(items) < 2:
        return items
    rank, was_at = _places(wanted), _places(live)
    keyed = [(rule.identity(item), item) for item in items]
    named = sorted((pair for pair in keyed if pair[0] in rank), key=lambda pair: rank[pair[0]])
    others = [pair for pair in keyed if pair[0] not in rank]
    others.sort(key=lambda pair: was_at.get(pair[0], len(live)))
    result: list[Any] = []
    position = 0
    for key, item in named:
        # A new item was nowhere: it goes ahead of all that is left.
        while position < len(others) and was_at.get(others[position][0], len(live)) < was_at.get(
            key, -1
        ):
            result.append(others[position][1])
            position += 1
        result.append(item)
    return [*result, *(item for _, item in others[position:])]


def _places(keys: list[Hashable]) -> dict[Hashable, int]:
    """Where each key occurs first."""
    return {key: index for index, key in reversed(list(enumerate(keys)))}


def without_directives(value: Any) -> Any:
    """The value that a patch sets where there is nothing to merge with; null in it is a value."""
    if isinstance(value, dict):
        return {
            name: without_directives(inner)
            for name, inner in value.items()
            if not is_directive(name)
        }
    if isinstance(value, list):
        return [without_directives(item) for item in value if not is_only_directive(item)]
    return value


def is_only_directive(item: Any) -> bool:
    return isinstance(item, dict) and item.get(DIRECTIVE) in ("delete", "replace")
