"""Merges an applied configuration into the live value: fields it has replace the live ones, others stay."""

from __future__ import annotations

from typing import Any

from allot.apiserver.managed_fields.comparison import ABSENT
from allot.apiserver.managed_fields.value_types import (
    ListType,
    MapType,
    PathElementError,
    ValueType,
)


class MergeError(ValueError):
    """Values that cannot be merged."""


def merge(type_: ValueType, live: Any, applied: Any) -> Any:
    """The live value with the fields of `applied`; either may be `ABSENT`. What does not change is shared with `live`."""
    if applied is ABSENT:
        return live
    if live is ABSENT:
        return applied
    if live.__class__ is applied.__class__ is dict and (map_ := type_.map) is not None:
        return applied if map_.atomic else _merge_entries(map_, live, applied)
    part = type_.part_for(applied)
    if applied is None and type_.part_for(live) is not part:
        # null is merged as the type of the value it replaces
        part = type_.part_for(live)
    if isinstance(part, MapType):
        old_map = live if isinstance(live, dict) else {}
        new_map = applied if isinstance(applied, dict) else {}
        if not part.atomic and (old_map or new_map):
            return _merge_entries(part, old_map, new_map)
    elif isinstance(part, ListType):
        old_list = live if isinstance(live, list) else []
        new_list = applied if isinstance(applied, list) else []
        if part.associative and (old_list or new_list):
            return _merge_items(part, old_list, new_list)
    return applied


def _merge_entries(part: MapType, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] | None = None
    fields, element = part.fields, part.element
    for name, value in applied.items():
        before = live.get(name, ABSENT)
        if value.__class__ is str and value == before:
            continue
        type_ = fields.get(name) or element
        if before is ABSENT or type_ is None or type_.only_scalar:
            after = value
        else:
            after = merge(type_, before, value)
        if after is before:
            continue
        if merged is None:
            merged = dict(live)
        merged[name] = after
    return live if merged is None else merged


def _merge_items(part: ListType, live: list[Any], applied: list[Any]) -> list[Any]:
    """Applied items keep their order; other items keep their position between them."""
    applied_by_element = {_element(part, index, item): item for index, item in enumerate(applied)}
    live_elements = [_element(part, index, item) for index, item in enumerate(live)]
    live_by_element: dict[str, Any] = {}
    for element, item in zip(live_elements, live, strict=True):
        # Live items with a duplicate key are not merged.
        live_by_element[element] = ABSENT if element in live_by_element else item
    new_elements = list(applied_by_element)
    shared = [element for element in new_elements if element in live_by_element]
    if not live and len(new_elements) == len(applied):
        return applied
    merged: list[Any] = []
    done: set[str] = set()

    def take(element: str) -> None:
        done.add(element)
        before = live_by_element.get(element, ABSENT)
        merged.append(merge(part.element, before, applied_by_element[element]))
        if shared and shared[0] == element:
            del shared[0]

    left = right = 0
    while left < len(live_elements) or right < len(new_elements):
        if left < len(live_elements) and right < len(new_elements):
            element = live_elements[left]
            if element == new_elements[right]:
                take(element)
                left += 1
                right += 1
                continue
            if element in applied_by_element and shared and shared[0] != element:
                left += 1
                continue
        if left < len(live_elements):
            element = live_elements[left]
            if element not in applied_by_element:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(new_elements):
            take(new_elements[right])
            right += 1
    return merged


def _element(part: ListType, index: int, item: Any) -> str:
    try:
        return part.path_element(item)
    except PathElementError as error:
        raise MergeError(f"element {index}: {error}") from None
