"""A sequence that is listed only if an item is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """Items whose number is known before they are listed."""

    __slots__ = ("_items", "_length", "_list_items")

    def __init__(self, length: int, list_items: Callable[[], Sequence[T]]) -> None:
        self._length = length
        self._list_items = list_items
        self._items: Sequence[T] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if self._items is None:
            self._items = self._list_items()
        return self._items[index]
