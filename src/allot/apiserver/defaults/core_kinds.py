"""Defaults of core kinds that are neither pods, services nor made of pod templates."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from allot.apiserver.defaults.filling import Data, change, change_each, fill, make, part, without
from allot.apiserver.defaults.pods import source_defaults

NAME_LABEL: Final = "kubernetes.io/metadata.name"


def namespace_defaults(namespace: Data) -> Data:
    """Every namespace carries its name as a label, so that selectors can name it."""
    name = part(namespace, "metadata").get("name")
    if isinstance(name, str) and name:
        namespace = change(namespace, "metadata", lambda metadata: _labelled(metadata, name))
    return make(namespace, "status", lambda status: fill(status, phase="Active"))


def _labelled(metadata: Data, name: str) -> Data:
    labels = part(metadata, "labels")
    if labels.get(NAME_LABEL) == name:
        return metadata
    return metadata | {"labels": labels | {NAME_LABEL: name}}


# Clients insist on finding these in a node's system information.
_NODE_INFO: Final = dict.fromkeys(
    (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
        "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "",
)  # fmt: skip


def node_defaults(node: Data) -> Data:
    """A node that does not say what is allocatable offers all it has."""
    return change(node, "status", _node_status_defaults)


def _node_status_defaults(status: Data) -> Data:
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status = status | {"allocatable": status["capacity"]}
    return change(status, "nodeInfo", _node_info_defaults)


def _node_info_defaults(info: Data) -> Data:
    return info if info.keys() >= _NODE_INFO.keys() else _NODE_INFO | info


def secret_defaults(secret: Data) -> Data:
    """Plain texts are encoded into `data`; nobody reads them back as they came."""
    secret = fill(secret, type="Opaque")
    if "stringData" not in secret:
        return secret
    texts = part(secret, "stringData")
    encoded = {name: b64encode(str(text).encode()).decode() for name, text in texts.items()}
    rest = without(secret, "stringData")
    return rest | {"data": part(secret, "data") | encoded} if encoded else rest


def endpoints_defaults(endpoints: Data) -> Data:
    return change_each(
        endpoints,
        "subsets",
        lambda subset: change_each(subset, "ports", lambda port: fill(port, protocol="TCP")),
    )


def limit_range_defaults(limit_range: Data) -> Data:
    return change(
        limit_range, "spec", lambda spec: change_each(spec, "limits", _container_limit_defaults)
    )


def _container_limit_defaults(item: Data) -> Data:
    """For containers a maximum is also the default limit, and that the default request."""
    if item.get("type") != "Container":
        return item
    limit = part(item, "max") | part(item, "default")
    request = part(item, "min") | limit | part(item, "defaultRequest")
    filled = {"default": limit, "defaultRequest": request}
    missing = {name: amounts for name, amounts in filled.items() if amounts != part(item, name)}
    return item | missing if missing else item


def volume_defaults(volume: Data) -> Data:
    volume = change(
        volume,
        "spec",
        lambda spec: source_defaults(
            fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        ),
    )
    return make(volume, "status", lambda status: fill(status, phase="Pending"))


def volume_claim_defaults(claim: Data) -> Data:
    claim = change(claim, "spec", lambda spec: fill(spec, volumeMode="Filesystem"))
    return make(claim, "status", lambda status: fill(status, phase="Pending"))
