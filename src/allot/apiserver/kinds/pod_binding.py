"""pods/binding: gives a pod its node, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.core import Pod
from allot.apiserver.kinds.pod_conditions import with_condition
from allot.validation.fields import FieldError, FieldPath, not_supported, required
from allot.validation.formats import is_subdomain
from allot.validation.names import validate_subdomain

TARGET: Final = FieldPath("target")


class BindingRefused(NamedTuple):
    """The pod cannot be bound: answered with 409, about `pods/binding` or about `pods`."""

    message: str
    kind: str = "pods/binding"


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
    name, wanted = pod.metadata.name, binding.get("metadata") or {}
    for what, asked, found in (
        ("UID", wanted.get("uid"), pod.metadata.uid),
        ("ResourceVersion", wanted.get("resourceVersion"), pod.metadata.resource_version),
    ):
        if asked and asked != found:
            return _unmet_precondition(pod, what, asked, found, dry_run=dry_run)
    if pod.metadata.deletion_timestamp is not None:
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
            pod.metadata,
            annotations=pod.metadata.annotations | annotations,
            labels=labels | pod.metadata.labels,
        )
        bound = pod.with_metadata(metadata)
    bound = bound.with_value(binding["target"]["name"], "spec", "nodeName")
    bound = with_condition(bound, {"type": "PodScheduled", "status": "True"}, now)
    if bound.get("status", "nominatedNodeName"):  # has served its purpose
        bound = bound.with_value(None, "status", "nominatedNodeName")
    return bound


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
