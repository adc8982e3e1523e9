"""Applies fixes to the text of a file: only the characters that change are touched.

Each fix is applied to the text and to the decoded value; if the edited text decodes to another value,
the fix is skipped. So a fix never changes anything else, whatever the file looks like.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import yaml

from allot.apiserver.yaml_documents import YamlError, parse_documents
from allot.lint.fixes import Fix, MoveUnder, MoveUp, RenameKey, ReplaceValue
from allot.lint.manifests import Manifest, path_parts

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INDENT: Final = "  "
_is_plain: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*").fullmatch
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


class Edit(NamedTuple):
    """Characters from `start` to `end` are replaced."""

    start: int
    end: int
    text: str


class Fixed(NamedTuple):
    """A file's new text, and the fixes that were made and that could not be made."""

    text: str
    made: list[tuple[Manifest, Fix]]
    left: list[tuple[Manifest, Fix]]


class _CannotFixError(Exception):
    """The text does not have the shape that the fix needs."""


def apply_fixes(text: str, fixes: Iterable[tuple[Manifest, Fix]]) -> Fixed:
    """The text of a file with as many of the fixes as can be made safely.

    Manifests further down in the file come first, so that positions above them stay valid.
    """
    made, left = [], []
    is_complete = text.endswith("\n")
    if not is_complete:
        text += "\n"
    ordered = sorted(fixes, key=lambda item: (item[0].place.line, item[0].place.column))
    for manifest, fix in reversed(ordered):
        try:
            text = _applied(text, manifest, fix)
            made.append((manifest, fix))
        except _CannotFixError:
            left.append((manifest, fix))
    return Fixed(text if is_complete else text.removesuffix("\n"), made[::-1], left[::-1])


