"""Rows of RBAC bindings, storage, scheduling, coordination and discovery kinds."""

from __future__ import annotations

from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.printers.column import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Age,
    Cell,
    Column,
    Table,
    flag,
    number,
    wide,
)
from allot.apiserver.printers.words import CREATED, first_few, joined


def _text(obj: RawObject, *path: str) -> str:
    return str(obj.get(*path, default=""))


def _age(obj: RawObject, age: Age) -> str:
    return age(obj.metadata.creation_timestamp)


def _binding_row(binding: RawObject, age: Age) -> list[Cell]:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.get("subjects", default=[]):
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.get(kind, []).append(name)
    return [
        binding.metadata.name,
        f"{_text(binding, 'roleRef', 'kind')}/{_text(binding, 'roleRef', 'name')}",
        _age(binding, age),
        *(joined(names, ", ") for names in subjects.values()),
    ]


# --- storage ---

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _storage_class_row(storage_class: RawObject, age: Age) -> list[Cell]:
    annotations = storage_class.metadata.annotations
    is_default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        storage_class.metadata.name + (" (default)" if is_default else ""),
        _text(storage_class, "provisioner"),
        str(storage_class.get("reclaimPolicy", default="Delete")),
        str(storage_class.get("volumeBindingMode", default="Immediate")),
        "true" if storage_class.get("allowVolumeExpansion") else "false",
        _age(storage_class, age),
    ]


def _csi_driver_row(driver: RawObject, age: Age) -> list[Cell]:
    requests = driver.get("spec", "tokenRequests", default=[])
    modes = driver.get("spec", "volumeLifecycleModes", default=[])
    return [
        driver.metadata.name,
        bool(driver.get("spec", "attachRequired", default=True)),
        bool(driver.get("spec", "podInfoOnMount", default=False)),
        bool(driver.get("spec", "storageCapacity", default=False)),
        joined(request.get("audience", "") for request in requests) if requests else UNSET,
        bool(driver.get("spec", "requiresRepublish", default=False)),
        joined(modes) if modes else NONE,
        _age(driver, age),
    ]


def _csi_node_row(node: RawObject, age: Age) -> list[Cell]:
    drivers = node.get("spec", "drivers", default=[])
    return [node.metadata.name, len(drivers), _age(node, age)]


def _csi_capacity_row(capacity: RawObject, _: Age) -> list[Cell]:
    return [
        capacity.metadata.name,
        _text(capacity, "storageClassName"),
        str(capacity.get("capacity", default=UNSET)),
    ]


def _attachment_row(attachment: RawObject, age: Age) -> list[Cell]:
    return [
        attachment.metadata.name,
        _text(attachment, "spec", "attacher"),
        _text(attachment, "spec", "source", "persistentVolumeName"),
        _text(attachment, "spec", "nodeName"),
        "true" if attachment.get("status", "attached") else "false",
        _age(attachment, age),
    ]


def _attributes_class_row(attributes: RawObject, age: Age) -> list[Cell]:
    return [attributes.metadata.name, _text(attributes, "driverName"), _age(attributes, age)]


# --- scheduling, coordination, node, discovery ---


def _priority_class_row(priority_class: RawObject, age: Age) -> list[Cell]:
    return [
        priority_class.metadata.name,
        int(priority_class.get("value", default=0)),
        bool(priority_class.get("globalDefault", default=False)),
        _age(priority_class, age),
        _text(priority_class, "preemptionPolicy"),
    ]


def _lease_row(lease: RawObject, age: Age) -> list[Cell]:
    return [lease.metadata.name, _text(lease, "spec", "holderIdentity"), _age(lease, age)]


def _runtime_class_row(runtime_class: RawObject, age: Age) -> list[Cell]:
    return [runtime_class.metadata.name, _text(runtime_class, "handler"), _age(runtime_class, age)]


def _endpoint_slice_row(endpoint_slice: RawObject, age: Age) -> list[Cell]:
    ports: list[dict[str, Any]] = endpoint_slice.get("ports", default=[])
    addresses = [
        address
        for endpoint in endpoint_slice.get("endpoints", default=[])
        for address in endpoint.get("addresses") or []
    ]
    return [
        endpoint_slice.metadata.name,
        _text(endpoint_slice, "addressType"),
        first_few([port.get("port") or "*" for port in ports]) or UNSET,
        first_few(addresses) or UNSET,
        _age(endpoint_slice, age),
    ]


_BINDING: Final = Table(
    (NAME, Column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")),
    _binding_row,
)

TABLES: Final[dict[tuple[str, str], Table]] = {
    ("rbac.authorization.k8s.io", "Role"): CREATED,
    ("rbac.authorization.k8s.io", "ClusterRole"): CREATED,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("storage.k8s.io", "StorageClass"): Table(
        (
            NAME,
            Column("Provisioner"),
            Column("ReclaimPolicy"),
            Column("VolumeBindingMode"),
            Column("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class_row,
    ),
    ("storage.k8s.io", "CSIDriver"): Table(
        (
            NAME,
            flag("AttachRequired"),
            flag("PodInfoOnMount"),
            flag("StorageCapacity"),
            Column("TokenRequests"),
            flag("RequiresRepublish"),
            Column("Modes"),
            AGE,
        ),
        _csi_driver_row,
    ),
    ("storage.k8s.io", "CSINode"): Table((NAME, number("Drivers"), AGE), _csi_node_row),
    ("storage.k8s.io", "CSIStorageCapacity"): Table(
        (NAME, Column("StorageClassName"), Column("Capacity")), _csi_capacity_row
    ),
    ("storage.k8s.io", "VolumeAttachment"): Table(
        (NAME, Column("Attacher"), Column("PV"), Column("Node"), Column("Attached"), AGE),
        _attachment_row,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Table(
        (NAME, Column("DriverName"), AGE), _attributes_class_row
    ),
    ("scheduling.k8s.io", "PriorityClass"): Table(
        (NAME, number("Value"), flag("Global-Default"), AGE, wide("PreemptionPolicy")),
        _priority_class_row,
    ),
    ("coordination.k8s.io", "Lease"): Table((NAME, Column("Holder"), AGE), _lease_row),
    ("node.k8s.io", "RuntimeClass"): Table((NAME, Column("Handler"), AGE), _runtime_class_row),
    ("discovery.k8s.io", "EndpointSlice"): Table(
        (NAME, Column("AddressType"), Column("Ports"), Column("Endpoints"), AGE),
        _endpoint_slice_row,
    ),
}
