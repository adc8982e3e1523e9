"""A field and a type, as patches, strictness and OpenAPI need to know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersionKind

SCALARS: Final = frozenset(
    {
        "string", "integer", "number", "boolean", "bytes", "any",
        "quantity", "time", "microtime", "int-or-string", "strings", "json", "schema-or",
    }
)  # fmt: skip
"""The field types that are not the name of a `Type`.

`any` is a free-form JSON object, `json` any JSON, `schema-or` a schema or something simpler, `strings` a list in a map.
"""
FREE_FORM: Final = frozenset({"any", "json", "schema-or"})
"""What is in fields of these types is not looked into."""
JSON_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
"""The type that has fields of its own type."""


class Field(NamedTuple):
    """One field of a type."""

    type: str
    """One of `SCALARS`, or the name of a `Type`, like `io.k8s.api.core.v1.PodSpec`."""
    container: str = ""
    """Empty for a single value, `list`, or `map` (with string keys)."""
    format: str = ""
    """As in OpenAPI: int32, int64. For `any`, whether it is a `RawExtension` or `FieldsV1`."""
    required: bool = False
    default: Any = None
    merge_key: str = ""
    """Strategic merge: the field that tells items of the list apart."""
    patch_strategy: str = ""
    """`merge`, `replace`, `retainKeys`, `merge,retainKeys`; empty means replace for lists."""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    enum: tuple[str, ...] = ()
    """The values there are, as OpenAPI lists them; of the items in a list or map."""

    @property
    def is_type(self) -> bool:
        """Whether `type` is the name of another type."""
        return self.type not in SCALARS


class Type(NamedTuple):
    """A type of object with named fields."""

    name: str
    fields: Mapping[str, Field]
    kinds: tuple[GroupVersionKind, ...] = ()
    """The kinds it is the schema of. Those of meta/v1 are written in the core group, and are in every group."""
    map_type: str = ""
    unions: tuple[Mapping[str, Any], ...] = ()
    """What OpenAPI says about fields of which only one can be set."""

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.fields.items() if field.required)
