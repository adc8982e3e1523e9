"""The indexed store of an informer: objects by key and by index (client-go's Indexer)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping
from typing import Generic, TypeVar

from allot.api.identities import ObjectKey

log = logging.getLogger(__name__)

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]
"""The values of an object in an index."""


class _Index(Generic[T]):
    """The keys of objects by the values that a function gives for them."""

    def __init__(self, function: IndexFunction[T]) -> None:
        self.function = function
        self._keys_by_value: dict[str, ObjectKey | dict[ObjectKey, None]] = {}
        """Most values have one object, which needs no dictionary."""
        self.values: dict[ObjectKey, tuple[str, ...]] = {}

    def put(self, key: ObjectKey, values: tuple[str, ...]) -> None:
        if key in self.values:
            self.remove(key)
        if values:
            self.values[key] = values
            known = self._keys_by_value
            for value in values:
                keys = known.get(value)
                if keys is None:
                    known[value] = key
                elif isinstance(keys, dict):
                    keys[key] = None
                elif keys != key:  # a function may give a value twice
                    known[value] = {keys: None, key: None}

    def remove(self, key: ObjectKey) -> None:
        for value in self.values.pop(key, ()):
            keys = self._keys_by_value.get(value)
            if isinstance(keys, dict):
                keys.pop(key, None)
                if not keys:
                    del self._keys_by_value[value]
            elif keys == key:
                del self._keys_by_value[value]

    def keys_of(self, value: str) -> Collection[ObjectKey]:
        """The objects with a value, in the order in which they got it."""
        keys = self._keys_by_value.get(value)
        if keys is None:
            return ()
        return keys if isinstance(keys, dict) else (keys,)

    def all_values(self) -> KeysView[str]:
        return self._keys_by_value.keys()


class ObjectStore(Generic[T]):
    """Objects are shared by all readers: never modify one in place."""

    def __init__(self, indexes: Mapping[str, IndexFunction[T]]) -> None:
        self._objects: dict[ObjectKey, T] = {}
        self.get: Callable[[ObjectKey], T | None] = self._objects.get
        self._functions = dict(indexes)
        self._indexes = {name: _Index(function) for name, function in indexes.items()}
        """Those that are kept up to date."""

    # --- reading ---

    def list(self) -> list[T]:
        return list(self._objects.values())

    def keys(self) -> Iterable[ObjectKey]:
        return self._objects.keys()

    def by_index(self, name: str, value: str) -> list_[T]:
        """The objects for which an index function gave this value."""
        keys = self._index(name).keys_of(value)
        if not keys:
            return []
        objects = self._objects
        return [objects[key] for key in keys]

    def keys_by_index(self, name: str, value: str) -> list_[ObjectKey]:
        return list(self._index(name).keys_of(value))

    def index_values(self, name: str) -> KeysView[str]:
        return self._index(name).all_values()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    # --- indexes ---

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """An index that is built when it is first asked for: many are about what few clusters have."""
        known = self._functions.setdefault(name, function)
        if known is not function:
            raise ValueError(f"duplicate index {name}")

    def _index(self, name: str) -> _Index[T]:
        return self._indexes.get(name) or self._build_index(name)

    def _build_index(self, name: str) -> _Index[T]:
        """Objects that the function fails for are left out until they change."""
        index = _Index(self._functions[name])
        for key, obj in self._objects.items():
            try:
                index.put(key, tuple(index.function(obj)))
            except Exception:
                log.exception("%s: the function of index %s failed", key, name)
        self._indexes[name] = index
        return index

    # --- updating ---

    def put(self, key: ObjectKey, obj: T) -> T | None:
        """Add an object, or replace it by a newer version; the one that was replaced."""
        objects = self._objects
        old = objects.get(key)
        if self._indexes:
            self._enter(key, obj)
        objects[key] = obj
        return old

    def _enter(self, key: ObjectKey, obj: T) -> None:
        """Update the indexes. All functions are called first: if one raises, the store is unchanged.

        Most changes of an object leave its values as they are.
        """
        changes = []
        for index in self._indexes.values():
            values = tuple(index.function(obj))
            if values != index.values.get(key, ()):
                changes.append((index, values))
        for index, values in changes:
            index.put(key, values)

    def drop(self, key: ObjectKey) -> T | None:
        """Remove an object, and return it; None if it is not in the store."""
        old = self._objects.pop(key, None)
        if old is not None:
            for index in self._indexes.values():
                index.remove(key)
        return old


list_ = list
