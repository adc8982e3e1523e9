"""Placeholders in strings: `gpu-{i}`, `numa-{i//4}`, `0000:{i*16+1:02x}:00.0`, `0000:{i|1b|43|52}:00.0`.

A name, optional integer arithmetic, evaluated from left to right, and an optional format (`:02x`) or list of texts, of
which the number picks one, starting at 0. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PLACEHOLDER: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<inside>[^{}]*)\}")
_INSIDE: Final = re.compile(
    r"\s*(?P<name>[A-Za-z]+)\s*(?P<steps>(?:(?://|[-+*%])\s*\d{1,9}\s*)*)"
    r"(?::(?P<format>0?\d{0,2}[dxX]?)|(?P<choices>(?:\|[^|]*)+))?"
).fullmatch
_STEP: Final = re.compile(r"(//|[-+*%])\s*(\d+)")


class PlaceholderError(ValueError):
    """An invalid placeholder."""


def filled(value: Any, values: Mapping[str, int | str]) -> Any:
    """`value` with all placeholders in its strings and mapping keys replaced."""
    if isinstance(value, str):
        return _filled_text(value, values) if "{" in value else value
    if isinstance(value, Mapping):
        return {filled(key, values): filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    return value


def literal(text: str) -> str:
    """The text that `filled` turns into `text`."""
    return text.replace("{", "{{").replace("}", "}}") if "{" in text else text


def _filled_text(text: str, values: Mapping[str, int | str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        return match["brace"][0] if match["brace"] else _value(match["inside"], values)

    return _PLACEHOLDER.sub(replaced, text)


def _value(inside: str, values: Mapping[str, int | str]) -> str:
    found = _INSIDE(inside)
    value = values.get(found["name"]) if found is not None else None
    if found is None or value is None:
        known = ", ".join(f"{{{name}}}" for name in values)
        raise PlaceholderError(f"{{{inside}}} is not a placeholder here; available: {known}")
    if isinstance(value, str):
        if found["steps"] or found["format"] or found["choices"]:
            raise PlaceholderError(f"{{{inside}}}: {found['name']} is not a number")
        return value
    for operator, written in _STEP.findall(found["steps"]):
        value = _step(value, operator, int(written), inside)
    if found["choices"]:
        return _choice(value, found["choices"][1:].split("|"), inside)
    return format(value, found["format"] or "d")


def _choice(number: int, choices: list[str], inside: str) -> str:
    if not 0 <= number < len(choices):
        raise PlaceholderError(f"{{{inside}}}: no text number {number}; there are {len(choices)}")
    return choices[number]


def _step(value: int, operator: str, number: int, inside: str) -> int:
    if operator in ("//", "%") and not number:
        raise PlaceholderError(f"{{{inside}}}: division by 0")
    match operator:
        case "//":
            return value // number
        case "%":
            return value % number
        case "*":
            return value * number
        case "+":
            return value + number
    return value - number
