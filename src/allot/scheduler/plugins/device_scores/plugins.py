"""The score plugins. Each ranks the feasible nodes; none changes which nodes are feasible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

from allot.lru_cache import LRUCache
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugin_args import ConfigurationError
from allot.scheduler.framework.plugins import PreScorePlugin, ScorePlugin
from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.framework.status import SKIP, SUCCESS, Status
from allot.scheduler.plugins.device_scores.device_usage import NodeUsage, usage_on
from allot.scheduler.plugins.device_scores.measures import (
    before,
    lost_room,
    stranded_devices,
    utilisation,
)
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME as DYNAMIC_RESOURCES
from allot.scheduler.plugins.dynamic_resources.claim_queries import ClaimQueries
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_PRECISION: Final = 1_000_000
"""Raw scores are whole millionths."""
_MAX_USAGES: Final = 10_000


class DeviceScores(PreScorePlugin, ScorePlugin):
    """Ranks nodes by their devices with those that the pod would get. Pods that get none are not scored."""

    scores_locally: ClassVar[bool] = False
    scores_by_filter: ClassVar[str] = DYNAMIC_RESOURCES

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        self._usages: LRUCache[Hashable, NodeUsage] = LRUCache(_MAX_USAGES)
        """By what pods ask for and the equivalence class of nodes: nodes of a class differ by their names only."""
        self._group_attributes: tuple[str, ...] = ()

    def _claims(self) -> ClaimQueries | None:
        """The plugin that allocates claims in this profile."""
        for plugin in self._handle.filters.profile.filter:
            if isinstance(plugin, ClaimQueries):
                return plugin
        return None

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        claims = self._claims()
        is_needed = claims is not None and claims.wanted(state) is not None
        return SUCCESS if is_needed else SKIP

    def _usage(self, state: CycleState, node: NodeInfo) -> NodeUsage:
        """The devices of a node, before and after the pod gets what it needs."""
        claims, devices, ledger = self._claims(), self._handle.devices, self._handle.claims.ledger
        target = devices.target(node)
        wanted = claims.wanted(state) if claims is not None else None
        if claims is None or wanted is None:
            node_class = devices.node_equivalence_class(target, ledger)
        else:
            node_class = claims.node_equivalence_class(state, node)
        key = (wanted and wanted[0], node_class)
        usage = self._usages.get(key) if node_class is not None else None
        if usage is None:
            allocated = (
                claims.allocated_claims(state, node) if claims is not None and wanted else ()
            )
            planned = [each.status.allocation for each in allocated or ()]
            usage = usage_on(
                devices.inventory.view(target),
                ledger,
                [each for each in planned if each is not None],
                self._group_attributes,
            )
            if node_class is not None:
                self._usages.put(key, usage)
        return usage


class DevicePacking(DeviceScores):
    """Prefers nodes whose devices are used most: whole machines stay free."""

    name = "DevicePacking"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return round(MAX_SCORE * utilisation(self._usage(state, node)))


class DeviceSpreading(DeviceScores):
    """Prefers nodes whose devices are used least: a node that fails takes few pods along."""

    name = "DeviceSpreading"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return MAX_SCORE - round(MAX_SCORE * utilisation(self._usage(state, node)))


class LeastFragmentation(DeviceScores):
    """Prefers nodes where the least room for large requests is lost: whole machines, matching devices, whole GPUs.

    The argument `matchAttributes` has the attributes by which devices belong together. Default: their PCIe root.
    """

    name = "LeastFragmentation"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self._group_attributes = _read_attributes(args)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return round(_PRECISION * lost_room(self._usage(state, node)))

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        lowest_is_best(scores)


class LeastStrandedCapacity(DeviceScores):
    """Prefers nodes where the fewest devices are left without CPU and memory to use them.

    Also pods without devices are scored: they stay away from the CPU and memory that free devices need.
    """

    name = "LeastStrandedCapacity"

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        usage = self._usage(state, node)
        requests = pod.requests
        now = _free_share(node, 0, 0)
        then = _free_share(node, requests.milli_cpu, requests.memory)
        cost = stranded_devices(usage, then) - stranded_devices(usage, now, before)
        return round(_PRECISION * cost)

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        lowest_is_best(scores)


def _free_share(node: NodeInfo, milli_cpu: int, memory: int) -> float:
    """The free share of CPU or memory, whichever is less, after these requests."""
    shares = [
        max(total - used, 0) / total
        for total, used in (
            (node.allocatable_milli_cpu, node.requested_milli_cpu + milli_cpu),
            (node.allocatable_memory, node.requested_memory + memory),
        )
        if total
    ]
    return min(shares, default=1.0)


def lowest_is_best(scores: list[int]) -> None:
    """Scale in place: the lowest becomes 100, the highest 0. Equal scores all become 100."""
    lowest, highest = min(scores, default=0), max(scores, default=0)
    span = highest - lowest
    scores[:] = [
        MAX_SCORE - MAX_SCORE * (score - lowest) // span if span else MAX_SCORE for score in scores
    ]


def _read_attributes(args: Mapping[str, Any]) -> tuple[str, ...]:
    written = args.get("matchAttributes")
    if written is None:
        return (PCIE_ROOT,)
    path = "LeastFragmentationArgs.matchAttributes"
    if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
        raise ConfigurationError(f"{path}: must be a list of attributes such as {PCIE_ROOT}")
    for name in written:
        if "/" not in name:
            raise ConfigurationError(f"{path}: {name!r} must be qualified, such as {PCIE_ROOT}")
    return tuple(written)
