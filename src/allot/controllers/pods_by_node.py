"""Pods by the node they are bound to: an index that several controllers share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.core import Pod
from allot.client.informer import Informer

_INDEX: Final = "pods-by-node"


def _node_of(pod: Pod) -> Iterable[str]:
    return (pod.node_name,) if pod.node_name else ()


class PodsByNode:
    """The pods of each node in the informer."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._pods = pods
        pods.add_index(_INDEX, _node_of)

    def of(self, node: str) -> list[Pod]:
        return self._pods.by_index(_INDEX, node)
