"""Rows of the core kinds beside pods and nodes."""

from __future__ import annotations

from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.printers.ages import time_at
from allot.apiserver.printers.column import (
    AGE,
    NAME,
    UNSET,
    Age,
    Cell,
    Column,
    Table,
    number,
    wide,
)
from allot.apiserver.printers.words import CREATED, first_few, joined, labels_text, or_none


def _text(obj: RawObject, *path: str) -> str:
    return str(obj.get(*path, default=""))


def _namespace_row(namespace: RawObject, age: Age) -> list[Cell]:
    metadata = namespace.metadata
    return [metadata.name, _text(namespace, "status", "phase"), age(metadata.creation_timestamp)]


def _config_map_row(config_map: RawObject, age: Age) -> list[Cell]:
    entries = sum(len(config_map.get(field, default={})) for field in ("data", "binaryData"))
    return [config_map.metadata.name, entries, age(config_map.metadata.creation_timestamp)]


def _secret_row(secret: RawObject, age: Age) -> list[Cell]:
    metadata = secret.metadata
    entries = len(secret.get("data", default={}))
    return [metadata.name, _text(secret, "type"), entries, age(metadata.creation_timestamp)]


# --- services ---


def _service_row(service: RawObject, age: Age) -> list[Cell]:
    return [
        service.metadata.name,
        _text(service, "spec", "type"),
        or_none(service.get("spec", "clusterIP")),
        _external_addresses(service),
        or_none(joined(_port_text(port) for port in service.get("spec", "ports", default=[]))),
        age(service.metadata.creation_timestamp),
        labels_text(service.get("spec", "selector")),
    ]


def _external_addresses(service: RawObject) -> str:
    external = service.get("spec", "externalIPs", default=[])
    match service.get("spec", "type"):
        case "LoadBalancer":
            ingress = service.get("status", "loadBalancer", "ingress", default=[])
            given = sorted({item.get("ip") or item.get("hostname") or "" for item in ingress})
            return joined([*(address for address in given if address), *external]) or "<pending>"
        case "ExternalName":
            return _text(service, "spec", "externalName")
    return or_none(joined(external))


def _port_text(port: dict[str, Any]) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', 'TCP')}"


def _endpoints_row(endpoints: RawObject, age: Age) -> list[Cell]:
    served: list[str] = []
    for subset in endpoints.get("subsets", default=[]):
        addresses = [address.get("ip", "") for address in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        served += [
            _address(address, port.get("port", 0)) for port in ports for address in addresses
        ] or (addresses if not ports else [])
    metadata = endpoints.metadata
    return [metadata.name, or_none(first_few(served)), age(metadata.creation_timestamp)]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# --- events ---


def _event_row(event: RawObject, age: Age) -> list[Cell]:
    first = time_at(event, "firstTimestamp") or time_at(event, "eventTime")
    last = time_at(event, "series", "lastObservedTime") or time_at(event, "lastTimestamp") or first
    kind, name = _text(event, "involvedObject", "kind"), _text(event, "involvedObject", "name")
    count = event.get("series", "count") or event.get("count") or 1
    return [
        age(last),
        _text(event, "type"),
        _text(event, "reason"),
        f"{kind.lower()}/{name}" if name else kind.lower(),
        _text(event, "involvedObject", "fieldPath"),
        _source(event),
        _text(event, "message").strip(),
        age(first),
        str(count),
        event.metadata.name,
    ]


def _source(event: RawObject) -> str:
    component = event.get("source", "component") or event.get("reportingComponent") or ""
    host = event.get("source", "host") or event.get("reportingInstance") or ""
    return joined((part for part in (component, host) if part), ", ")


# --- volumes ---

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def _modes(modes: list[str]) -> str:
    return joined(short for mode, short in _MODES.items() if mode in modes)


def _phase(obj: RawObject) -> str:
    if obj.metadata.deletion_timestamp is not None:
        return "Terminating"
    return _text(obj, "status", "phase")


def _storage_class(obj: RawObject) -> str:
    annotated = obj.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated or _text(obj, "spec", "storageClassName")


def _unset(obj: RawObject, field: str) -> str:
    return str(obj.get("spec", field) or UNSET)


def _volume_row(volume: RawObject, age: Age) -> list[Cell]:
    claim = volume.get("spec", "claimRef", default={})
    return [
        volume.metadata.name,
        _text(volume, "spec", "capacity", "storage"),
        _modes(volume.get("spec", "accessModes", default=[])),
        _text(volume, "spec", "persistentVolumeReclaimPolicy"),
        _phase(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _storage_class(volume),
        _unset(volume, "volumeAttributesClassName"),
        _text(volume, "status", "reason"),
        age(volume.metadata.creation_timestamp),
        _unset(volume, "volumeMode"),
    ]


def _volume_claim_row(claim: RawObject, age: Age) -> list[Cell]:
    bound = bool(claim.get("spec", "volumeName"))
    return [
        claim.metadata.name,
        _phase(claim),
        _text(claim, "spec", "volumeName"),
        _text(claim, "status", "capacity", "storage") if bound else "",
        _modes(claim.get("status", "accessModes", default=[])) if bound else "",
        _storage_class(claim),
        _unset(claim, "volumeAttributesClassName"),
        age(claim.metadata.creation_timestamp),
        _unset(claim, "volumeMode"),
    ]


# --- quotas and limits ---


def _quota_row(quota: RawObject, age: Age) -> list[Cell]:
    """Each bound as `name: used/hard`; those of limits have a column of their own."""
    used = quota.get("status", "used", default={})
    hard = quota.get("status", "hard") or quota.get("spec", "hard") or {}
    texts = {name: f"{name}: {used.get(name, 0)}/{bound}" for name, bound in sorted(hard.items())}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    requests = [text for name, text in texts.items() if not name.startswith("limits.")]
    return [
        quota.metadata.name,
        joined(requests, ", "),
        joined(limits, ", "),
        age(quota.metadata.creation_timestamp),
    ]


TABLES: Final[dict[tuple[str, str], Table]] = {
    ("", "Namespace"): Table((NAME, Column("Status"), AGE), _namespace_row),
    ("", "ConfigMap"): Table((NAME, Column("Data"), AGE), _config_map_row),
    ("", "Secret"): Table((NAME, Column("Type"), number("Data"), AGE), _secret_row),
    ("", "Service"): Table(
        (
            NAME,
            Column("Type"),
            Column("Cluster-IP"),
            Column("External-IP"),
            Column("Port(s)"),
            AGE,
            wide("Selector"),
        ),
        _service_row,
    ),
    ("", "Endpoints"): Table((NAME, Column("Endpoints"), AGE), _endpoints_row),
    ("", "Event"): Table(
        (
            Column("Last Seen"),
            Column("Type"),
            Column("Reason"),
            Column("Object"),
            wide("Subobject"),
            wide("Source"),
            Column("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ),
        _event_row,
    ),
    ("", "PersistentVolume"): Table(
        (
            NAME,
            Column("Capacity"),
            Column("Access Modes"),
            Column("Reclaim Policy"),
            Column("Status"),
            Column("Claim"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            Column("Reason"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume_row,
    ),
    ("", "PersistentVolumeClaim"): Table(
        (
            NAME,
            Column("Status"),
            Column("Volume"),
            Column("Capacity"),
            Column("Access Modes"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume_claim_row,
    ),
    ("", "ResourceQuota"): Table((NAME, Column("Request"), Column("Limit"), AGE), _quota_row),
    ("", "LimitRange"): CREATED,
}
