"""JSONPath of printer columns: `.spec.x`, `.items[*].name`, `.list[0]`, `.list[-1:]`, `.list[?(@.a=="b")].c`, `..name`.

As in kubectl, without filters of more than one comparison. Paths are read once and walk without recursion into what
they do not name; a result has at most `MAX_RESULTS` values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

MAX_RESULTS: Final = 1000

Step = Callable[[Any], Iterator[Any]]

_name: Final = re.compile(r"(?:\\.|[^.\[\]\\])+")
_slice: Final = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?").fullmatch
_filter: Final = re.compile(
    r"""@((?:\.[^.=<>!\s\[\])]+)*)\s*(?:(==|!=|<=|>=|<|>)\s*(?:"([^"]*)"|'([^']*)'|([^\s]+))\s*)?"""
).fullmatch


class JsonPathError(ValueError):
    """The path cannot be read."""


@lru_cache(1024)
def json_path(text: str) -> Callable[[Any], list[Any]]:
    """A function that finds the values of a path; `JsonPathError` if it is not one."""
    steps = list(_steps(text))

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            following: list[Any] = []
            for each in found:
                for result in step(each):
                    following.append(result)
                    if len(following) >= MAX_RESULTS:
                        break
            found = following[:MAX_RESULTS]
        return found

    return find


def _steps(text: str) -> Iterator[Step]:
    position = 0
    while position < len(text):
        if text.startswith("..", position):
            position += 2
            found = _name.match(text, position)
            if found is None:
                raise JsonPathError(text)
            yield _anywhere(_unescaped(found[0]))
            position = found.end()
        elif text[position] == ".":
            position += 1
            found = _name.match(text, position)
            if found is None:
                if position == len(text) or text[position] == "[":
                    continue
                raise JsonPathError(text)
            name = _unescaped(found[0])
            yield _every if name == "*" else _field(name)
            position = found.end()
        elif text[position] == "[":
            end = _end_of_bracket(text, position)
            yield _bracket(text[position + 1 : end].strip(), text)
            position = end + 1
        else:
            raise JsonPathError(text)


def _end_of_bracket(text: str, start: int) -> int:
    quote, depth = "", 0
    for index in range(start, len(text)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return index
    raise JsonPathError(text)


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _anywhere(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, dict):
                if name in each:
                    yield each[name]
                waiting += each.values()
            elif isinstance(each, list):
                waiting += each

    return step


def _bracket(content: str, text: str) -> Step:
    if content == "*":
        return _every
    if content[:1] in ("'", '"') and content[-1:] == content[:1] and len(content) > 1:
        return _field(content[1:-1])
    if content.startswith("?(") and content.endswith(")"):
        return _filtered(content[2:-1].strip(), text)
    found = _slice(content)
    if found is None or not content:
        raise JsonPathError(text)
    return _sliced(content)


def _sliced(content: str) -> Step:
    parts = content.split(":")
    numbers = [int(part) if part not in ("", "-") else None for part in parts]

    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if len(numbers) == 1:
            index = numbers[0] or 0
            if -len(value) <= index < len(value):
                yield value[index]
            return
        stride = numbers[2] if len(numbers) > 2 else None
        yield from value[numbers[0] : numbers[1] : stride or 1]

    return step


def _filtered(condition: str, text: str) -> Step:
    found = _filter(condition)
    if found is None:
        raise JsonPathError(text)
    path, operator, *texts = found.groups()
    wanted = next((each for each in texts if each is not None), None)
    is_quoted = texts[2] is None
    find = json_path(path) if path else lambda value: [value]

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            results = find(item)
            if results and (operator is None or _compares(results[0], operator, wanted, is_quoted)):
                yield item

    return step


def _compares(value: Any, operator: str, wanted: str | None, is_quoted: bool) -> bool:
    assert wanted is not None
    other: Any = wanted
    if not is_quoted:
        if wanted in ("true", "false"):
            other = wanted == "true"
        else:
            try:
                other = float(wanted)
            except ValueError:
                return False
    if isinstance(value, bool) != isinstance(other, bool):
        return False
    if isinstance(value, str) != isinstance(other, str) or isinstance(value, dict | list):
        return False
    match operator:
        case "==":
            return bool(value == other)
        case "!=":
            return bool(value != other)
        case "<":
            return bool(value < other)
        case "<=":
            return bool(value <= other)
        case ">":
            return bool(value > other)
    return bool(value >= other)
