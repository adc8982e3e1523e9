"""Protobuf schemas: the fields of messages with their numbers, types and JSON names.

The tables have one line per field:

    Volume
      1 name string
      2 - VolumeSource

    DeploymentSpec
      1 replicas *int32?
      5 minReadySeconds int32?

Types are written as in Go: `*` is a pointer, `[]` a list, `{}` a map with string keys. `?` means that
JSON omits the field when it is zero. The fields of a field without a name (`-`) are inlined in JSON. Pointers
are on the wire if they are set, everything else always, also zero values.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from allot.api.identities import GroupVersionKind

SCALARS: Final = frozenset(
    {
        "string", "bytes", "bool", "int32", "int64", "double", "time", "microtime", "quantity", "intstr", "raw",
        "fields", "strings", "schema-or-bool", "schema-or-schemas", "schema-or-strings",
    }
)  # fmt: skip
"""Types that are not messages of a table; some of them are messages with their own JSON form."""

META: Final = "meta.v1"
META_GROUP: Final = "meta.k8s.io"
_EVERYWHERE: Final = frozenset(
    {"Status", "DeleteOptions", "WatchEvent", "CreateOptions", "UpdateOptions", "PatchOptions", "GetOptions"}
    | {"ListOptions", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
)  # fmt: skip
"""Kinds of meta/v1 that belong to every group and version."""


class Field(NamedTuple):
    """A field of a message."""

    number: int
    name: str
    """In JSON; empty if the fields of its message are inlined."""
    type: str
    """One of `SCALARS`, or the full name of a message: `core.v1.PodSpec`."""
    container: str = ""
    """`list`, `map` or nothing."""
    pointer: bool = False
    omitted: bool = False
    """Whether JSON omits it when it is zero."""


class Message(NamedTuple):
    """A message: `core.v1.Pod`."""

    name: str
    fields: tuple[Field, ...]
    is_kind: bool = False


def message_of(gvk: GroupVersionKind) -> Message | None:
    """The message of a kind; None if it has no protobuf form."""
    package = _package_of(gvk.group, gvk.version)
    found = messages_in(package).get(gvk.kind)
    if found is None and gvk.kind in _EVERYWHERE:
        found = messages_in(META).get(gvk.kind)
    return found if found is not None and found.is_kind else None


def message(name: str) -> Message:
    """The message with a full name."""
    package, _, short = name.rpartition(".")
    return messages_in(package)[short]


def _package_of(group: str, version: str) -> str:
    if group == META_GROUP:
        # v1beta1 of metadata and tables has the messages of v1.
        return META
    return f"{group.partition('.')[0] or 'core'}.{version}"


PACKAGES: Final = (
    "admissionregistration.v1", "apidiscovery.v2", "apidiscovery.v2beta1", "apiextensions.v1", "apiregistration.v1", "apps.v1", "authentication.v1",
    "authorization.v1", "autoscaling.v1", "autoscaling.v2", "batch.v1", "certificates.v1", "coordination.v1",
    "core.v1", "discovery.v1", "events.v1", "flowcontrol.v1", "meta.v1", "networking.v1", "node.v1", "policy.v1",
    "rbac.v1", "resource.v1", "resource.v1alpha3", "resource.v1beta1", "resource.v1beta2", "scheduling.v1",
    "scheduling.v1alpha3", "storage.v1", "storagemigration.v1",
)  # fmt: skip
"""The packages that have tables."""


@cache
def messages_in(package: str) -> dict[str, Message]:
    """The messages of a package by name; none of an unknown package."""
    if package not in PACKAGES:
        return {}
    table = import_module(f"allot.api.protobuf.tables.{package.replace('.', '_')}").TABLE
    messages: dict[str, Message] = {}
    for block in table.strip().split("\n\n"):
        head, *lines = block.split("\n")
        name, *words = head.split()
        fields = tuple(_field(line, package) for line in lines)
        messages[name] = Message(f"{package}.{name}", fields, "kind" in words)
    return messages


def _field(line: str, package: str) -> Field:
    number, name, type_ = line.split()
    omitted = type_.endswith("?")
    type_ = type_.removesuffix("?")
    pointer = type_.startswith("*")
    type_ = type_.removeprefix("*")
    container = {"[]": "list", "{}": "map"}.get(type_[:2], "")
    if container:
        type_ = type_[2:]
    if type_ not in SCALARS and "." not in type_:
        type_ = f"{package}.{type_}"
    return Field(int(number), "" if name == "-" else name, type_, container, pointer, omitted)
