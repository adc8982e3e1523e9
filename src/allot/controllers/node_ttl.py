"""Tells kubelets how long they may cache secrets and config maps: longer in larger clusters.

The annotation is a number of seconds. Sizes overlap, so that it does not change back and forth.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.client.errors import ApiStatusError
from allot.client.resources import NODES
from allot.controllers.controller import ControllerContext, QueueController

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class TtlBoundary(NamedTuple):
    """The TTL of clusters of this size."""

    min_nodes: int
    max_nodes: float
    seconds: int


BOUNDARIES: Final = (
    TtlBoundary(0, 100, 0),
    TtlBoundary(90, 500, 15),
    TtlBoundary(450, 1000, 30),
    TtlBoundary(900, 2000, 60),
    TtlBoundary(1800, 10_000, 300),
    TtlBoundary(9000, float("inf"), 600),
)


def next_step(step: int, nodes: int) -> int:
    """The index of the boundary after the number of nodes has changed."""
    if nodes > BOUNDARIES[step].max_nodes:
        return step + 1
    if nodes < BOUNDARIES[step].min_nodes:
        return step - 1
    return step


class TtlController(QueueController[str]):
    """Keys are node names. A node gets another TTL with its next change."""

    name = "ttl-controller"
    queue_name = "ttlcontroller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._step = self._count = 0
        self._nodes = context.informers.informer(NODES)
        self._nodes.add_handlers(
            on_add=self._node_added,
            on_update=lambda _, node: self._look_at(node),
            on_delete=lambda _: self._count_nodes(-1),
        )

    def _node_added(self, node: Node) -> None:
        self._count_nodes(1)
        self._look_at(node)

    def _count_nodes(self, change: int) -> None:
        self._count += change
        self._step = next_step(self._step, self._count)

    def _look_at(self, node: Node) -> None:
        if node.metadata.annotations.get(ANNOTATION) != self._wanted:
            self.queue.add(node.metadata.name)

    @property
    def _wanted(self) -> str:
        return str(BOUNDARIES[self._step].seconds)

    async def reconcile(self, key: str) -> None:
        node = self._nodes.get(ObjectKey("", key))
        if node is None or node.metadata.annotations.get(ANNOTATION) == self._wanted:
            return
        patch = {"metadata": {"uid": node.metadata.uid, "annotations": {ANNOTATION: self._wanted}}}
        try:
            await self.client.patch(NODES, node.key, patch)
        except ApiStatusError as error:
            if not (error.is_not_found or error.is_conflict):  # deleted, or replaced
                raise
