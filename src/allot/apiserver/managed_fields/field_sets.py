"""Sets of field paths in the form of FieldsV1, which is a tree of path elements.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}

contains `.metadata.labels` and `.metadata.labels.app`, but not `.metadata`: an element is in the set when
it has no children, or has the child `.`. Path elements are `f:NAME` for fields, `k:{...}` for items of a
list by their keys, `v:VALUE` for items of a set, and `i:INDEX`. Sets are immutable, and their elements are in
the order in which they are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

FieldSet = dict[str, Any]
"""A set, or the subtree of one element of it."""

SELF: Final = "."
_MEMBER: Final[FieldSet] = {}
_ORDER: Final = {".": 0, "f": 1, "k": 2, "v": 3, "i": 4}


class FieldSetError(ValueError):
    """Invalid FieldsV1."""


# --- path elements ---


def field_element(name: str) -> str:
    return f"f:{name}"


def key_element(keys: Mapping[str, Any]) -> str:
    """The item of a list with these keys, which are in alphabetical order."""
    return f"k:{go_json(keys)}"


is_plain: Final = re.compile(r"[0-9A-Za-z./:_-]*").fullmatch
"""Whether a string has no characters that JSON escapes, as names, uids and types of conditions."""


def value_element(value: Any) -> str:
    return f"v:{go_json(value)}"


@lru_cache(1024)
def text_value_element(value: str) -> str:
    """The item of a set that is this text: finalizers are the same few everywhere."""
    return value_element(value)


def go_json(value: Any) -> str:
    """JSON as Go writes it, with HTML characters escaped."""
    text = msgspec.json.encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def element_text(element: str) -> str:
    """A path element as messages show it: `.spec`, `[name="a"]`, `[="x"]`, `[0]`."""
    kind, _, rest = element.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = json.loads(rest)
            return "[" + ",".join(f"{name}={_plain_json(keys[name])}" for name in keys) + "]"
        case "v":
            return f"[={_plain_json(json.loads(rest))}]"
        case _:
            return f"[{rest}]"


def _plain_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# --- membership ---


def is_member(node: FieldSet) -> bool:
    """Whether the element with these children is in the set itself."""
    return not node or SELF in node


def contains(fields: FieldSet, *path: str) -> bool:
    for element in path:
        below = fields.get(element)
        if below is None:
            return False
        fields = below
    return is_member(fields)


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The paths of all members as messages show them: at each level its members first, then their children."""
    elements = [element for element in sorted_elements(fields) if element != SELF]
    for element in elements:
        if is_member(fields[element]):
            yield prefix + element_text(element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], prefix + element_text(element))


def from_paths(*of: tuple[str, ...]) -> FieldSet:
    """The set of paths of field names."""
    found: FieldSet = {}
    for path in of:
        node: FieldSet = _MEMBER
        for name in reversed(path):
            node = {field_element(name): node}
        found = union(found, node)
    return found


