"""Counts steps, for tests of work that may only grow with the size of what it is about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Comparisons:
    """Counts comparisons of texts and objects."""

    count = 0


class Text(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Comparisons.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Object(dict[str, Any]):
    def __eq__(self, other: object) -> bool:
        Comparisons.count += 1
        return dict.__eq__(self, other)

    __hash__ = None


def counted(value: Any) -> Any:
    if isinstance(value, dict):
        return Object({name: counted(inner) for name, inner in value.items()})
    return [counted(item) for item in value] if isinstance(value, list) else value


def with_counted_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: with_counted_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_counted_texts(item) for item in value]
    return Text(value) if isinstance(value, str) else value


def steps(work: Callable[[], Any]) -> int:
    """Instructions of the interpreter, and comparisons, that it takes. What comes back piece by piece is taken whole."""
    instructions = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal instructions
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        instructions += event == "opcode"
        return trace

    Comparisons.count = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = work()
        if isinstance(found, Iterator):
            for _ in found:
                pass
    finally:
        sys.settrace(before)
    return instructions + Comparisons.count
