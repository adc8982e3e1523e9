"""A schema of a custom resource, compiled from JSON.

Compiling accepts everything that decodes as JSONSchemaProps; what a schema may say is checked in
`structure_rules`. A schema is immutable and shared by threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from allot.cel.library.regexes import Regex, RegexError, compiled

UNSET: Final = object()
"""The default of a schema without one; null is a default, too."""
SUPPORTED_FORMATS: Final = frozenset(
    {
        "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
        "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor",
        "byte", "password", "date", "duration", "datetime", "date-time",
        "k8s-short-name", "k8s-long-name",
        "int32", "int64", "float", "double",
    }
)  # fmt: skip
JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
METADATA: Final = "metadata"


class Schema:
    """One schema and all below it."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.source = source
        get = source.get
        self.type: str = get("type") or ""
        self.format: str = get("format") or ""
        self.nullable = bool(get("nullable"))
        self.preserves_unknown = bool(get("x-kubernetes-preserve-unknown-fields"))
        self.is_embedded = bool(get("x-kubernetes-embedded-resource"))
        self.is_int_or_string = bool(get("x-kubernetes-int-or-string"))
        self.list_type: str = get("x-kubernetes-list-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = get("x-kubernetes-map-type") or ""
        self.rules: tuple[Mapping[str, Any], ...] = tuple(get("x-kubernetes-validations") or ())
        self.default: Any = get("default", UNSET)
        self.properties: dict[str, Schema] = {
            name: Schema(below or {}) for name, below in (get("properties") or {}).items()
        }
        items = get("items")
        self.items = Schema(items) if isinstance(items, dict) else None
        additional = get("additionalProperties")
        self.additional = Schema(additional) if isinstance(additional, dict) else None
        self.allows_additional = additional is not False and additional is not None
        self.all_of = _several(get("allOf"))
        self.any_of = _several(get("anyOf"))
        self.one_of = _several(get("oneOf"))
        nested = get("not")
        self.not_ = Schema(nested) if isinstance(nested, dict) else None
        self.required: tuple[str, ...] = tuple(get("required") or ())
        self.enum: tuple[Any, ...] = tuple(get("enum") or ())
        self.minimum: float | None = get("minimum")
        self.maximum: float | None = get("maximum")
        self.is_exclusive_minimum = bool(get("exclusiveMinimum"))
        self.is_exclusive_maximum = bool(get("exclusiveMaximum"))
        self.multiple_of: float | None = get("multipleOf")
        self.min_length: int | None = get("minLength")
        self.max_length: int | None = get("maxLength")
        self.min_items: int | None = get("minItems")
        self.max_items: int | None = get("maxItems")
        self.min_properties: int | None = get("minProperties")
        self.max_properties: int | None = get("maxProperties")
        self.pattern: str = get("pattern") or ""
        self.has_constraints = bool(
            self.enum
            or self.all_of
            or self.any_of
            or self.one_of
            or self.not_ is not None
            or self.is_int_or_string
        )

    @cached_property
    def regex(self) -> Regex | None:
        """The pattern, which is linear in the length of a string; None if it is not set or invalid."""
        try:
            return compiled(self.pattern) if self.pattern else None
        except RegexError:
            return None

    @cached_property
    def scalars_of_enum(self) -> frozenset[tuple[bool, Any]]:
        """The scalars among the values that are allowed; true and 1 are different."""
        return frozenset(
            (isinstance(each, bool), each)
            for each in self.enum
            if not isinstance(each, dict | list)
        )

    @property
    def has_default(self) -> bool:
        return self.default is not UNSET

    @cached_property
    def default_size(self) -> int:
        """The bytes of the default as JSON."""
        return len(msgspec.json.encode(self.default))

    def below(self, name: str) -> Schema | None:
        """The schema of a field or of a value of a map; None if it is unknown."""
        return self.properties.get(name) or self.additional

    def children(self) -> Iterator[tuple[str, Schema]]:
        """The schemas of all fields, items and values, with the last part of their path in a document of the schema."""
        for name, child in self.properties.items():
            yield f"properties[{name}]", child
        if self.items is not None:
            yield "items", self.items
        if self.additional is not None:
            yield "additionalProperties", self.additional

    @cached_property
    def weight(self) -> int:
        """How much work a value may be, in parts of schemas; a large pattern counts as many."""
        nested = (*self.all_of, *self.any_of, *self.one_of)
        below = [child for _, child in self.children()] + list(nested)
        if self.not_ is not None:
            below.append(self.not_)
        own = 1 + (self.regex.size // 10 if self.regex is not None else 0)
        return own + sum(child.weight for child in below)

    def prepare(self) -> None:
        """Look for what there is below, of which others ask again and again."""
        _ = self.has_defaults_below, self.has_rules_below, self.has_list_types_below

    @cached_property
    def has_defaults_below(self) -> bool:
        """Whether this schema or one below has a default."""
        return self.has_default or any(child.has_defaults_below for _, child in self.children())

    @cached_property
    def has_rules_below(self) -> bool:
        return bool(self.rules) or any(child.has_rules_below for _, child in self.children())

    @cached_property
    def has_list_types_below(self) -> bool:
        return self.list_type in ("set", "map") or any(
            child.has_list_types_below for _, child in self.children()
        )

    @cached_property
    def has_embedded_below(self) -> bool:
        return self.is_embedded or any(child.has_embedded_below for _, child in self.children())


def _several(sources: Any) -> tuple[Schema, ...]:
    return tuple(Schema(source or {}) for source in sources or ())
