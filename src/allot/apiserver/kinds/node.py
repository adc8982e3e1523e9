"""Nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, always_written, change_each, make, without
from allot.apiserver.defaults.pods import with_addresses
from allot.apiserver.kinds.definition import NODE_PROXY, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, UNKNOWN, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import joined, or_none
from allot.validation.fields import FieldError
from allot.validation.nodes import validate_node, validate_node_update

# Clients insist on finding these in a node's system information.
_NODE_INFO: Final = dict.fromkeys(
    (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
        "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "",
)  # fmt: skip


def node_defaults(node: Data) -> Data:
    node = make(node, "spec", _node_spec_defaults)
    return make(node, "status", _node_status_defaults)


def _node_spec_defaults(spec: Data) -> Data:
    """Dynamic kubelet configuration is no longer part of Kubernetes; policies of preemption are not yet."""
    spec = with_addresses(spec, "podCIDR", "podCIDRs", key="")
    return without(without(spec, "configSource"), "podPreemptionPolicy")


def _node_status_defaults(status: Data) -> Data:
    """A node that does not say what is allocatable offers all it has."""
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status = status | {"allocatable": status["capacity"]}
    if not isinstance(status.get("daemonEndpoints"), dict):
        status = status | {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}}
    if "config" in status:
        status = {name: value for name, value in status.items() if name != "config"}
    status = make(status, "nodeInfo", _node_info_defaults)
    for name, zeros in _ZEROS.items():
        status = change_each(status, name, partial(_with_zeros, zeros))
    status = change_each(status, "images", _image_defaults)
    return change_each(status, "conditions", _condition_defaults)


_ZEROS: Final = {
    "addresses": {"type": "", "address": ""},
    "volumesAttached": {"name": "", "devicePath": ""},
    "runtimeHandlers": {"name": ""},
}
"""Fields that are written even if they are empty."""


def _with_zeros(zeros: Data, item: Data) -> Data:
    return item if item.keys() >= zeros.keys() else zeros | item


def _image_defaults(image: Data) -> Data:
    image = image if image.get("names") else image | {"names": None}
    if image.get("sizeBytes") == 0:
        image = {name: value for name, value in image.items() if name != "sizeBytes"}
    return image


def _condition_defaults(condition: Data) -> Data:
    if not condition.keys() >= _CONDITION.keys():
        condition = _CONDITION | condition
    return always_written(condition, "lastHeartbeatTime", "lastTransitionTime")


_CONDITION: Final = {"type": "", "status": ""}


def _node_info_defaults(info: Data) -> Data:
    return info if info.keys() >= _NODE_INFO.keys() else _NODE_INFO | info


_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


_ROLE_LABEL: Final = "kubernetes.io/role"


def _node_row(node: RawObject, age: Age) -> list[Cell]:
    info = node.get("status", "nodeInfo", default={})
    return [
        node.metadata.name,
        _status(node),
        _roles(node),
        age(node.metadata.creation_timestamp),
        str(info.get("kubeletVersion") or ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        str(info.get("osImage") or UNKNOWN),
        _kernel(info),
        str(info.get("containerRuntimeVersion") or UNKNOWN),
    ]


def _kernel(info: Mapping[str, Any]) -> str:
    """The version and the architecture it is built for."""
    version, architecture = info.get("kernelVersion"), info.get("architecture")
    if not version:
        return UNKNOWN
    return f"{version} ({architecture})" if architecture else str(version)


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


def _warnings(node: RawObject) -> list[str]:
    if not node.get("spec", "externalID"):
        return []
    return ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]


class NodeStrategy(RawStrategy):
    """Nodes register with their status."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return new

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        """Some rules of new nodes do not hold for their updates."""
        yield from self._validate_metadata_update(new, old)
        yield from validate_node_update(new, old)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self.validate_update(new, old, request)


DEFINITION: Final = KindDefinition(
    strategy=partial(
        NodeStrategy, KindRules(validate=validate_node, status={}, warnings=_warnings)
    ),
    defaults=node_defaults,
    table=Table(
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
        _node_row,
    ),
    subresources=(NODE_PROXY, STATUS),
    selectable_fields={"spec.unschedulable": "spec.unschedulable"},
)
