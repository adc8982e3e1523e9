"""ConfigMaps and Secrets: their keys, how large they may be, and when they can no longer change."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from allot.api.json_syntax import syntax_problem
from allot.api.raw import RawObject
from allot.validation.core_names import config_key_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
    too_long,
)
from allot.validation.formats import byte_length
from allot.validation.metadata import IMMUTABLE

MAX_SIZE: Final = 1024 * 1024
IMMUTABLE_BY_CHOICE: Final = "field is immutable when `immutable` is set"

DATA: Final = FieldPath("data")
BINARY_DATA: Final = FieldPath("binaryData")


def validate_config_map(config_map: RawObject) -> Iterator[FieldError]:
    texts = _mapping(config_map, "data")
    binaries = _mapping(config_map, "binaryData")
    yield from _validate_keys(texts, DATA)
    size = sum([byte_length(str(text)) for text in texts.values()])
    if binaries:
        for key in texts.keys() & binaries.keys():
            yield invalid(DATA @ key, key, "duplicate of key present in binaryData")
        yield from _validate_keys(binaries, BINARY_DATA)
        size += sum([_decoded_size(value) for value in binaries.values()])
    if size > MAX_SIZE:
        yield too_long(FieldPath("[]"), MAX_SIZE)


def validate_config_map_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    yield from _validate_immutability(new, old, ("data", "binaryData"))


_SERVICE_ACCOUNT: Final = "kubernetes.io/service-account.name"
_REQUIRED_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_secret(secret: RawObject) -> Iterator[FieldError]:
    data = _mapping(secret, "data")
    yield from _validate_keys(data, DATA)
    if sum(_decoded_size(value) for value in data.values()) > MAX_SIZE:
        yield too_long(DATA, MAX_SIZE)
    type_ = secret.get("type", default="")
    for key in _REQUIRED_KEYS.get(type_, ()):
        if key not in data:
            yield required(DATA @ key)
        elif key.startswith(".docker"):
            problem = syntax_problem(_decoded(data[key]))
            if problem:
                yield invalid(DATA @ key, "<secret contents redacted>", problem)
    if type_ == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required(DATA @ "username")
        yield required(DATA @ "password")
    if type_ == "kubernetes.io/service-account-token" and not secret.metadata.annotations.get(
        _SERVICE_ACCOUNT
    ):
        yield required(FieldPath("metadata") / "annotations" @ _SERVICE_ACCOUNT)


def validate_secret_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    if new.get("type") != old.get("type"):
        yield invalid(FieldPath("type"), new.get("type"), IMMUTABLE)
    yield from _validate_immutability(new, old, ("data",))


def _validate_immutability(
    new: RawObject, old: RawObject, fields: Iterable[str]
) -> Iterator[FieldError]:
    """An immutable object stays immutable, including the flag."""
    if not old.get("immutable", default=False):
        return
    if not new.get("immutable", default=False):
        yield forbidden(FieldPath("immutable"), IMMUTABLE_BY_CHOICE)
    for field in fields:
        if _mapping(new, field) != _mapping(old, field):
            yield forbidden(FieldPath(field), IMMUTABLE_BY_CHOICE)


def _validate_keys(data: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    for key in data:
        for problem in config_key_problems(key):
            yield invalid(path @ key, key, problem)


def _mapping(obj: RawObject, field: str) -> Mapping[str, Any]:
    value = obj.get(field, default={})
    return value if isinstance(value, dict) else {}


def _decoded(value: object) -> bytes:
    try:
        return b64decode(str(value))
    except (binascii.Error, ValueError):
        return str(value).encode()


def _decoded_size(value: object) -> int:
    return len(_decoded(value))
