"""The basis of all API types: the base struct, number ranges, opaque JSON, wire names.

Every field has its zero value as default, so that an incomplete object still decodes and validation
can report all that is missing. A field that Go clients always expect on the wire, even when it is
empty, gets its default from a factory: `omit_defaults` then leaves it in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple, TypeVar

from msgspec import Meta, Raw, Struct, field
from msgspec.structs import replace

__all__ = [
    "ABSENT",
    "NULL",
    "ApiObject",
    "GoName",
    "Int32",
    "Int64",
    "Opaque",
    "Time",
    "always",
    "is_set",
    "replace",
    "whole_seconds",
    "wire_names",
]

T = TypeVar("T")


class ApiObject(Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A part of an API object: frozen, because listers share them; a change is a `replace`.

    Frozen objects form no cycles, so the garbage collector does not track them.
    """


class GoName(NamedTuple):
    """The name of this type in Kubernetes' error messages, where it differs from ours."""

    name: str


def always(factory: Callable[[], T]) -> T:
    """A default that is written to the wire even when nothing was set."""
    value: T = field(default_factory=factory)
    return value


Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1), GoName("int64")]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1), GoName("int32")]
Time = Annotated[datetime, Meta(tz=True), GoName("v1.Time")]

Opaque = Raw
"""JSON that is not interpreted; its bytes are kept as received."""

ABSENT: Final = Raw()
NULL: Final = Raw(b"null")


def is_set(opaque: Opaque) -> bool:
    """Whether there is a value: neither missing nor null."""
    return bytes(opaque) not in (b"", b"null")


def whole_seconds(time: datetime | None) -> datetime | None:
    """API times are UTC in whole seconds; fractions are dropped."""
    if time is None or (time.tzinfo is UTC and not time.microsecond):
        return time
    try:
        return time.astimezone(UTC).replace(microsecond=0)
    except OverflowError:  # an hour before the year 1, or after 9999, in UTC
        return time.replace(microsecond=0)


def wire_names(cls: type[Struct]) -> dict[str, str]:
    """Our field name by name on the wire."""
    return dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
