"""YAML as Kubernetes writes it: block style, fields in order, quotes only where they are needed, no folded lines.

A string is plain if every YAML parser reads it as a string, in block style if it has several lines, in double quotes
if it would be read as another type or has unprintable characters, and in single quotes otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MAX_SIMPLE_KEY: Final = 120
"""Longer keys are marked with a question mark: parsers look for the colon only so far."""

_WORDS: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil", "none", "~", "="}
)
_is_plain: Final = re.compile(r"""[\w/][\w ./@%+,()*=&;~^$'"|{}\[\]<>!?\\:#-]*""").fullmatch
_is_like_a_number: Final = re.compile(r"[-+.0-9][-+.0-9_:eExXoOa-fA-FTZtz]*").fullmatch
_needs_escape: Final = re.compile(
    '[^ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\\\]'
)
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def to_yaml(value: Any) -> bytes:
    """A JSON value as a YAML document."""
    parts: list[str] = []
    if isinstance(value, dict | list) and value:
        _write_block(value, "", "", parts)
    else:
        parts += (_scalar(value, "  "), "\n")
    return "".join(parts).encode()


def list_item(value: Any) -> bytes:
    """A JSON value as an item of a list that is a field of the document."""
    parts: list[str] = []
    _write_block([value], "", "", parts)
    return "".join(parts).encode()


def _write_block(value: Any, lead: str, pad: str, parts: list[str]) -> None:
    """A container with something in it. `lead` is what its first line starts with, `pad` all others."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list) and item:
                _write_block(item, f"{lead}- ", f"{pad}  ", parts)
            else:
                parts += (lead, "- ", _scalar(item, f"{pad}  "), "\n")
            lead = pad
        return
    _write_fields(value, lead, pad, parts)


def _write_fields(value: Mapping[str, Any], lead: str, pad: str, parts: list[str]) -> None:
    for name in sorted(value):
        inner = value[name]
        key = _quoted(name) if "\n" in name else _text(name, "")
        is_long = len(key) > MAX_SIMPLE_KEY
        parts += (lead, f"? {key}\n{pad}:") if is_long else (lead, key, ":")
        lead = pad
        if isinstance(inner, dict | list) and inner:
            parts.append("\n")
            # Lists stand below their field, as Kubernetes writes them.
            deeper = pad if isinstance(inner, list) and not is_long else f"{pad}  "
            _write_block(inner, deeper, deeper, parts)
        else:
            parts += (" ", _scalar(inner, f"{pad}  "), "\n")


def _scalar(value: Any, pad: str) -> str:
    match value:
        case str():
            return _text(value, pad)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            number = repr(value)
            # Without a point, some parsers read it as a string.
            return number.replace("e", ".0e") if "e" in number and "." not in number else number
        case dict():
            return "{}"
        case list():
            return "[]"
    return str(value)


def _text(text: str, pad: str) -> str:
    if _is_plain(text) and text.isprintable():
        is_text = text.lower() not in _WORDS and not _is_like_a_number(text)
        if not is_text:
            return _quoted(text)
        if text[-1] not in " :" and ": " not in text and " #" not in text:
            return text
    if "\n" in text:
        return _block(text, pad) if _fits_a_block(text) else _quoted(text)
    if not text or not text.isprintable() or _is_like_a_number(text) or _needs_quotes(text):
        return _quoted(text)
    return "'" + text.replace("'", "''") + "'"


def _needs_quotes(text: str) -> bool:
    return text.lower() in _WORDS or _needs_escape.sub("", text.replace('"', "")) != text.replace(
        '"', ""
    )


def _fits_a_block(text: str) -> bool:
    return text[0] not in " \n\t" and text.replace("\n", "").isprintable()


def _block(text: str, pad: str) -> str:
    ending = "|+" if text.endswith("\n\n") else "|" if text.endswith("\n") else "|-"
    lines = text.removesuffix("\n").split("\n")
    return "\n".join([ending, *(pad + line if line else "" for line in lines)])


def _quoted(text: str) -> str:
    return f'"{_needs_escape.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
