"""The status, labels, outdated taints and lease of a simulated node."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from allot.api.core import Node
from allot.api.times import read_time, written_time
from allot.client.clock import micro_time
from allot.kubelet.settings import OFFLINE, KubeletSettings

LEASE_NAMESPACE: Final = "kube-node-lease"
DEFAULT_CAPACITY: Final = {
    "cpu": "8",
    "ephemeral-storage": "100Gi",
    "memory": "32Gi",
    "pods": "110",
}
KUBELET_VERSION: Final = "v1.38.0"
STALE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that are removed when the node is ready."""
DECLARED_FEATURES: Final = ("DRAOptionalNodeOperations",)
"""What a node with drivers declares: devices that need no calls on the node may be used on it."""
_SPREAD: Final = 0.2

# type, status, reason, message
_HEALTHY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "simulated: there is memory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "simulated: there is room on the disk"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "simulated: there are process numbers"),
    ("Ready", "True", "KubeletReady", "simulated: ready for pods"),
)


def is_offline(node: Node) -> bool:
    return node.metadata.annotations.get(OFFLINE) == "true"


def address_of(node: Node) -> str:
    """The internal IP address; empty if it has none."""
    for address in node.get("status", "addresses", default=()):
        if address.get("type") == "InternalIP":
            return str(address.get("address", ""))
    return ""


# --- status ---


def status_after(
    node: Node, address: str, settings: KubeletSettings, now: datetime
) -> dict[str, Any] | None:
    """The status to write; None if the current one is up to date and its heartbeat is recent.

    Capacity and allocatable that are set already stay; missing amounts are filled in.
    """
    before: Mapping[str, Any] = node.get("status", default={})
    conditions = list(before.get("conditions") or ())
    is_due = heartbeat_age(node, now) >= _heartbeat_seconds(node.metadata.name, settings)
    status = dict(before)
    capacity = before.get("capacity") or before.get("allocatable") or {}
    status["capacity"] = {**DEFAULT_CAPACITY, **capacity}
    status["allocatable"] = {**status["capacity"], **(before.get("allocatable") or {})}
    status["conditions"] = _conditions(conditions, is_due, written_time(now))
    if not before.get("addresses"):
        status["addresses"] = [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node.metadata.name},
        ]
    if settings.plugin_dir is not None and "declaredFeatures" not in before:
        status["declaredFeatures"] = list(DECLARED_FEATURES)
    status["nodeInfo"] = {**_node_info(node), **_without_blanks(before.get("nodeInfo") or {})}
    return status if status != before else None


def heartbeat_age(node: Node, now: datetime) -> float:
    """Seconds since the last heartbeat of a ready node; infinite if it never had one."""
    for condition in node.get("status", "conditions", default=()):
        if condition.get("type") == "Ready" and condition.get("lastHeartbeatTime"):
            return (now - (read_time(condition["lastHeartbeatTime"]) or now)).total_seconds()
    return float("inf")


def _heartbeat_seconds(name: str, settings: KubeletSettings) -> float:
    """Different for each node, to spread the writes of nodes that were created together."""
    return settings.heartbeat_seconds * (1 - _SPREAD * fraction(name))


def fraction(name: str) -> float:
    """A number in [0, 1) derived from a name."""
    return zlib.crc32(name.encode()) / 2**32


def _conditions(
    before: Sequence[Mapping[str, Any]], is_due: bool, now: str
) -> list[dict[str, Any]]:
    found = {condition.get("type", ""): dict(condition) for condition in before}
    is_due = is_due or any(
        found.get(type_, {}).get("status") != status for type_, status, _, _ in _HEALTHY
    )
    if not is_due:
        return list(found.values())
    for type_, status, reason, message in _HEALTHY:
        known = found.get(type_, {})
        since = known.get("lastTransitionTime") if known.get("status") == status else None
        found[type_] = {
            **known,
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since or now,
        }
    return list(found.values())


def _node_info(node: Node) -> dict[str, str]:
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.metadata.uid}.node.allot.dev"))
    return {
        "architecture": node.metadata.labels.get("kubernetes.io/arch", "amd64"),
        "bootID": identity,
        "containerRuntimeVersion": "simulated://1.0.0",
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": identity.replace("-", ""),
        "operatingSystem": node.metadata.labels.get("kubernetes.io/os", "linux"),
        "osImage": "allot (simulated)",
        "systemUUID": identity,
    }


def _without_blanks(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if value}


# --- labels and taints ---


def default_labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


def missing_labels(node: Node) -> dict[str, str]:
    """The default labels that the node lacks."""
    wanted, labels = default_labels(node.metadata.name), node.metadata.labels
    return {name: value for name, value in wanted.items() if name not in labels}


def taints_to_keep(node: Node) -> list[dict[str, Any]] | None:
    """The taints without outdated ones; None if nothing changes."""
    if not node.has_condition("Ready"):
        return None
    kept = [taint for taint in node.taints if taint.get("key") not in STALE_TAINTS]
    return kept if len(kept) < len(node.taints) else None


# --- leases ---


def lease_spec(name: str, settings: KubeletSettings, now: datetime) -> dict[str, Any]:
    return {
        "holderIdentity": name,
        "leaseDurationSeconds": settings.lease_seconds,
        "renewTime": micro_time(now),
    }


def new_lease(node: Node, settings: KubeletSettings, now: datetime) -> dict[str, Any]:
    """The lease of a node, owned by it and so deleted with it."""
    name = node.metadata.name
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
    metadata = {"namespace": LEASE_NAMESPACE, "name": name, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": lease_spec(name, settings, now)}
