"""Defaults of RBAC, storage, scheduling and discovery kinds."""

from __future__ import annotations

from typing import Final

from allot.apiserver.defaults.filling import Data, change, change_each, fill

RBAC: Final = "rbac.authorization.k8s.io"


def role_binding_defaults(binding: Data) -> Data:
    binding = change(binding, "roleRef", lambda reference: fill(reference, apiGroup=RBAC))
    return change_each(binding, "subjects", _subject_defaults)


def _subject_defaults(subject: Data) -> Data:
    return fill(subject, apiGroup=RBAC) if subject.get("kind") in ("User", "Group") else subject


def storage_class_defaults(storage_class: Data) -> Data:
    return fill(storage_class, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def csi_driver_defaults(driver: Data) -> Data:
    return change(driver, "spec", _csi_driver_spec_defaults)


def _csi_driver_spec_defaults(spec: Data) -> Data:
    spec = fill(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    return (
        spec
        if spec.get("volumeLifecycleModes")
        else spec | {"volumeLifecycleModes": ["Persistent"]}
    )


def volume_attachment_defaults(attachment: Data) -> Data:
    return change(attachment, "status", lambda status: fill(status, attached=False))


def priority_class_defaults(priority_class: Data) -> Data:
    return fill(priority_class, preemptionPolicy="PreemptLowerPriority", value=0)


def endpoint_slice_defaults(endpoint_slice: Data) -> Data:
    endpoint_slice = fill(endpoint_slice, endpoints=[])
    return change_each(endpoint_slice, "ports", _endpoint_port_defaults)


def _endpoint_port_defaults(port: Data) -> Data:
    port = fill(port, protocol="TCP")
    return port | {"name": ""} if port.get("name") is None else port
