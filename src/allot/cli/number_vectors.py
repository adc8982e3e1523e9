"""Vectors about quantities and semantic versions.

Texts of both come in lines that look alike; `kind_of_texts` says what a file is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from allot.api.quantity import (
    MAX_INT64,
    MIN_INT64,
    Quantity,
    QuantityError,
    quantity_from_json,
)
from allot.api.semver import Semver, SemverError, is_version_attribute
from allot.cli.vector_lines import Answer, Vector, decoder
from allot.validation.device import MAX_TEXT_ATTRIBUTE

_looks_like_version: Final = re.compile(r"v?\d+\.\d+\.\d").match


def kind_of_line(vector: Vector, before: str) -> str:
    """The subject of one line; what those before were about, if it does not show."""
    if vector.op not in ("parse", "cmp"):
        return "quantity"
    if any(map(_looks_like_version, (vector.s, vector.a, vector.b))):
        return "semver"
    return before


def kind_of_texts(lines: Iterable[bytes]) -> str | None:
    """The subject of the `parse` and `cmp` lines of a file; None without such lines."""
    texts: list[str] = []
    for line in lines:
        try:
            vector = decoder.decode(line)
        except msgspec.DecodeError:
            continue
        if vector.op in ("parse", "cmp"):
            texts += filter(None, (vector.s, vector.a, vector.b))
        elif vector.op:
            return "quantity"
    if not texts:
        return None
    versions = sum(_looks_like_version(text) is not None for text in texts)
    return "semver" if versions > len(texts) / 2 else "quantity"


def answer_quantity(vector: Vector) -> Answer:
    """A question about quantities."""
    try:
        if vector.op == "parse":
            return _describe(Quantity.parse(vector.s))
        if vector.op == "json":
            return _describe(_quantity_from_raw(bytes(vector.raw)))
        return _calculate(vector, Quantity.parse(vector.a))
    except QuantityError as error:
        return {"error": str(error)}


def _quantity_from_raw(raw: bytes) -> Quantity:
    """As Kubernetes reads the bytes of JSON: a number as written, a string with its escapes."""
    if raw == b"null":
        return quantity_from_json(None)
    text = raw.decode()
    return quantity_from_json(text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text)


def _calculate(vector: Vector, a: Quantity) -> Answer:
    match vector.op:
        case "cmp":
            b = Quantity.parse(vector.b)
            return {"result": (a > b) - (a < b), "equal": a == b}
        case "add" | "sub":
            b = Quantity.parse(vector.b)
            result = a + b if vector.op == "add" else a - b
            return {"canonical": str(result), "format": result.format}
        case "mul":
            fast = a.multiplies_in_int64(vector.n)
            return {"canonical": str(a * vector.n), "fast": fast}
        case "neg":
            return {"canonical": str(-a)}
        case "roundUp":
            rounded = a.round_up(vector.scale)
            return {"canonical": str(rounded), "exact": rounded == a}
    return {"error": f"unknown op {vector.op!r}"}


def _describe(quantity: Quantity) -> Answer:
    answer: Answer = {"canonical": str(quantity), "format": quantity.format, "sign": quantity.sign}
    answer["dec"] = quantity.decimal_text()
    if quantity.canonical() != str(quantity):
        answer["fresh"] = quantity.canonical()
    if (exact := quantity.as_int64()) is not None:
        answer["asInt64"] = str(exact)
    for name, scale in (("value", 0), ("milliValue", -3)):
        true_value = quantity.round_up(scale).nanos // 10 ** (9 + scale)
        if MIN_INT64 <= true_value <= MAX_INT64:
            answer[name] = str(quantity.scaled_value(scale))
    return answer


def answer_version(vector: Vector) -> Answer:
    """A question about a semantic version."""
    if vector.op == "cmp":
        a, b = Semver.parse(vector.a), Semver.parse(vector.b)
        return {"result": (a > b) - (a < b)}
    fits = len(vector.s.encode()) <= MAX_TEXT_ATTRIBUTE
    answer: Answer = {"validAttribute": fits and is_version_attribute(vector.s)}
    try:
        version = Semver.parse(vector.s)
    except SemverError as error:
        return answer | {"parseError": str(error)}
    answer |= {"major": version.major, "minor": version.minor, "patch": version.patch}
    answer["string"] = str(version)
    if version.prerelease:
        answer["pre"] = list(version.prerelease)
    if version.build:
        answer["build"] = list(version.build)
    return answer
