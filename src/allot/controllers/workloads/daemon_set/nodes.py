"""On which nodes a daemon set wants a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from allot.allocation.errors import AllocationError
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import TargetNode
from allot.api.core import Node
from allot.api.meta import NodeSelector
from allot.controllers.workloads.daemon_set.pods import tolerations_of
from allot.controllers.workloads.reading import Json, labels_of, name_of

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Place(NamedTuple):
    """Whether a pod should be made on a node, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


NOT_HERE: Final = Place(False, False)


def judge_node(node: Node, spec: Mapping[str, Any]) -> Place:
    """What a pod template's spec means for a node."""
    if not _is_meant(node, spec):
        return NOT_HERE
    tolerations = tolerations_of(spec)
    effects = {
        taint.get("effect")
        for taint in node.taints
        if not any(tolerates(toleration, taint) for toleration in tolerations)
    }
    may_stay = "NoExecute" not in effects
    return Place(may_stay and "NoSchedule" not in effects, may_stay)


def _is_meant(node: Node, spec: Mapping[str, Any]) -> bool:
    name, labels = name_of(node), labels_of(node)
    if spec.get("nodeName") not in (None, "", name):
        return False
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    return required is None or _selects(required, name, labels)


def _selects(selector: Json, name: str, labels: Mapping[str, str]) -> bool:
    """A selector that makes no sense selects nothing."""
    try:
        wanted = msgspec.convert(selector, NodeSelector)
        return selects_node(TargetNode(name, dict(labels)), None, None, wanted)
    except (msgspec.ValidationError, AllocationError):
        return False


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def has_changed(old: Node, new: Node) -> bool:
    """Whether daemon sets may judge the node differently now."""
    return labels_of(old) != labels_of(new) or old.taints != new.taints


def places_by_node(nodes: Iterable[Node], spec: Mapping[str, Any]) -> dict[str, Place]:
    return {name_of(node): judge_node(node, spec) for node in nodes}
