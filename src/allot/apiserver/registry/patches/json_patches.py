"""JSON patches (RFC 6902): operations on paths, one after the other; all of them or none.

Where Kubernetes leaves the RFC, so do we: what is before the first slash of a path does not matter, a `~` that escapes
nothing stands for itself, places in lists are counted from the end with negative numbers, a field that is not there is
null when it is copied, and the whole document can be replaced and tested only.

The document is copied along the paths that operations change, each container at most once, so that a
long patch on a large document costs no more than both together. `copy` is the one operation that
could make much out of little: all that is copied by one patch is counted. `copy` and `move` can nest
deeply what was not: that is looked at once, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from allot.api.json_limits import MAX_DEPTH
from allot.apiserver.registry.patches.documents import decode_patch, depth, is_same, kind_of, plain
from allot.apiserver.registry.patches.errors import PatchError

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

TOO_DEEP: Final = "the document would be nested too deeply"

Path = tuple[str, ...]

_is_index: Final = re.compile("[+-]?[0-9]{1,10}", re.ASCII).fullmatch


_OPERATION: Final = "handlers.jsonPatchOp"


class _Operation(NamedTuple):
    """One operation. `source` is where `move` and `copy` take the value from."""

    name: str
    path: Path
    source: Path = ()
    value: Any = None


class UnfitOperationError(PatchError):
    """One operation cannot be done: which one, and the document before it."""

    def __init__(self, problem: str, index: int, document: Any) -> None:
        error = PatchError.unfit(problem)
        super().__init__(error.code, error.reason, error.message, error.short_message)
        self.index, self.document = index, document


class _UnfitError(Exception):
    """An operation cannot be done; says why."""


def json_patch(document: Any, patch: bytes) -> Any:
    """`document` after all operations; `PatchError` if one of them fails."""
    operations = _descriptions(patch)
    if len(operations) > MAX_OPERATIONS:
        raise PatchError.too_large(
            "Request entity is too large: "
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return apply_operations(document, operations)


def apply_operations(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """`document` after all operations; `PatchError`, mostly `UnfitOperationError`, if one of them fails."""
    editor = _Editor(document)
    for index, description in enumerate(operations):
        try:
            editor.apply(_operation(description))
        except _UnfitError as error:
            name, path = description.get("op"), description.get("path")
            problem = f"operation {index} ({name} {path}): {error}"
            raise UnfitOperationError(problem, index, editor.root) from None
        except RecursionError:
            raise PatchError.unfit(TOO_DEEP) from None
    return editor.result()


def _descriptions(patch: bytes) -> list[dict[str, Any]]:
    decoded = decode_patch(patch)
    if decoded is None:
        return []
    if not isinstance(decoded, list):
        raise _wrong_type(decoded, f"value of type []{_OPERATION}")
    for description in decoded:
        if description is None:
            raise PatchError.unfit("an operation must be an object")
        if not isinstance(description, dict):
            raise _wrong_type(description, f"value of type {_OPERATION}")
        for field in ("op", "path", "from"):
            value = description.get(field)
            if not isinstance(value, str | None):
                raise _wrong_type(value, f"struct field jsonPatchOp.{field} of type string")
    return decoded


def _wrong_type(value: Any, wanted: str) -> PatchError:
    return PatchError.malformed(
        f"error decoding patch: json: cannot unmarshal {kind_of(value)} into Go {wanted}"
    )


def _operation(description: Mapping[str, Any]) -> _Operation:
    name = description.get("op")
    if name not in ("add", "remove", "replace", "move", "copy", "test"):
        raise _UnfitError("the operation must be one of add, remove, replace, move, copy, test")
    if description.get("path") == "" and name in ("replace", "test"):
        return _Operation(name, (), value=description.get("value"))
    path = _path(description, "path")
    if name in ("move", "copy"):
        return _Operation(name, path, source=_path(description, "from"))
    return _Operation(name, path, value=description.get("value"))


def _path(description: Mapping[str, Any], field: str) -> Path:
    """The parts of a JSON pointer (RFC 6901), at least one."""
    pointer = description.get(field)
    if not isinstance(pointer, str):
        raise _UnfitError(f"`{field}` must be a string")
    parts = pointer.split("/")[1:]
    if not parts:
        raise _UnfitError(f"`{field}` must have a slash")
    if len(parts) > MAX_DEPTH:
        raise _UnfitError(f"`{field}` is nested too deeply")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


class _Editor:
    """A document under change. Containers that are ours already are changed in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._ours: dict[int, Any] = {}
        self._decoded: dict[int, tuple[Raw, Any]] = {}
        self._copied_bytes = 0
        self._has_moved = False
        self._verbs: dict[str, Callable[[_Operation], None]] = {
            "add": self._add_new,
            "remove": lambda operation: self._remove(operation.path),
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: _Operation) -> None:
        self._verbs[operation.name](operation)

    def result(self) -> Any:
        if self._has_moved and depth(self.root, MAX_DEPTH) > MAX_DEPTH:
            raise PatchError.unfit(TOO_DEEP)
        return self.root

    def _add_new(self, operation: _Operation) -> None:
        _check_depth(operation.path, operation.value)
        self._add(operation.path, operation.value)

    def _add(self, path: Path, value: Any) -> None:
        parent, last = self._owned(path[:-1]), path[-1]
        if isinstance(parent, dict):
            parent[last] = value
        else:
            index = len(parent) if last == "-" else _index(last, len(parent) + 1)
            parent.insert(index, value)

    def _remove(self, path: Path) -> None:
        parent = self._owned(path[:-1])
        del parent[_key(parent, path[-1])]

    def _replace(self, operation: _Operation) -> None:
        path, value = operation.path, operation.value
        _check_depth(path, value)
        if not path:
            if not isinstance(value, dict | list):
                raise _UnfitError("the document must be an object or a list")
            self.root = value
            return
        parent = self._owned(path[:-1])
        # As in Kubernetes, a field that is not there is added.
        key = path[-1] if isinstance(parent, dict) else _key(parent, path[-1])
        parent[key] = value

    def _move(self, operation: _Operation) -> None:
        source, path = operation.source, operation.path
        value = self._at(source)
        if source == path:
            return
        if path[: len(source)] == source:
            raise _UnfitError("a value cannot be moved into itself")
        self._remove(source)
        self._add(path, value)
        self._has_moved = True

    def _copy(self, operation: _Operation) -> None:
        value = self._at_or_null(operation.source)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise _UnfitError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        # What stands in two places must not be changed in place.
        self._add(operation.path, _deep_copy(value))
        self._has_moved = True

    def _test(self, operation: _Operation) -> None:
        value = self._at_or_null(operation.path)
        if not is_same(self._plain(value), operation.value):
            raise _UnfitError("the value is another one")

    def _at_or_null(self, path: Path) -> Any:
        """The value at a path; null if an object that is there lacks the field."""
        if not path:
            return self.root
        container = self._plain(self._at(path[:-1]))
        if isinstance(container, dict):
            return container.get(path[-1])
        return container[_key(container, path[-1])]

    def _at(self, path: Path) -> Any:
        value = self.root
        for part in path:
            container = self._plain(value)
            value = container[_key(container, part)]
        return value

    def _plain(self, value: Any) -> Any:
        """Reading is not changing: bytes stay bytes, and are decoded once for all who look."""
        if not isinstance(value, Raw):
            return value
        if id(value) not in self._decoded:
            self._decoded[id(value)] = value, plain(value)
        return self._decoded[id(value)][1]

    def _owned(self, path: Path) -> Any:
        """The container at `path`; it, and all around it, are ours to change from now on."""
        container = self.root = self._own(self.root)
        for part in path:
            key = _key(container, part)
            container[key] = self._own(container[key])
            container = container[key]
        return container

    def _own(self, value: Any) -> Any:
        if id(value) in self._ours:
            return value
        value = plain(value)
        if not isinstance(value, dict | list):
            raise _UnfitError("the path leads through a value that is no object or list")
        copy = value.copy()
        self._ours[id(copy)] = copy
        return copy


def _key(container: Any, part: str) -> Any:
    """The key or index of something that is there."""
    if isinstance(container, dict):
        if part not in container:
            raise _UnfitError(f'there is no field "{part}"')
        return part
    if isinstance(container, list):
        return _index(part, len(container))
    raise _UnfitError("the path leads through a value that is no object or list")


def _index(part: str, length: int) -> int:
    if not _is_index(part):
        raise _UnfitError(f'"{part}" is not an index of a list')
    index = int(part)
    if not -length <= index < length:
        raise _UnfitError(f"the list has no item {index}")
    return index % length


def _check_depth(path: Path, value: Any) -> None:
    room = MAX_DEPTH - len(path)
    if depth(value, room) > room:
        raise _UnfitError(TOO_DEEP)


def _deep_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _deep_copy(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_deep_copy(inner) for inner in value]
    return value
