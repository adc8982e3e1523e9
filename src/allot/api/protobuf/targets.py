"""Targets of encoding and decoding: plain JSON values, or structs of `allot.api`.

A reader or writer is generated for each pair of a message and a target, when it is first used.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from allot.api.decoding import Shape, fields_of
from allot.api.protobuf.schema import SCALARS, Field, Message, message


class Target(NamedTuple):
    """A message, and the struct it is decoded into; a dict without one."""

    message: str
    cls: type[Struct] | None = None

    @property
    def identifier(self) -> str:
        """As part of a function's name."""
        name = self.message
        if self.cls is not None:
            name = f"{name}__{self.cls.__module__}.{self.cls.__name__}"
        return name.replace(".", "_")


class Member(NamedTuple):
    """A field of a message, and its attribute in the target."""

    field: Field
    attribute: str
    """Of a struct, or the key in a dict; empty for a field whose own fields are inlined."""
    shape: Shape | None = None
    """Of the struct's field."""
    default: Any = None
    """The default of the struct's field."""

    @property
    def item_target(self) -> Target | None:
        """The target of the value, or of each item of the list or map; None for scalars."""
        if self.field.type in SCALARS:
            return None
        shape = self.shape
        if shape is not None and self.field.container:
            shape = shape.item
        return Target(self.field.type, shape.cls if shape is not None else None)


@cache
def members_of(target: Target) -> tuple[Member, ...]:
    """The fields that message and target have in common, by field number."""
    described = message(target.message)
    if target.cls is None:
        return tuple(Member(field, field.name) for field in described.fields)
    return tuple(_struct_members(described, target.cls))


def _struct_members(described: Message, cls: type[Struct]) -> list[Member]:
    known = fields_of(cls)
    defaults = _defaults(cls)
    members = []
    for field in described.fields:
        if not field.name:
            members.append(Member(field, ""))
        elif field.name in known:
            attribute, shape = known[field.name]
            members.append(Member(field, attribute, shape, defaults[attribute]))
    return members


def _defaults(cls: type[Struct]) -> dict[str, Any]:
    """The default of each field."""
    zero = cls()
    return {name: getattr(zero, name) for name in cls.__struct_fields__}


def inlined(target: Target, member: Member) -> Target:
    """The message of an inlined field, for the same struct or dict."""
    return Target(member.field.type, target.cls)
