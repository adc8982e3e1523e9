"""Changes of a pod's node selector, node affinity and tolerations that may make it fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from allot.allocation.explain.phrases import joined
from allot.api.base import ApiObject, always
from allot.api.similar_names import similarity
from allot.api.taints import Taint, is_tolerated
from allot.scheduler.plugins.node_unschedulable import UNSCHEDULABLE_TAINT
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_OTHER_VALUES: Final = 5
"""How many other values of a label are tried instead of the one in the node selector."""


MAX_TAINT_SETS: Final = 5
"""How many different sets of taints are tried."""


class PodChange(ApiObject, frozen=True, tag_field="kind", tag=True):
    """A change of one requirement."""


class OtherNodeLabel(PodChange, frozen=True):
    """Another value of a label in the pod's nodeSelector."""

    label: str = always(str)
    value: str = always(str)
    instead_of: str = always(str)


class WithoutNodeSelector(PodChange, frozen=True):
    """The pod's nodeSelector without a label."""

    label: str = always(str)
    value: str = always(str)


class WithoutNodeSelectors(PodChange, frozen=True):
    """The pod without its whole nodeSelector."""

    labels: tuple[str, ...] = always(tuple)
    """As `label=value`."""


class AddPodToleration(PodChange, frozen=True):
    """The pod tolerates all taints of a node that it does not tolerate yet."""

    taints: tuple[str, ...] = always(tuple)
    """As `key=value:effect`."""


class WithoutNodeAffinity(PodChange, frozen=True):
    """The pod without its required node affinity."""


AnyPodChange = (
    OtherNodeLabel
    | WithoutNodeSelector
    | WithoutNodeSelectors
    | AddPodToleration
    | WithoutNodeAffinity
)


class ChangedPod(NamedTuple):
    """A change and the pod as it would be with it. Of those about the same, one is enough."""

    about: object
    change: AnyPodChange
    pod: PodInfo


def pod_change_text(change: AnyPodChange) -> str:
    """What would help, as an instruction."""
    match change:
        case OtherNodeLabel(label, value, instead_of):
            return f"pod, nodeSelector: ask for {label}={value} instead of {instead_of}"
        case WithoutNodeSelector(label, value):
            return f"pod, nodeSelector: do without {label}={value}"
        case WithoutNodeSelectors(labels):
            return f"pod: do without the nodeSelector {joined(labels)}"
        case AddPodToleration(taints):
            noun = "taint" if len(taints) == 1 else "taints"
            return f"pod: tolerate the node {noun} {joined(taints)}"
        case WithoutNodeAffinity():
            return "pod: do without the required node affinity"


def changed_pods(pod: PodInfo, nodes: Iterable[NodeInfo]) -> Iterator[ChangedPod]:
    """The pod with one requirement removed or changed; the smallest change first."""
    labels: list[NodeInfo] = list(nodes)
    selector: dict[str, str] = pod.pod.get("spec", "nodeSelector", default={}) or {}
    for label, value in selector.items():
        for other in _other_values(label, value, labels):
            changed = pod.pod.with_value({**selector, label: other}, "spec", "nodeSelector")
            yield ChangedPod(label, OtherNodeLabel(label, other, value), PodInfo.of(changed))
    for label, value in selector.items():
        fewer = {key: each for key, each in selector.items() if key != label}
        changed = pod.pod.with_value(fewer or None, "spec", "nodeSelector")
        yield ChangedPod(("", label), WithoutNodeSelector(label, value), PodInfo.of(changed))
    yield from _tolerating(pod, labels)
    if len(selector) > 1:
        changed = pod.pod.with_value(None, "spec", "nodeSelector")
        pairs = tuple(f"{label}={value}" for label, value in selector.items())
        yield ChangedPod("selector", WithoutNodeSelectors(pairs), PodInfo.of(changed))
    if pod.required_nodes is not None:
        path = (
            "spec",
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        )
        changed = pod.pod.with_value(None, *path)
        yield ChangedPod("affinity", WithoutNodeAffinity(), PodInfo.of(changed))


def _tolerating(pod: PodInfo, nodes: Iterable[NodeInfo]) -> Iterator[ChangedPod]:
    """The pod with tolerations for all taints of a node; the fewest first, each set of taints once."""
    sets: dict[tuple[Taint, ...], None] = {}
    for node in nodes:
        taints = [
            taint for taint in node.blocking_taints if not is_tolerated(taint, pod.tolerations)
        ]
        if node.is_unschedulable and not is_tolerated(UNSCHEDULABLE_TAINT, pod.tolerations):
            continue  # it is up to the operator when a cordoned node takes pods again
        if taints:
            sets[tuple(taints)] = None
    own = pod.pod.get("spec", "tolerations", default=[]) or []
    for taints_together in sorted(sets, key=len)[:MAX_TAINT_SETS]:
        more = [
            {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            for taint in taints_together
        ]
        changed = pod.pod.with_value([*own, *more], "spec", "tolerations")
        tolerate = AddPodToleration(tuple(map(taint_text, taints_together)))
        yield ChangedPod("taints", tolerate, PodInfo.of(changed))


def taint_text(taint: Taint) -> str:
    """`key=value:effect`."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _other_values(label: str, value: str, nodes: Iterable[NodeInfo]) -> list[str]:
    """Values that nodes have for a label: similar ones first, then the most frequent."""
    counts = Counter(node.labels[label] for node in nodes if label in node.labels)
    counts.pop(value, None)
    similar = {each: similarity(value, each) for each in counts}
    ordered = sorted(counts, key=lambda each: (-similar[each], -counts[each], each))
    return ordered[:MAX_OTHER_VALUES]
