"""Properties that are computed once.

As `functools.cached_property`, without the lock that it takes up to Python 3.11: views of objects and prepared devices
are many, and each belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Owner = TypeVar("Owner")
Computed = TypeVar("Computed")


class lazy(Generic[Owner, Computed]):  # noqa: N801 - used like a function
    """Decorates a method without arguments. Its result replaces it in the object."""

    def __init__(self, compute: Callable[[Owner], Computed]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, kind: type[Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type[Owner]) -> lazy[Owner, Computed]: ...
    @overload
    def __get__(self, owner: Owner, kind: type[Owner]) -> Computed: ...
    def __get__(self, owner: Any, kind: type[Owner]) -> Any:
        if owner is None:
            return self
        computed = owner.__dict__[self._name] = self._compute(owner)
        return computed
