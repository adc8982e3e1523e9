"""pods/binding: gives a pod its node, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.plain_json import PlainStruct, read_plain
from allot.apiserver.kinds.pod_conditions import changed_conditions
from allot.validation.fields import FieldError, FieldPath, not_supported, required
from allot.validation.formats import is_subdomain
from allot.validation.names import validate_subdomain

TARGET: Final = FieldPath("target")
MAX_PLAIN: Final = 1024
"""Bytes. A longer Binding has more in it than schedulers write."""
_PLAIN_HEAD: Final = b'{"kind":"Binding","apiVersion":"v1",'


class _Metadata(PlainStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Target(PlainStruct, frozen=True):
    kind: str = ""
    name: str = ""


class _Binding(PlainStruct, frozen=True):
    kind: str
    api_version: str
    metadata: _Metadata
    target: _Target


_decoder: Final = msgspec.json.Decoder(_Binding)


class BindingRefused(NamedTuple):
    """The pod cannot be bound: answered with 409, about `pods/binding` or about `pods`."""

    message: str
    kind: str = "pods/binding"


def plain_binding(body: bytes) -> dict[str, Any] | None:
    """The Binding in `body`; None if it has other fields than bindings of schedulers, or is written otherwise."""
    if not body.startswith(_PLAIN_HEAD) or len(body) > MAX_PLAIN:
        return None
    if read_plain(body, _decoder) is None:
        return None
    binding: dict[str, Any] = msgspec.json.decode(body)
    return binding


def validate_binding(binding: Mapping[str, Any]) -> Iterator[FieldError]:
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        yield not_supported(TARGET / "kind", target["kind"], ["Node", "<empty>"], is_ordered=True)
    name = target.get("name")
    if not name:
        yield required(TARGET / "name")
    elif not is_subdomain(name):
        yield from validate_subdomain(name, TARGET / "name")


def bind(
    pod: Pod, binding: Mapping[str, Any], now: datetime, *, dry_run: bool = False
) -> Pod | BindingRefused:
    """The pod on the node that a valid binding names.

    Annotations of the binding replace those of the pod; labels are added where it has none. The
    generation stays: the spec says no more than before what the pod should do.
    """
    metadata, wanted = pod.metadata, binding.get("metadata") or {}
    name, uid, version = metadata.name, wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != metadata.uid:
        return _unmet_precondition(pod, "UID", uid, metadata.uid, dry_run=dry_run)
    if version and version != metadata.resource_version:
        found = metadata.resource_version
        return _unmet_precondition(pod, "ResourceVersion", version, found, dry_run=dry_run)
    if metadata.deletion_timestamp is not None:
        return BindingRefused(f"pod {name} is being deleted, cannot be assigned to a host")
    spec = pod.rest.get("spec") or {}
    if spec.get("nodeName"):
        return BindingRefused(f'pod {name} is already assigned to node "{pod.node_name}"')
    if spec.get("schedulingGates"):
        return BindingRefused(f"pod {name} has non-empty .spec.schedulingGates")
    bound = pod
    annotations, labels = wanted.get("annotations") or {}, wanted.get("labels") or {}
    if annotations or labels:
        metadata = replace(
            metadata,
            annotations=metadata.annotations | annotations,
            labels=labels | metadata.labels,
        )
        bound = pod.with_metadata(metadata)
    status = dict(pod.rest.get("status") or {})
    status["conditions"] = changed_conditions(status.get("conditions") or (), _SCHEDULED, now)
    if status.get("nominatedNodeName"):  # has served its purpose
        del status["nominatedNodeName"]
    return bound.with_parts(
        {"spec": {**spec, "nodeName": binding["target"]["name"]}, "status": status}
    )


_SCHEDULED: Final = {"type": "PodScheduled", "status": "True"}


def _unmet_precondition(
    pod: Pod, what: str, asked: str, found: str, *, dry_run: bool
) -> BindingRefused:
    """The storage layer of Kubernetes finds it, and names the pod by its key."""
    root = "" if dry_run else "/registry"
    place = f"{root}/pods/{pod.metadata.namespace}/{pod.metadata.name}"
    return BindingRefused(
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, "
        f"{what} in object meta: {found}",
        "pods",
    )
