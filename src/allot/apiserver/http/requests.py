"""A request as handlers see it: query, headers, body, and the options that Kubernetes clients send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from allot.apiserver.api_errors import ApiError, bad_request, invalid
from allot.apiserver.auth.authentication import User
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    not_supported,
    required,
    too_long,
)
from allot.validation.fields import invalid as invalid_field

MAX_FIELD_MANAGER: Final = 128
MAX_SHORT_QUERY: Final = 200
"""Bytes of queries that are remembered."""
_is_number: Final = re.compile(r"[+-]?[0-9]{1,64}").fullmatch
FIELD_VALIDATIONS: Final = ("Ignore", "Warn", "Strict")


class ApiRequest(msgspec.Struct):
    """A request as handlers see it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    user: User
    body: bytes = b""
    """Empty until the request is authorized."""
    wants_object: bool = True
    """Whether the client reads the object that a write stores."""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def flag(self, name: str) -> bool:
        """A query parameter that is on or off: on unless it says otherwise, as Go reads it."""
        value = self.query.get(name)
        return value is not None and value.lower() not in ("false", "0")

    def number(self, name: str) -> int | None:
        text = self.query.get(name)
        if not text:
            return None
        if not _is_number(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax')
        if abs(int(text)) >= 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{text[:64]}": value out of range')
        return int(text)


def parse_query(raw: bytes) -> Mapping[str, str]:
    """Query parameters; of a repeated one the first non-empty value counts."""
    return _short_query(raw) if len(raw) <= MAX_SHORT_QUERY else _parsed_query(raw)


def _parsed_query(raw: bytes) -> Mapping[str, str]:
    query: dict[str, str] = {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except (UnicodeDecodeError, ValueError):
        raise bad_request("the query of the request cannot be read") from None
    for name, value in pairs:
        if not query.get(name):
            query[name] = value
    return MappingProxyType(query)


_short_query: Final = lru_cache(256)(_parsed_query)
"""Components send the same few queries again and again."""


class WriteOptions(NamedTuple):
    """The options of all writes."""

    dry_run: bool
    field_validation: str


_USUAL_OPTIONS: Final = WriteOptions(dry_run=False, field_validation="Warn")
_OPTIONS_KIND: Final = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}


def write_options(request: ApiRequest, verb: str) -> WriteOptions:
    """The options of a write; 422 for values there are not."""
    query = request.query
    if not query:
        return _USUAL_OPTIONS
    return _write_options(
        verb,
        query.get("dryRun", ""),
        query.get("fieldValidation", "") or "Warn",
        query.get("fieldManager", ""),
    )


@lru_cache(256)
def _write_options(verb: str, dry_run: str, validation: str, manager: str) -> WriteOptions:
    errors: list[FieldError] = []
    if dry_run not in ("", "All"):
        errors.append(not_supported(FieldPath("dryRun"), [dry_run], ["All"]))
    if validation not in FIELD_VALIDATIONS:
        errors.append(
            not_supported(FieldPath("fieldValidation"), validation, ["", *FIELD_VALIDATIONS])
        )
    if len(manager.encode()) > MAX_FIELD_MANAGER:
        errors.append(too_long(FieldPath("fieldManager"), MAX_FIELD_MANAGER))
    elif not manager.isprintable():
        errors.append(invalid_field(FieldPath("fieldManager"), manager, _unprintable(manager)))
    if errors:
        raise invalid("meta.k8s.io", _OPTIONS_KIND[verb], "", errors)
    return WriteOptions(dry_run == "All", validation)


def _unprintable(manager: str) -> str:
    index = next(index for index, character in enumerate(manager) if not character.isprintable())
    position = len(manager[:index].encode())
    return f"invalid character U+{ord(manager[index]):04X} (at position {position})"


def check_patch_options(request: ApiRequest, *, is_apply: bool) -> None:
    """422 for an apply without a manager, and for force elsewhere."""
    errors = []
    if is_apply and not request.query.get("fieldManager"):
        errors.append(required(FieldPath("fieldManager"), "is required for apply patch"))
    if not is_apply and "force" in request.query:
        errors.append(forbidden(FieldPath("force"), "may not be specified for non-apply patch"))
    if errors:
        raise invalid("meta.k8s.io", _OPTIONS_KIND["patch"], "", errors)


def options_error(kind: str, errors: list[FieldError]) -> ApiError:
    return invalid("meta.k8s.io", kind, "", errors)
