"""Nominations: pods for which preemption makes room on a node.

Pods of lower priority do not get that room.
"""

from __future__ import annotations

from collections.abc import Callable

from allot.scheduler.state.pods import PodInfo


class Nominations:
    """Waiting pods by their nominated node."""

    def __init__(self, is_assigned: Callable[[str], bool]) -> None:
        """`is_assigned` says whether the pod with a uid is assigned or assumed."""
        self._is_assigned = is_assigned
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_by_uid: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def put(self, pod: PodInfo, node_name: str) -> None:
        """Nominate the pod to a node; without a name, remove the nomination."""
        self.remove(pod.uid)
        if node_name:
            self._by_node.setdefault(node_name, {})[pod.uid] = pod
            self._node_by_uid[pod.uid] = node_name

    def remove(self, uid: str) -> None:
        node_name = self._node_by_uid.pop(uid, None)
        if node_name is None:
            return
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]

    def before(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """The pods that are nominated to this node, with at least the priority of `pod`."""
        return [
            other
            for other in self._by_node.get(node_name, {}).values()
            if other.uid != pod.uid
            and other.priority >= pod.priority
            and not self._is_assigned(other.uid)
        ]