def _applied(text: str, manifest: Manifest, fix: Fix) -> str:
    before = _values(text)
    number, item, root = _document_of(text, manifest)
    for edit in sorted(_edits(text, root, fix), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    expected = copy.deepcopy(before)
    _apply_to_value(expected[number] if item is None else expected[number]["items"][item], fix)
    if _values(text) != expected:
        raise _CannotFixError
    return text


def _values(text: str) -> list[Any]:
    try:
        return [document.value for document in parse_documents(text, with_places=False)]
    except YamlError:
        raise _CannotFixError from None


# --- locating the object ---


def _document_of(text: str, manifest: Manifest) -> tuple[int, int | None, yaml.Node]:
    """The number of the manifest's document among those that are not empty, its number in a list if
    it is in one, and its node."""
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.YAMLError:
        raise _CannotFixError from None
    documents = [node for node in nodes if node is not None and not _is_null(node)]
    for number, node in enumerate(documents):
        for item, candidate in _objects(node):
            mark, place = candidate.start_mark, manifest.place
            if (mark.line + 1, mark.column + 1) == (place.line, place.column):
                return number, item, candidate
    raise _CannotFixError


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null")


def _objects(node: yaml.Node) -> list[tuple[int | None, yaml.Node]]:
    """The document itself, or the items of a list."""
    items = _entry(node, "items")
    if items is not None and isinstance(items[1], yaml.SequenceNode):
        return list(enumerate(items[1].value))
    return [(None, node)]


def _entry(node: yaml.Node, key: str | int) -> tuple[yaml.Node | None, yaml.Node] | None:
    """Key and value nodes of a field, or an item and no key."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.value == str(key):
                return key_node, value_node
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return None, node.value[key]
    return None


def _at(node: yaml.Node, path: str) -> tuple[yaml.Node | None, yaml.Node]:
    found: tuple[yaml.Node | None, yaml.Node] = (None, node)
    for part in path_parts(path):
        inner = _entry(found[1], part)
        if inner is None:
            raise _CannotFixError
        found = inner
    return found


# --- edits ---


def _edits(text: str, root: yaml.Node, fix: Fix) -> Sequence[Edit]:
    match fix:
        case RenameKey(path, new):
            key, _ = _at(root, path)
            return [_replaced(text, key, new)]
        case ReplaceValue(path, new):
            return [_replaced(text, _at(root, path)[1], new)]
        case MoveUnder(path, keys, new):
            return _moved_under(text, _at(root, path)[1], keys, new)
        case MoveUp(path, key):
            return _moved_up(text, _at(root, path)[1], key)


def _replaced(text: str, node: yaml.Node | None, new: str) -> Edit:
    """The new string, quoted like the old one."""
    if not isinstance(node, yaml.ScalarNode) or "\n" in text[_start(node) : _end(node)]:
        raise _CannotFixError
    style = node.style
    if style == "'":
        written = "'" + new.replace("'", "''") + "'"
    elif style == '"' or not _is_plain(new) or new.lower() in _WORDS:
        written = json.dumps(new, ensure_ascii=False)
    else:
        written = new
    return Edit(_start(node), _end(node), written)


def _start(node: yaml.Node) -> int:
    return int(node.start_mark.index)


def _end(node: yaml.Node) -> int:
    return int(node.end_mark.index)


def _moved_under(text: str, mapping: yaml.Node, keys: Sequence[str], new: str) -> Sequence[Edit]:
    if not isinstance(mapping, yaml.MappingNode):
        raise _CannotFixError
    if mapping.flow_style:
        return _moved_under_flow(mapping, keys, new)
    entries = _block_entries(text, mapping)
    runs = _runs(entries, keys)
    column = mapping.start_mark.column
    lines = "".join(_indented(text[start:end], column) for start, end in runs)
    (start, end), *others = runs
    is_on_its_own_line = start == _line_start(text, start)
    indent = " " * column if is_on_its_own_line else ""
    return [
        Edit(start, end, f"{indent}{new}:\n{lines}"),
        *(Edit(start, end, "") for start, end in others),
    ]


class _BlockEntry(NamedTuple):
    """A field of a block mapping: from its key to the line break before the next field.

    The first field may share its line with what is before it (`- name: x`), others have the
    indentation before them, so that they can be taken out whole.
    """

    key: str
    start: int
    end: int


def _block_entries(text: str, mapping: yaml.MappingNode) -> list[_BlockEntry]:
    entries = []
    for key_node, value_node in mapping.value:
        start = _start(key_node)
        entries.append((str(key_node.value), start, _last_line_end(text, key_node, value_node)))
    return [
        _BlockEntry(key, start if number == 0 else _line_start(text, start), end)
        for number, (key, start, end) in enumerate(entries)
    ]


def _runs(entries: Sequence[_BlockEntry], keys: Sequence[str]) -> list[tuple[int, int]]:
    """From where to where the fields with these keys go; comments between two of them are part."""
    runs: list[tuple[int, int]] = []
    follows = False
    for entry in entries:
        if entry.key not in keys:
            follows = False
        elif follows:
            runs[-1] = (runs[-1][0], entry.end)
        else:
            runs.append((entry.start, entry.end))
            follows = True
    return runs


def _last_line_end(text: str, key: yaml.Node, value: yaml.Node) -> int:
    """The end of the last line of the value; comments below belong to what follows."""
    end = max(_end(key), _end(value))
    while end > _end(key) and text[end - 1].isspace():
        end -= 1
    # libyaml ends a block collection where the next token begins, after comments.
    while end > _end(key) and _is_comment_line(text, end):
        end = _line_start(text, end) - 1
        while end > _end(key) and text[end - 1].isspace():
            end -= 1
    return text.index("\n", end) + 1


def _is_comment_line(text: str, position: int) -> bool:
    return text[_line_start(text, position) : position].lstrip().startswith("#")


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _indented(lines: str, column: int) -> str:
    """The lines one level deeper. The first may lack its indentation."""
    first, *rest = lines.splitlines(keepends=True)
    moved = [f"{' ' * column}{_INDENT}{first.lstrip(' ')}"]
    moved += [f"{_INDENT}{line}" if line.strip() else line for line in rest]
    return "".join(moved)


def _moved_under_flow(mapping: yaml.MappingNode, keys: Sequence[str], new: str) -> Sequence[Edit]:
    """`{name: a, x: 1}` to `{name: a, exactly: {x: 1}}`, if the fields are adjacent."""
    numbers = [n for n, (key, _) in enumerate(mapping.value) if key.value in keys]
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise _CannotFixError
    first, last = mapping.value[numbers[0]][0], mapping.value[numbers[-1]][1]
    name = f'"{new}"' if first.style == '"' else new
    return [Edit(_start(first), _start(first), f"{name}: {{"), Edit(_end(last), _end(last), "}")]


def _moved_up(text: str, mapping: yaml.Node, key: str) -> Sequence[Edit]:
    """The fields of a mapping in the place of the mapping itself."""
    key_node, inner = _entry(mapping, key) or (None, None)
    if not isinstance(inner, yaml.MappingNode) or not isinstance(mapping, yaml.MappingNode):
        raise _CannotFixError
    assert key_node is not None
    if inner.flow_style:
        return [
            Edit(_start(key_node), _start(inner) + 1, ""),
            Edit(_end(inner) - 1, _end(inner), ""),
        ]
    if mapping.flow_style:
        raise _CannotFixError
    start, end = _start(key_node), _last_line_end(text, key_node, inner)
    depth = inner.start_mark.column - key_node.start_mark.column
    heading, _, body = text[start:end].partition("\n")
    if "#" in heading:
        raise _CannotFixError  # the comment would have no place
    lines = [line[depth:] if line[:depth].isspace() else line for line in body.splitlines(True)]
    return [Edit(start, end, "".join(lines).lstrip(" "))]


# --- the same on values ---


def _apply_to_value(root: Any, fix: Fix) -> None:
    match fix:
        case RenameKey(path, new):
            parent, last = _value_parent(root, path)
            parent[new] = parent.pop(last)
        case ReplaceValue(path, new):
            parent, last = _value_parent(root, path)
            parent[last] = new
        case MoveUnder(path, keys, new):
            mapping = _value_at(root, list(path_parts(path)))
            mapping[new] = {key: mapping.pop(key) for key in keys}
        case MoveUp(path, key):
            mapping = _value_at(root, list(path_parts(path)))
            mapping |= mapping.pop(key)


def _value_parent(root: Any, path: str) -> tuple[Any, Any]:
    *parents, last = path_parts(path)
    return _value_at(root, parents), last


def _value_at(root: Any, parts: Sequence[str | int]) -> Any:
    for part in parts:
        try:
            root = root[part]
        except (KeyError, IndexError, TypeError):
            raise _CannotFixError from None
    return root
