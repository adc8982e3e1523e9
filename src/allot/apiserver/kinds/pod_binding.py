"""pods/binding: gives a pod its node, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.core import Pod
from allot.apiserver.kinds.pod_conditions import with_condition
from allot.validation.fields import FieldError, FieldPath, not_supported, required

TARGET: Final = FieldPath("target")


class BindingRefused(NamedTuple):
    """The pod cannot be bound: answered with 409, about `pods/binding`."""

    message: str


def validate_binding(binding: Mapping[str, Any]) -> Iterator[FieldError]:
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        yield not_supported(TARGET / "kind", target["kind"], ["Node", "<empty>"])
    if not target.get("name"):
        yield required(TARGET / "name")


def bind(pod: Pod, binding: Mapping[str, Any], now: datetime) -> Pod | BindingRefused:
    """The pod on the node that a valid binding names.

    Annotations of the binding replace those of the pod; labels are added where it has none. The
    generation stays: the spec says no more than before what the pod should do.
    """
    name, wanted = pod.metadata.name, binding.get("metadata") or {}
    uid = wanted.get("uid")
    if uid and uid != pod.metadata.uid:
        return BindingRefused(
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.metadata.uid}"
        )
    if pod.metadata.deletion_timestamp is not None:
        return BindingRefused(f"pod {name} is being deleted, cannot be assigned to a host")
    if pod.node_name:
        return BindingRefused(f'pod {name} is already assigned to node "{pod.node_name}"')
    if pod.get("spec", "schedulingGates"):
        return BindingRefused(f"pod {name} has non-empty .spec.schedulingGates")
    metadata = replace(
        pod.metadata,
        annotations=pod.metadata.annotations | (wanted.get("annotations") or {}),
        labels=(wanted.get("labels") or {}) | pod.metadata.labels,
    )
    bound = pod.with_metadata(metadata).with_value(binding["target"]["name"], "spec", "nodeName")
    bound = with_condition(bound, {"type": "PodScheduled", "status": "True"}, now)
    if bound.get("status", "nominatedNodeName"):  # has served its purpose
        bound = bound.with_value(None, "status", "nominatedNodeName")
    return bound
