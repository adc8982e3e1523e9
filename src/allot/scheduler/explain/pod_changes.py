"""Changes of a pod's node selector and node affinity that may make it fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from allot.api.base import ApiObject, always
from allot.api.similar_names import similarity
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_OTHER_VALUES: Final = 5
"""How many other values of a label are tried instead of the one in the node selector."""


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


class WithoutNodeAffinity(PodChange, frozen=True):
    """The pod without its required node affinity."""


AnyPodChange = OtherNodeLabel | WithoutNodeSelector | WithoutNodeAffinity


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
    if pod.required_nodes is not None:
        path = (
            "spec",
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        )
        changed = pod.pod.with_value(None, *path)
        yield ChangedPod("affinity", WithoutNodeAffinity(), PodInfo.of(changed))


def _other_values(label: str, value: str, nodes: Iterable[NodeInfo]) -> list[str]:
    """Values that nodes have for a label: similar ones first, then the most frequent."""
    counts = Counter(node.labels[label] for node in nodes if label in node.labels)
    counts.pop(value, None)
    similar = {each: similarity(value, each) for each in counts}
    ordered = sorted(counts, key=lambda each: (-similar[each], -counts[each], each))
    return ordered[:MAX_OTHER_VALUES]
