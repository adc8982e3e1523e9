"""Unknown and duplicate fields of a document, which decoding ignores.

Most documents have none, which msgspec can tell in a fraction of the time it takes to locate them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from allot.api.decoding import Shape, fields_of


class StrictIssue(NamedTuple):
    """A field that would be ignored. Prints as Kubernetes words it."""

    problem: str
    path: str
    known: tuple[str, ...] = ()  # the fields of the object it is in

    def __str__(self) -> str:
        return f'{self.problem} field "{self.path}"'


class Pairs(list[tuple[str, Any]]):
    """A JSON object with all its fields, including duplicates."""


class _InterruptibleDecoder(json.JSONDecoder):
    """Decodes value by value in Python, so that other threads can run meanwhile."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=Pairs, parse_int=str, parse_float=str)
        self.parse_object = json.decoder.JSONObject  # type: ignore[attr-defined]
        self.parse_array = json.decoder.JSONArray  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def decode_pairs(body: bytes) -> Any:
    """The document in valid JSON with its objects as `Pairs`. Numbers stay strings."""
    if len(body) > _LARGE:
        return _InterruptibleDecoder().decode(body.decode())
    return json.loads(body, object_pairs_hook=Pairs, parse_int=str, parse_float=str)


def strict_issues(body: bytes, cls: type[Struct], top_level: bool = True) -> list[StrictIssue]:
    """Unknown and duplicate fields, in the order of the document. `body` must be valid JSON."""
    if top_level and _has_no_issues(body, cls):
        return []
    document = decode_pairs(body)
    known = frozenset({"kind", "apiVersion"}) if top_level else frozenset()
    found: list[StrictIssue] = []
    _look_for_issues(document, Shape("struct", "", cls=cls), "", known, found)
    return found


_LARGE: Final = 64 * 1024
_NOTHING: frozenset[str] = frozenset()


def _look_for_issues(
    value: list[Any], shape: Shape, path: str, known: frozenset[str], found: list[StrictIssue]
) -> None:
    """Adds to `found`. Objects are lists of pairs here."""
    if type(value) is not Pairs:
        if shape.item is not None and shape.kind == "list":
            for index, item in enumerate(value):
                if isinstance(item, list):
                    _look_for_issues(item, shape.item, f"{path}[{index}]", _NOTHING, found)
        return
    if shape.cls is None and shape.item is None:
        return
    fields = fields_of(shape.cls) if shape.cls else {}
    all_known = shape.cls is None or _is_open(shape.cls)
    names = tuple(fields)
    count: dict[str, int] = {}
    for key, item in value:
        count[key] = count.get(key, 0) + 1
        field = fields.get(key)
        if field is None and not all_known and key not in known:
            if count[key] == 1:
                found.append(StrictIssue("unknown", _joined(path, key), names))
            continue
        if count[key] == 2:
            found.append(StrictIssue("duplicate", _joined(path, key)))
        inner = shape.item or (field[1] if field else None)
        if inner is not None and isinstance(item, list):
            _look_for_issues(item, inner, _joined(path, key), _NOTHING, found)


@cache
def _is_open(cls: type[Struct]) -> bool:
    return bool(getattr(cls, "__open__", False))


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# --- the fast path ---

_FIELD_END: Final = b'":'
_SPACE: Final = b" \t\r\n"


def _has_no_issues(body: bytes, cls: type[Struct]) -> bool:
    """Whether there is certainly nothing to find."""
    try:
        return has_no_duplicates(body, _strict_decoder(cls).decode(body))
    except (msgspec.DecodeError, RecursionError):
        return False


def has_no_duplicates(body: bytes, document: Any) -> bool:
    """Whether the JSON that was read as `document` certainly has each field once."""
    if b"\\u" in body:
        return False  # an escaped quote would count only when it is written again
    # Written again, a document has each field once.
    written = msgspec.json.encode(document)
    if written == body:
        return True
    # Fields are counted, including `":` inside strings.
    compact = body.translate(None, _SPACE)
    return compact.count(_FIELD_END) == written.translate(None, _SPACE).count(_FIELD_END)


def prepare(cls: type[Struct]) -> None:
    """Make the decoder of a class, which otherwise the first check does: that of a claim takes 2 ms."""
    _strict_decoder(cls)


@cache
def _strict_decoder(cls: type[Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict_twin(cls, top_level=True))


@cache
def _strict_twin(cls: type[Struct], *, top_level: bool = False) -> Any:
    """A type with the same fields that refuses others and accepts any scalars. It is written as it was read."""
    fields: list[tuple[str, Any, Any]] = [
        (f"field{number}", _twin_of(shape), msgspec.UNSET)
        for number, (_, shape) in enumerate(fields_of(cls).values())
    ]
    names = {f"field{number}": wire for number, wire in enumerate(fields_of(cls))}
    if top_level:
        fields += [("kind_", Any, msgspec.UNSET), ("api_version_", Any, msgspec.UNSET)]
        names |= {"kind_": "kind", "api_version_": "apiVersion"}
    return msgspec.defstruct(
        f"Strict{cls.__name__}",
        fields,
        rename=names,
        forbid_unknown_fields=not _is_open(cls),
        gc=False,
    )


def _twin_of(shape: Shape) -> Any:
    if shape.cls is not None:
        return _strict_twin(shape.cls) | None | msgspec.UnsetType
    if shape.item is not None and (shape.item.cls or shape.item.item):
        inner: Any = _twin_of(shape.item)
        container: Any = list[inner] if shape.kind == "list" else dict[str, inner]
        return container | None | msgspec.UnsetType
    return Any
