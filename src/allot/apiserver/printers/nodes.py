"""The row of a node."""

from __future__ import annotations

from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.printers.column import AGE, NAME, UNKNOWN, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import joined, or_none

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_SYSTEM: Final = ("osImage", "kernelVersion", "containerRuntimeVersion")


def _row(node: RawObject, age: Age) -> list[Cell]:
    info = node.get("status", "nodeInfo", default={})
    return [
        node.metadata.name,
        _status(node),
        _roles(node),
        age(node.metadata.creation_timestamp),
        str(info.get("kubeletVersion") or ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        *(str(info.get(field) or UNKNOWN) for field in _SYSTEM),
    ]


def _status(node: RawObject) -> str:
    conditions = node.get("status", "conditions", default=[])
    words = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in conditions
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if node.get("spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return joined(words)


def _roles(node: RawObject) -> str:
    roles = {
        key.removeprefix(_ROLE_PREFIX)
        for key in node.metadata.labels
        if key.startswith(_ROLE_PREFIX)
    }
    roles.add(node.metadata.labels.get(_ROLE_LABEL, ""))
    return or_none(joined(sorted(roles - {""})))


def _address(node: RawObject, type_: str) -> str:
    addresses = node.get("status", "addresses", default=[])
    found = (item.get("address") for item in addresses if item.get("type") == type_)
    return or_none(next(found, ""))


NODES: Final = Table(
    (
        NAME,
        Column("Status"),
        Column("Roles"),
        AGE,
        Column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ),
    _row,
)
