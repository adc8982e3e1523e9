"""The pods of a daemon set: with node affinity to one node, and tolerations of node conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.resources import DAEMON_SETS
from allot.controllers.workloads.accessors import Json, annotations_of, template_of
from allot.controllers.workloads.pod_templates import pod_from_template, with_metadata_entries
from allot.controllers.workloads.revisions import REVISION_HASH

TEMPLATE_GENERATION: Final = "pod-template-generation"
_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE: Final = "node.kubernetes.io"

_TOLERATED: Final = (
    (f"{_NODE}/not-ready", "NoExecute"),
    (f"{_NODE}/unreachable", "NoExecute"),
    (f"{_NODE}/disk-pressure", "NoSchedule"),
    (f"{_NODE}/memory-pressure", "NoSchedule"),
    (f"{_NODE}/pid-pressure", "NoSchedule"),
    (f"{_NODE}/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ((f"{_NODE}/network-unavailable", "NoSchedule"),)


def tolerations_of(spec: Mapping[str, Any]) -> list[Json]:
    """The template's tolerations, and those of every daemon pod."""
    tolerations: list[Json] = list(spec.get("tolerations") or ())
    more = _TOLERATED + (_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())
    for key, effect in more:
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        if wanted not in tolerations:
            tolerations.append(wanted)
    return tolerations


def make_pod(daemon_set: RawObject, node: str, revision_hash: str) -> Pod:
    pod = pod_from_template(template_of(daemon_set), DAEMON_SETS, daemon_set)
    spec = pod.get("spec", default={})
    labels = {REVISION_HASH: revision_hash}
    generation = annotations_of(daemon_set).get(_GENERATION_ANNOTATION)
    if generation:
        labels[TEMPLATE_GENERATION] = generation
    return (
        with_metadata_entries(pod, "labels", labels)
        .with_value(_pinned(spec.get("affinity") or {}, node), "spec", "affinity")
        .with_value(tolerations_of(spec), "spec", "tolerations")
    )


def _pinned(affinity: Json, node: str) -> Json:
    """The affinity with this node as the only one. Other node affinity was evaluated before."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {
        **affinity,
        "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required},
    }


def node_of(pod: Pod) -> str:
    """The node it is bound to, or has affinity to."""
    if pod.node_name:
        return pod.node_name
    required = pod.get("spec", "affinity", "nodeAffinity", _REQUIRED, default={})
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            values: list[str] = field.get("values") or []
            if field.get("key") == "metadata.name" and len(values) == 1:
                return values[0]
    return ""
