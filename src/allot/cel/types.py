"""Types of the expression language, inferred by the checker and returned by `type()`.

A type has two names: `str(type)` in return-type errors and results (`google.protobuf.Any`),
`type.short()` in checker messages (`any`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class TypeKind(Enum):
    """The kind of a type, which determines the operations on its values."""

    __hash__ = object.__hash__  # there is one of each, and Enum's own is slow

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    PARAMETER = "parameter"
    UINT = "uint"
    WRAPPER = "wrapper"


class Type(NamedTuple):
    """One type. Equal when kind, name and parameters are."""

    kind: TypeKind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind is TypeKind.WRAPPER:
            return f"wrapper({self.parameters[0]})"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def short(self) -> str:
        """The name in checker messages."""
        if self.kind in _SHORT_NAMES:
            return _SHORT_NAMES[self.kind]
        if not self.parameters:
            return self.name
        name = "wrapper" if self.kind is TypeKind.WRAPPER else self.name
        return f"{name}({', '.join(parameter.short() for parameter in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether checking is left to the evaluation."""
        kind = self.kind
        return kind is TypeKind.DYN or kind is TypeKind.ANY or kind is TypeKind.ERROR


_SHORT_NAMES: Final = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.TIMESTAMP: "timestamp",
    TypeKind.NULL: "null",
    TypeKind.ERROR: "!error!",
}

ANY: Final = Type(TypeKind.ANY, "google.protobuf.Any")
BOOL: Final = Type(TypeKind.BOOL, "bool")
BYTES: Final = Type(TypeKind.BYTES, "bytes")
DOUBLE: Final = Type(TypeKind.DOUBLE, "double")
DURATION: Final = Type(TypeKind.DURATION, "google.protobuf.Duration")
DYN: Final = Type(TypeKind.DYN, "dyn")
ERROR: Final = Type(TypeKind.ERROR, "*error*")
INT: Final = Type(TypeKind.INT, "int")
NULL: Final = Type(TypeKind.NULL, "null_type")
STRING: Final = Type(TypeKind.STRING, "string")
TIMESTAMP: Final = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
UINT: Final = Type(TypeKind.UINT, "uint")

# Types of values, as `type()` gives them: without parameters.
LIST: Final = Type(TypeKind.LIST, "list")
MAP: Final = Type(TypeKind.MAP, "map")
TYPE: Final = Type(TypeKind.TYPE, "type")
OPTIONAL: Final = Type(TypeKind.OPAQUE, "optional_type")

QUANTITY: Final = Type(TypeKind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(TypeKind.STRUCT, "kubernetes.Semver")
URL: Final = Type(TypeKind.STRUCT, "kubernetes.URL")
FORMAT: Final = Type(TypeKind.STRUCT, "kubernetes.NamedFormat")
IP: Final = Type(TypeKind.OPAQUE, "net.IP")
CIDR: Final = Type(TypeKind.OPAQUE, "net.CIDR")
DEVICE: Final = Type(TypeKind.STRUCT, "kubernetes.DRADevice")
AUTHORIZER: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.Authorizer")
PATH_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.ResourceCheck")
DECISION: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.Decision")


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def type_of_type(inner: Type) -> Type:
    return Type(TypeKind.TYPE, "type", (inner,))


def wrapper_of(inner: Type) -> Type:
    return Type(TypeKind.WRAPPER, "wrapper", (inner,))


def parameter(name: str) -> Type:
    """A type variable, to be bound while a call is resolved."""
    return Type(TypeKind.PARAMETER, name)


def is_optional(type_: Type) -> bool:
    return type_.kind is TypeKind.OPAQUE and type_.name == "optional_type"


def unwrap_optional(type_: Type) -> Type:
    """What the optional may hold; the type itself if it is no optional."""
    return type_.parameters[0] if is_optional(type_) and type_.parameters else type_
