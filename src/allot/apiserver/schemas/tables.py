"""Types of the raw kinds, read from tables in text form: one file per package, one line per field.

    Deployment kind list
      metadata meta.v1.ObjectMeta default={}
      spec     DeploymentSpec default={}

    PodSpec
      containers   []Container! patch=merge:name list=map:name
      nodeSelector {}string map=atomic

`kind` says that the type is the schema of a kind (apiVersion and kind go without saying), `list` that
there is a list of it too. `!` means required. `patch` is the strategy and the merge key of strategic
merge patches, `list` the list type and its keys, `enum` the values there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.fields import Field, Type

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_API: Final = "io.k8s.api."
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions."
_GROUPS: Final = {
    "admissionregistration": "admissionregistration.k8s.io",
    "core": "", "meta": "", "apps": "apps", "batch": "batch", "autoscaling": "autoscaling", "policy": "policy",
    "networking": "networking.k8s.io", "certificates": "certificates.k8s.io", "flowcontrol": "flowcontrol.apiserver.k8s.io",
    "apiregistration": "apiregistration.k8s.io", "storagemigration": "storagemigration.k8s.io",
    "authentication": "authentication.k8s.io", "authorization": "authorization.k8s.io", "coordination": "coordination.k8s.io",
    "discovery": "discovery.k8s.io", "events": "events.k8s.io", "node": "node.k8s.io",
    "rbac": "rbac.authorization.k8s.io", "scheduling": "scheduling.k8s.io", "storage": "storage.k8s.io",
    "apiextensions": "apiextensions.k8s.io",
}  # fmt: skip
_SCALARS: Final = {
    "string": Field("string"),
    "boolean": Field("boolean"),
    "number": Field("number", format="double"),
    "int32": Field("integer", format="int32"),
    "int64": Field("integer", format="int64"),
    "bytes": Field("bytes", format="byte"),
    "quantity": Field("quantity"),
    "time": Field("time", format="date-time"),
    "microtime": Field("microtime", format="date-time"),
    "int-or-string": Field("int-or-string", format="int-or-string"),
    "strings": Field("strings"),
    "raw": Field("any", format="RawExtension"),
    "fields": Field("any", format="FieldsV1"),
    "json": Field("json", format="JSON"),
    "schema-or-array": Field("schema-or", format="JSONSchemaPropsOrArray"),
    "schema-or-bool": Field("schema-or", format="JSONSchemaPropsOrBool"),
    "schema-or-strings": Field("schema-or", format="JSONSchemaPropsOrStringArray"),
}
_TEXT: Final = _SCALARS["string"]
_CONTAINERS: Final = {"[]": "list", "{}": "map"}


def package_of(group: str, version: str) -> str:
    """The package with the types of a group: `io.k8s.api.rbac.v1`, `com.example.v1` for example.com."""
    if group == "apiextensions.k8s.io":
        return f"{_EXTENSIONS}{version}"
    if "." in group and not group.endswith(".k8s.io"):
        return f"{'.'.join(reversed(group.split('.')))}.{version}"
    return f"{_API}{group.partition('.')[0] or 'core'}.{version}"


@cache
def types_in(package: str) -> dict[str, Type]:
    """All types of a package by their names within it: those of its table, and those that were declared."""
    types = _read(package) if package in packages() else {}
    for group, version, kind, table in _declared.get(package, ()):
        if kind not in types:
            text = table or _FREE_FORM.format(kind=kind)
            types = {**types, **_parse(text, package, group, version)}
    return types


_declared: Final[dict[str, list[tuple[str, str, str, str]]]] = {}
_FREE_FORM: Final = (
    "{kind} kind list\n  metadata meta.v1.ObjectMeta default={{}}\n  spec raw\n  status raw\n"
)


def declare_kind(group: str, version: str, kind: str, table: str = "") -> None:
    """Add the types of a kind that may not be in a table file.

    `table` is in the form of a table file. Without it, `spec` and `status` are free-form.
    """
    _declared.setdefault(package_of(group, version), []).append((group, version, kind, table))
    types_in.cache_clear()


@cache
def packages() -> frozenset[str]:
    """The packages there are tables for."""
    return frozenset(map(_package, _tables()))


@cache
def _tables() -> frozenset[str]:
    found = (files(__package__) / "tables").iterdir()
    return frozenset(table.name.removesuffix(".txt") for table in found)


def _package(table: str) -> str:
    """The package of a table file."""
    group, _, version = table.partition(".")
    match group:
        case "meta":
            return META
        case "apiextensions":
            return f"{_EXTENSIONS}{version}"
    return f"{_API}{table}"


@cache
def _read(package: str) -> dict[str, Type]:
    short = next(name for name in _tables() if _package(name) == package)
    table = files(__package__) / "tables" / f"{short}.txt"
    group, _, version = short.partition(".")
    return _parse(table.read_text(encoding="utf-8"), package, _GROUPS[group], version)


def _parse(table: str, package: str, group: str, version: str) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for head, *lines in _blocks(table):
        name, *words = head.split()
        made = _type(f"{package}.{name}", words, lines)
        if "kind" in words:
            gvk = GroupVersionKind(group, version, name)
            types[name] = of_kind(made, gvk)
            if "list" in words:
                types[f"{name}List"] = list_of(made.name, gvk)
        else:
            types[name] = made
    return types


def of_kind(schema: Type, gvk: GroupVersionKind) -> Type:
    """The schema of a kind: with apiVersion and kind, which only watch events do without."""
    fields = schema.fields
    if gvk.kind != "WatchEvent":
        fields = dict(sorted({**fields, "apiVersion": _TEXT, "kind": _TEXT}.items()))
    return schema._replace(fields=fields, kinds=(gvk,))


def list_of(item: str, gvk: GroupVersionKind) -> Type:
    """The schema of lists of a kind."""
    fields = {
        "apiVersion": _TEXT,
        "items": Field(item, "list", required=True),
        "kind": _TEXT,
        "metadata": Field(f"{META}.ListMeta", default={}),
    }
    return Type(f"{item}List", fields, kinds=(gvk._replace(kind=f"{gvk.kind}List"),))


def _blocks(text: str) -> Iterator[list[str]]:
    for block in text.split("\n\n"):
        if lines := block.splitlines():
            yield lines


def _type(name: str, words: list[str], lines: list[str]) -> Type:
    package = name.rpartition(".")[0]
    facts = dict(word.split("=", 1) for word in words if "=" in word)
    unions = tuple(json.loads(facts.get("unions", "[]")))
    fields: dict[str, Field] = {}
    for line in lines:
        field_name, type_, *rest = line.split()
        fields[field_name] = _field(type_, rest, package)
    return Type(name, fields, map_type=facts.get("map", ""), unions=unions)


@cache
def _plain_field(type_: str, package: str) -> Field:
    required = type_.endswith("!")
    type_ = type_.removesuffix("!")
    container = _CONTAINERS.get(type_[:2], "")
    inner = type_[2:] if container else type_
    field = _SCALARS.get(inner) or Field(_full_name(inner, package))
    return field._replace(container=container, required=required)


def _full_name(name: str, package: str) -> str:
    if "." not in name:
        return f"{package}.{name}"
    return f"{META}.{name[8:]}" if name.startswith("meta.v1.") else f"{_API}{name}"


def _field(type_: str, words: list[str], package: str) -> Field:
    field = _plain_field(type_, package)
    if not words:
        return field
    facts: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        match name:
            case "default":
                facts["default"] = json.loads(value)
            case "enum":
                facts["enum"] = tuple(value.split(","))
            case "patch":
                facts["patch_strategy"], _, facts["merge_key"] = value.partition(":")
            case "list":
                facts["list_type"], _, keys = value.partition(":")
                facts["list_map_keys"] = tuple(keys.split(",")) if keys else ()
            case "map":
                facts["map_type"] = value
            case _:
                raise ValueError(f"{word} in a table of {package}")
    return field._replace(**facts)
