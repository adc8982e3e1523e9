"""The names of DRA: drivers, pools, attributes. Each checked by both families of rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from allot.validation.accepted import Accepted
from allot.validation.fields import FieldError, FieldPath, invalid, required, too_long
from allot.validation.formats import (
    C_IDENTIFIER_RULE,
    byte_length,
    caseless_subdomain_problems,
    is_c_identifier,
    label_key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
)

DRIVER_NAME_LENGTH: Final = 63
POOL_NAME_LENGTH: Final = 253
IDENTIFIER_LENGTH: Final = 32
MAX_QUALIFIED_NAME: Final = DRIVER_NAME_LENGTH + 1 + IDENTIFIER_LENGTH
NOT_FULLY_QUALIFIED: Final = (
    "a fully qualified name must be a domain and a name separated by a slash"
)


def validate_label(text: str, path: FieldPath, *, declared: bool = False) -> Iterator[FieldError]:
    """A DNS label."""
    for problem in label_problems(text, "bytes" if declared else "characters"):
        yield invalid(path, text, problem, declared=declared)


def validate_subdomain(
    text: str, path: FieldPath, *, declared: bool = False
) -> Iterator[FieldError]:
    """A DNS subdomain."""
    for problem in subdomain_problems(text, "bytes" if declared else "characters"):
        yield invalid(path, text, problem, declared=declared)


def validate_label_key(
    text: str, path: FieldPath, *, declared: bool = False
) -> Iterator[FieldError]:
    for problem in label_key_problems(text):
        yield invalid(path, text, problem, declared=declared)


def validate_label_value(text: str, path: FieldPath) -> Iterator[FieldError]:
    for problem in label_value_problems(text):
        yield invalid(path, text, problem)


def validate_driver_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """The hand-written rule. Upper case is accepted."""
    if not name:
        yield required(path)
        return
    if byte_length(name) > DRIVER_NAME_LENGTH:
        yield too_long(path, DRIVER_NAME_LENGTH)
    for problem in subdomain_problems(name.lower() if name.isascii() else name):
        yield invalid(path, name, problem)


def validate_declared_driver_name(
    name: str, path: FieldPath, *, max_length: int | None = DRIVER_NAME_LENGTH
) -> Iterator[FieldError]:
    """The declared rule: the same with other messages."""
    if not name:
        yield required(path, declared=True)
        return
    for problem in caseless_subdomain_problems(name):
        yield invalid(path, name, problem, declared=True)
    if max_length is not None and len(name) > max_length:
        yield too_long(path, max_length, "characters", declared=True)


def _are_plain_names(driver: str, pool: str) -> bool:
    path = FieldPath("")
    return bool(pool) and not any(
        (*validate_declared_driver_name(driver, path), *validate_declared_pool_name(pool, path))
    )


PLAIN_NAMES: Final = Accepted[tuple[str, str]](
    _are_plain_names, DRIVER_NAME_LENGTH + POOL_NAME_LENGTH
)
"""Drivers and pools that the declared rules accept: many claims are about few."""


def validate_pool_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """The hand-written rule."""
    if not name:
        yield required(path)
        return
    if byte_length(name) > POOL_NAME_LENGTH:
        yield too_long(path, POOL_NAME_LENGTH)
    for part in name.split("/"):
        yield from validate_subdomain(part, path)


def validate_declared_pool_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """The declared rule. An empty name has one empty segment."""
    if byte_length(name) > POOL_NAME_LENGTH:
        yield too_long(path, POOL_NAME_LENGTH, declared=True)
    for index, segment in enumerate(name.split("/")):
        if not segment:
            yield invalid(path, name, f"segment {index}: must not be empty", declared=True)
            continue
        for problem in subdomain_problems(segment, "bytes"):
            yield invalid(path, segment, f"segment {index}: {problem}", declared=True)


def _validate_identifier(
    name: str, path: FieldPath, *, declared: bool = False
) -> Iterator[FieldError]:
    if byte_length(name) > IDENTIFIER_LENGTH:
        yield too_long(path, IDENTIFIER_LENGTH, declared=declared)
    if not is_c_identifier(name):
        yield invalid(path, name, C_IDENTIFIER_RULE, declared=declared)


def validate_qualified_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """A key of attributes or capacities. With two slashes or more it is not checked, as in Kubernetes."""
    match name.split("/"):
        case [identifier]:
            yield from _validate_identifier(identifier, path)
        case [domain, identifier]:
            if domain:
                yield from validate_driver_name(domain, path)
            else:
                yield invalid(path, "", "the domain must not be empty")
            if identifier:
                yield from _validate_identifier(identifier, path)
            else:
                yield invalid(path, "", "the name must not be empty")


@lru_cache(maxsize=4096)
def is_qualified_name(name: str) -> bool:
    """The cached answer: the same few names occur on every device. For short names only."""
    return not any(validate_qualified_name(name, FieldPath("")))


def validate_fully_qualified_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """The declared rule for attributes that constraints refer to. Here upper case is not accepted."""
    match name.split("/"):
        case [identifier]:
            yield from _validate_identifier(identifier, path, declared=True)
            yield invalid(path, name, NOT_FULLY_QUALIFIED, declared=True)
        case [domain, identifier]:
            yield from _validate_domain(domain, path)
            if identifier:
                yield from _validate_identifier(identifier, path, declared=True)
            else:
                yield invalid(path, "", "name must not be empty", declared=True)


def validate_stored_fully_qualified_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """The hand-written rule, which applies to unchanged values."""
    yield from validate_qualified_name(name, path)
    if "/" not in name:
        yield invalid(path, name, NOT_FULLY_QUALIFIED)


def _validate_domain(domain: str, path: FieldPath) -> Iterator[FieldError]:
    if not domain:
        yield invalid(path, "", "prefix must not be empty", declared=True)
        return
    if byte_length(domain) > DRIVER_NAME_LENGTH:
        yield too_long(path, DRIVER_NAME_LENGTH, declared=True)
    for problem in subdomain_problems(domain, "bytes"):
        yield invalid(path, domain, f"prefix: {problem}", declared=True)
