"""Changes to a pod that may make it fit: what it asks of nodes besides devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from allot.api.base import ApiObject, always
from allot.api.similar_names import similarity
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_OTHER_VALUES: Final = 5
"""So many values that nodes have for a label are tried instead of the one that the pod asks for."""


class PodChange(ApiObject, frozen=True, tag_field="kind", tag=True):
    """One thing that the pod would ask for differently."""


class OtherNodeLabel(PodChange, frozen=True):
    """The pod's nodeSelector asks for another value of a label."""

    label: str = always(str)
    value: str = always(str)
    instead_of: str = always(str)


class WithoutNodeSelector(PodChange, frozen=True):
    """The pod's nodeSelector does not ask for a label."""

    label: str = always(str)
    value: str = always(str)


class WithoutNodeAffinity(PodChange, frozen=True):
    """The pod does not require anything of nodes by its affinity."""


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
    """The pod with one thing less, or other, that it asks of nodes; the smallest change first."""
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
    """Values that nodes have for a label: those like the wanted one first, then those of most nodes."""
    counts = Counter(node.labels[label] for node in nodes if label in node.labels)
    counts.pop(value, None)
    similar = {each: similarity(value, each) for each in counts}
    ordered = sorted(counts, key=lambda each: (-similar[each], -counts[each], each))
    return ordered[:MAX_OTHER_VALUES]
