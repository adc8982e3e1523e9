"""The values behind a rejection of a node by a plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from allot.api.claims import ResourceClaim
from allot.api.meta import NodeSelector, NodeSelectorRequirement
from allot.api.selectors import NodeTerm, Requirement
from allot.api.taints import is_tolerated
from allot.scheduler.explain.pod_changes import taint_text
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import Plugin
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


def details(
    plugin: Plugin | None, state: CycleState, pod: PodInfo, node: NodeInfo
) -> tuple[str, ...]:
    """Empty for plugins whose reasons are complete."""
    match plugin:
        case NodeResourcesFit():
            return tuple(plugin.shortages(pod, node))
        case NodeAffinity():
            return tuple(_unmet_node_affinity(pod, node))
        case TaintToleration():
            return tuple(
                f"the pod does not tolerate taint {taint_text(taint)}"
                for taint in node.blocking_taints
                if not is_tolerated(taint, pod.tolerations)
            )
        case ClaimFilter():
            unusable = plugin.unusable_claims(state, node)
            return tuple(_unusable(claim, failure) for claim, failure in unusable)
    return ()


def _unusable(claim: ResourceClaim, failure: str) -> str:
    key = str(claim.key)
    if failure:
        return f"claim {key}: {failure}"
    allocation = claim.status.allocation
    names = ", ".join(result.device for result in allocation.devices.results) if allocation else ""
    selector = allocation.node_selector if allocation is not None else None
    return f"claim {key} has {names}, which can be used on {selected_nodes(selector)} only"


def selected_nodes(selector: NodeSelector | None) -> str:
    """The nodes that a selector selects, in words."""
    if selector is None:
        return "all nodes"
    terms = []
    for term in selector.node_selector_terms:
        needs = [_words(each) for each in term.match_expressions]
        pins = [name for each in term.match_fields for name in each.values]
        if pins:
            needs.append(f"node{'s' * (len(pins) > 1)} {', '.join(pins)}")
        terms.append(" and ".join(needs) if pins else f"nodes with {' and '.join(needs)}")
    return " or ".join(terms)


def _words(need: NodeSelectorRequirement) -> str:
    return _requirement(Requirement(need.key, need.operator, frozenset(need.values)))


# --- node affinity ---


def _unmet_node_affinity(pod: PodInfo, node: NodeInfo) -> Iterator[str]:
    if pod.node_selector is not None:
        for need in pod.node_selector.requirements:
            if not need.admits(node.labels.get(need.key)):
                yield _unmet("nodeSelector", need, node.labels)
    required = pod.required_nodes
    if required is None or required.matches(node.name, node.labels):
        return
    if not required.terms:
        yield "the pod's node affinity selects no node"
    for number, term in enumerate(required.terms):
        place = "node affinity" if len(required.terms) == 1 else f"node affinity, term #{number}"
        yield from _unmet_in(place, term, node)


def _unmet_in(place: str, term: NodeTerm, node: NodeInfo) -> Iterator[str]:
    for need in term.expressions:
        if not need.admits(node.labels.get(need.key)):
            yield _unmet(place, need, node.labels)
    for pin in term.fields:
        if not pin.admits(node.name):
            yield f"{place}: the pod asks for nodes with {_requirement(pin)}"


def _unmet(place: str, need: Requirement, labels: Mapping[str, str]) -> str:
    value = labels.get(need.key)
    has = f"is {value}" if value is not None else "is not set"
    return f"{place}: the pod asks for {_requirement(need)}, and here it {has}"


def _requirement(need: Requirement) -> str:
    values = ", ".join(sorted(need.values))
    match need.operator:
        case "In" | "=" if len(need.values) == 1:
            return f"{need.key}={values}"
        case "In":
            return f"{need.key} in ({values})"
        case "NotIn":
            return f"{need.key} not in ({values})"
        case "Exists":
            return f"label {need.key}"
        case "DoesNotExist":
            return f"no label {need.key}"
    return f"{need.key} {'>' if need.operator == 'Gt' else '<'} {need.number}"
