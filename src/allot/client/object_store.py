"""The indexed store of an informer: objects by key and by index (client-go's Indexer)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Generic, NamedTuple, TypeVar

from allot.api.identities import ObjectKey
from allot.client.codecs import Codec

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]
"""The values of an object in an index."""


class Delta(NamedTuple, Generic[T]):
    """A change of one object: an addition without `old`, a deletion without `new`."""

    old: T | None
    new: T | None


class ObjectStore(Generic[T]):
    """Objects are shared by all readers: never modify one in place."""

    def __init__(self, codec: Codec[T], indexes: Mapping[str, IndexFunction[T]]) -> None:
        self._codec = codec
        self._objects: dict[ObjectKey, T] = {}
        self._functions = dict(indexes)
        self._indexes: dict[str, dict[str, dict[ObjectKey, T]]] = {name: {} for name in indexes}
        self._values: dict[ObjectKey, list[tuple[str, tuple[str, ...]]]] = {}

    # --- reading ---

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def list(self) -> list[T]:
        return list(self._objects.values())

    def keys(self) -> Iterable[ObjectKey]:
        return self._objects.keys()

    def by_index(self, name: str, value: str) -> list_[T]:
        """The objects for which an index function gave this value."""
        return list(self._indexes[name].get(value, _NOTHING).values())

    def keys_by_index(self, name: str, value: str) -> list_[ObjectKey]:
        return list(self._indexes[name].get(value, _NOTHING))

    def index_values(self, name: str) -> KeysView[str]:
        return self._indexes[name].keys()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    # --- updating ---

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        known = self._functions.get(name)
        if known is function:
            return
        if known is not None:
            raise ValueError(f"duplicate index {name}")
        entries = {key: tuple(dict.fromkeys(function(obj))) for key, obj in self._objects.items()}
        self._functions[name] = function
        self._indexes[name] = {}
        for key, values in entries.items():
            self._values.setdefault(key, []).append((name, values))
            self._enter(name, values, key, self._objects[key])

    def put(self, key: ObjectKey, obj: T) -> Iterable[Delta[T]]:
        """Add or update an object; the changes, none if it is unchanged.

        A successor of the same name is a deletion and an addition.
        """
        codec = self._codec
        old = self._objects.get(key)
        if old is not None:
            if codec.resource_version(old) == codec.resource_version(obj):
                return ()
            if codec.uid(old) != codec.uid(obj):
                return self._succeed(key, old, obj)
        self._set(key, old, obj)
        return (Delta(old, obj),)

    def put_newer(self, key: ObjectKey, obj: T) -> T | None:
        """Add an object, or replace it by a newer version; the one that was replaced."""
        old = self._objects.get(key)
        self._set(key, old, obj)
        return old

    def _succeed(self, key: ObjectKey, old: T, new: T) -> Iterator[Delta[T]]:
        self._remove(key)
        yield Delta(old, None)
        self._set(key, None, new)
        yield Delta(None, new)

    def drop(self, key: ObjectKey, last: T | None = None) -> Iterable[Delta[T]]:
        """Remove an object; `last` is its final state, if known."""
        old = self._objects.get(key)
        if old is None:
            return ()
        self._remove(key)
        return (Delta(last if last is not None else old, None),)

    def _set(self, key: ObjectKey, old: T | None, new: T) -> None:
        if not self._functions:
            self._objects[key] = new
            return
        # Call all index functions first: if one raises, the store is unchanged.
        entered = [
            (name, tuple(dict.fromkeys(function(new))))
            for name, function in self._functions.items()
        ]
        if old is not None and self._values[key] != entered:
            self._leave(key)
        self._objects[key] = new
        self._values[key] = entered
        for name, values in entered:
            if values:
                self._enter(name, values, key, new)

    def _remove(self, key: ObjectKey) -> None:
        del self._objects[key]
        if self._functions:
            self._leave(key)

    def _enter(self, name: str, values: Iterable[str], key: ObjectKey, obj: T) -> None:
        index = self._indexes[name]
        for value in values:
            found = index.get(value)
            if found is None:
                found = index[value] = {}
            found[key] = obj

    def _leave(self, key: ObjectKey) -> None:
        for name, values in self._values.pop(key):
            index = self._indexes[name]
            for value in values:
                found = index[value]
                found.pop(key, None)
                if not found:
                    del index[value]


list_ = list
_NOTHING: dict[ObjectKey, T] = {}  # type: ignore[valid-type]
