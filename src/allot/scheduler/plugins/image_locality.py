"""ImageLocality: prefers nodes that already have the pod's images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import PreScorePlugin, ScorePlugin
from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.framework.status import SKIP, SUCCESS, Status
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MEGABYTE: Final = 1024 * 1024
MIN_BYTES: Final = 23 * MEGABYTE
"""Smaller images do not count."""
MAX_BYTES_PER_CONTAINER: Final = 1000 * MEGABYTE


class ImageLocality(PreScorePlugin, ScorePlugin):
    """Scores by the size of the images on the node.

    An image counts in proportion to the share of nodes that have it, so that pods do not pile up on
    the one node that pulled it first. That share is the cluster's, so scores are not local.
    """

    name = "ImageLocality"
    scores_locally = False
    may_rank_with = frozenset({Trait.IMAGES})

    def may_rank(self, pod: PodInfo) -> bool:
        return False

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        known = cluster.nodes_by_image
        if not known:
            return SKIP
        spread = [(image, known[image]) for image in pod.images if image in known]
        if not spread:
            return SKIP
        state[self.name] = (spread, len(cluster))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        spread, number_of_nodes = state[self.name]
        images = node.facts.images if node.facts else {}
        present = 0
        for image, nodes_with_it in spread:
            size = images.get(image)
            if size:
                present += int(size * (nodes_with_it / number_of_nodes))
        highest = MAX_BYTES_PER_CONTAINER * max(len(pod.images), 1)
        clamped = min(max(present, MIN_BYTES), highest)
        return MAX_SCORE * (clamped - MIN_BYTES) // (highest - MIN_BYTES)