# --- algebra ---


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of either; `left` itself if it has all of them."""
    if not left:
        return right
    found: FieldSet | None = None
    is_longer = False
    for element, node in right.items():
        other = left.get(element)
        if other is None:
            merged, is_longer = node, True
        elif other is node or other == node:
            continue
        else:
            merged = _made(is_member(other) or is_member(node), union(other, node))
            if merged is other:
                continue
        found = dict(left) if found is None else found
        found[element] = merged
    if found is None:
        return left
    return ordered(found) if is_longer else found


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    if len(right) < len(left):
        left, right = right, left
    found: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == SELF:
            continue
        below = intersection(node, other) if node and other else _MEMBER
        member = is_member(node) and is_member(other)
        if below or member:
            found[element] = _made(member, below)
    return found


def overlap(left: FieldSet, right: FieldSet) -> bool:
    """Whether any member of one is in the other."""
    for element in left.keys() & right.keys():
        if element == SELF:
            continue
        node, other = left[element], right[element]
        if (not node or SELF in node) and (not other or SELF in other):
            return True
        if node and other and overlap(node, other):
            return True
    return False


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of `left` that are not in `right`; `left` itself if unchanged. Children of members of `right` stay."""
    found: FieldSet | None = None
    for element in left.keys() & right.keys():
        if element == SELF:
            continue
        node, other = left[element], right[element]
        is_taken = not other or SELF in other
        if not node:  # a member without children
            if not is_taken:
                continue
            below, member = node, False
        else:
            was_member = SELF in node
            inner = _children(node) if was_member else node
            below = difference(inner, other) if other else inner
            member = was_member and not is_taken
            if below is inner and member == was_member:
                continue
        found = dict(left) if found is None else found
        if below or member:
            found[element] = _made(member, below)
        else:
            del found[element]
    return left if found is None else found


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of `left` neither in `right` nor below a member of `right`; `left` itself if unchanged."""
    found: FieldSet | None = None
    for element in left.keys() & right.keys():
        if element == SELF:
            continue
        node, other = left[element], right[element]
        if not other or SELF in other:
            found = dict(left) if found is None else found
            del found[element]
            continue
        member = not node or SELF in node
        inner = _children(node) if member else node
        below = recursive_difference(inner, other) if inner else inner
        if below is inner:
            continue
        found = dict(left) if found is None else found
        if below or member:
            found[element] = _made(member, below)
        else:
            del found[element]
    return left if found is None else found


def _children(node: FieldSet) -> FieldSet:
    if SELF not in node:
        return node
    return {element: below for element, below in node.items() if element != SELF}


def _made(member: bool, below: FieldSet) -> FieldSet:
    """The node with these children."""
    if not member or not below or SELF in below:
        return below
    return {SELF: _MEMBER, **below}


# --- on the wire ---


def parse_fields(document: Any, depth: int = 0) -> FieldSet:
    """The set of a FieldsV1 document; `FieldSetError` if it is invalid."""
    if not isinstance(document, dict):
        raise FieldSetError("fields are objects")
    if depth > 100:
        raise FieldSetError("fields are nested too deeply")
    found: FieldSet = {}
    for element, below in document.items():
        node = parse_fields(below, depth + 1)
        name = _canonical(element)
        if name is None:
            continue  # path elements of later versions
        found[name] = node if name not in found else _made(True, union(found[name], node))
    return ordered(found)


def _canonical(element: str) -> str | None:
    kind, colon, rest = element.partition(":")
    if element == SELF or (kind == "f" and colon):
        return element
    if not colon:
        raise FieldSetError(f"missing colon in {element[:100]!r}")
    try:
        match kind:
            case "k":
                keys = json.loads(rest)
                if isinstance(keys, dict):
                    return key_element(dict(sorted(keys.items())))
            case "v":
                return value_element(json.loads(rest))
            case "i":
                return f"i:{int(rest)}"
            case _:
                return None
    except (ValueError, RecursionError):
        pass
    raise FieldSetError(f"{element[:100]!r} is not a path element")


def ordered(fields: FieldSet) -> FieldSet:
    """The same for a set whose elements have their own elements in order."""
    if len(fields) < 2:
        return fields
    elements = sorted_elements(fields)
    return {element: fields[element] for element in elements}


def sorted_elements(fields: FieldSet) -> list[str]:
    """Fields before keys before values before indices. `.` comes first on the wire and is not a path."""
    elements = sorted(fields)
    first = SELF in fields
    if len(elements) > 1 + first and elements[-1][0] > "f":
        elements.sort(key=_sort_key)  # items of a list are not sorted as strings
    return elements


def _sort_key(element: str) -> tuple[Any, ...]:
    kind = element[0]
    order = _ORDER[kind]
    match kind:
        case "k":
            keys = json.loads(element[2:])
            return order, [(name, *_rank(value)) for name, value in keys.items()]
        case "v":
            return order, _rank(json.loads(element[2:]))
        case "i":
            return order, int(element[2:])
        case _:
            return order, element


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before strings before booleans before lists before maps before null."""
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case list():
            return 3, _plain_json(value)
        case dict():
            return 4, _plain_json(value)
        case _:
            return 5, 0
