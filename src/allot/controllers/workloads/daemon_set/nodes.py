"""On which nodes a daemon set runs a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from allot.api.core import Node
from allot.api.selectors import node_selection
from allot.api.taints import NO_EXECUTE, NO_SCHEDULE, is_tolerated, read_taints, read_tolerations
from allot.controllers.workloads.accessors import labels_of, name_of
from allot.controllers.workloads.daemon_set.pods import tolerations_of

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class DaemonPlacement(NamedTuple):
    """Whether a pod should run on a node, and whether an existing one should continue running."""

    should_run: bool
    may_stay: bool


NOT_PLACED: Final = DaemonPlacement(False, False)


def node_should_run_daemon_pod(node: Node, spec: Mapping[str, Any]) -> DaemonPlacement:
    """The placement on a node for the spec of a pod template."""
    if not _is_meant(node, spec):
        return NOT_PLACED
    tolerations = read_tolerations(tolerations_of(spec))
    taints = read_taints(node.taints)
    effects = {taint.effect for taint in taints if not is_tolerated(taint, tolerations)}
    may_stay = NO_EXECUTE not in effects
    return DaemonPlacement(may_stay and NO_SCHEDULE not in effects, may_stay)


def _is_meant(node: Node, spec: Mapping[str, Any]) -> bool:
    name, labels = name_of(node), labels_of(node)
    if spec.get("nodeName") not in (None, "", name):
        return False
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    selection = node_selection(required)
    return selection is None or selection.matches(name, labels)


def has_changed(old: Node, new: Node) -> bool:
    """Whether the placement of daemon pods may have changed."""
    return labels_of(old) != labels_of(new) or old.taints != new.taints


def placement_by_node(nodes: Iterable[Node], spec: Mapping[str, Any]) -> dict[str, DaemonPlacement]:
    return {name_of(node): node_should_run_daemon_pod(node, spec) for node in nodes}
