"""Pods that get the same answer from all plugins: while one of them fits nowhere, the others need not be tried."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import msgspec

from allot.api.decoding import to_builtin
from allot.scheduler.plugins.dynamic_resources.pod_claims import FindClaim, Unusable, claims_of
from allot.scheduler.state.pods import PodInfo


class EqualPods:
    """Which pod of each class was tried without success, and the pods that wait for it."""

    def __init__(self) -> None:
        self._tried: dict[Hashable, str] = {}
        """By class: the uid of the pod that was tried and fits nowhere."""
        self._waiting: dict[Hashable, dict[str, PodInfo]] = {}
        """The others, in order, by uid. They are tried when that one has a node or is gone."""
        self._class_by_uid: dict[str, Hashable] = {}

    def __len__(self) -> int:
        """The number of pods that wait for an equal one."""
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[PodInfo]:
        for waiting in self._waiting.values():
            yield from waiting.values()

    def clear(self) -> None:
        self._tried.clear()
        self._waiting.clear()
        self._class_by_uid.clear()

    def set_tried(self, class_: Hashable, pod: PodInfo) -> None:
        """The pod fits nowhere."""
        self._tried.setdefault(class_, pod.uid)
        self._class_by_uid[pod.uid] = class_

    @property
    def any_tried(self) -> bool:
        return bool(self._tried)

    def tried(self, class_: Hashable) -> str | None:
        """The uid of the pod of this class that was tried."""
        return self._tried.get(class_)

    def wait(self, class_: Hashable, pod: PodInfo) -> None:
        """The pod is not tried before the one of its class that was."""
        self._waiting.setdefault(class_, {})[pod.uid] = pod
        self._class_by_uid[pod.uid] = class_

    def remove(self, uid: str) -> PodInfo | None:
        """A pod has a node or is gone. If it was the one that was tried: the next of its class, to be tried."""
        class_ = self._class_by_uid.pop(uid, None)
        waiting = self._waiting.get(class_, {})
        waiting.pop(uid, None)
        following: PodInfo | None = None
        if class_ is not None and self._tried.get(class_) == uid:
            del self._tried[class_]
            if waiting:
                first = next(iter(waiting))
                following = waiting.pop(first)
                self._tried[class_] = first
        if not waiting:
            self._waiting.pop(class_, None)
        return following


def class_of(pod: PodInfo, find: FindClaim) -> Hashable | None:
    """Equal for pods that get the same answer from all plugins; None if other pods or volumes matter."""
    if pod.has_affinity or pod.spread_constraints or pod.volume_claims or pod.nominated_node_name:
        return None
    claims = claims_of(pod, find)
    if isinstance(claims, Unusable):
        return None
    if any(claim.status.allocation or not claim.metadata.owner_references for claim in claims):
        return None
    specs = tuple(_encoder.encode(claim.spec) for claim in claims)
    return pod.scheduler_name, pod.priority, pod.preemption_policy, pod.equivalence_class, specs


_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)
