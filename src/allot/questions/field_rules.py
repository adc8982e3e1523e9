"""Rules for the fields of a clone: which values are kept, and how names change with `--anonymize`.

Rules keep numbers, booleans, strings, and lists and maps of them; anything nested deeper needs a table of fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Kept:
    """The value as it is."""


@dataclass(frozen=True)
class Name:
    """The name of an object; `--anonymize` replaces it by PREFIX-NUMBER."""

    prefix: str


@dataclass(frozen=True)
class Uid:
    """The uid of an object; `--anonymize` replaces it."""


@dataclass(frozen=True)
class Values:
    """Strings that can be names: values of labels, selectors and attributes; `--anonymize` replaces those that are."""


@dataclass(frozen=True)
class CelExpression:
    """A CEL expression; `--anonymize` replaces string literals that are names."""


@dataclass(frozen=True)
class Hashed:
    """Parameters of a driver: replaced by a hash, the same for the same parameters."""


@dataclass(frozen=True)
class Constant:
    """A field that the API requires and scheduling does not read: replaced by this value."""

    value: str


@dataclass(frozen=True)
class Only:
    """The entries of a list that are among these."""

    values: frozenset[str]


@dataclass(frozen=True)
class EveryKey:
    """A map with arbitrary keys, and the same fields in each value."""

    fields: Any


Rule = Kept | Name | Uid | Values | CelExpression | Hashed | Constant | Only | EveryKey
Fields = Mapping[str, Any]
"""The name of a field, and a rule, a table, or a list of one table."""

KEPT: Final = Kept()
VALUES: Final = Values()
UID: Final = Uid()
NODE: Final = Name("node")
CLAIM: Final = Name("claim")
POD: Final = Name("pod")
POOL: Final = Name("pool")
NAMESPACE: Final = Name("namespace")
WORKLOAD: Final = Name("workload")
TEMPLATE: Final = Name("template")
VOLUME: Final = Name("volume")
OBJECT: Final = Name("object")
