"""The handle that plugin factories get: the scheduler's state, clocks, and ways to act."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from allot.client.wall_clock import wall_clock
from allot.features import FeatureGates
from allot.scheduler.framework.dry_run import DryRunFilters
from allot.scheduler.framework.waiting_pods import WaitingPods
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from allot.scheduler.state.workloads import WorkloadSelectors

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.client.informer import InformerFactory
    from allot.scheduler.framework.metrics import SchedulerMetrics

T = TypeVar("T")


class PodEvents(Protocol):
    """Events about pods, and their nominated nodes."""

    def pending(
        self, pod: PodInfo, reason: str, note: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """A Normal event about a pod that is not scheduled yet."""

    def warn(self, pod: PodInfo, reason: str, note: str) -> None:
        """A Warning event."""

    async def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Write `status.nominatedNodeName`."""


class NoPodEvents:
    """Records nothing."""

    def pending(
        self, pod: PodInfo, reason: str, note: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        pass

    def warn(self, pod: PodInfo, reason: str, note: str) -> None:
        pass

    async def nominate(self, pod: PodInfo, node_name: str) -> None:
        pass


@dataclass(slots=True)
class Handle:
    """What one scheduler offers to the plugins of one profile.

    State is read by plugins and kept up to date by the scheduler's event handlers.
    """

    gates: FeatureGates
    cluster: ClusterState
    claims: ClaimTracker
    devices: DeviceState
    volumes: VolumeState = field(default_factory=VolumeState)
    workloads: WorkloadSelectors = field(default_factory=WorkloadSelectors)
    clock: Callable[[], float] = time.monotonic
    utc_now: Callable[[], datetime] = wall_clock
    client: Client | None = None
    """None where nothing may be written, as in `allot explain`."""
    informers: InformerFactory | None = None
    events: PodEvents = field(default_factory=NoPodEvents)
    metrics: SchedulerMetrics | None = None
    spawn: Callable[[Coroutine[Any, Any, None]], object] = lambda work: work.close()
    """Runs a coroutine beside the scheduling cycle. It is cancelled when the scheduler stops."""
    requeue: Callable[[PodInfo], None] = lambda _pod: None
    """Schedules a pod again although no cluster event says that it may fit now."""
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    """Pods that a permit plugin holds back; any plugin may allow or reject them."""
    filters: DryRunFilters = field(init=False)
    """The filters of this profile, for dry runs."""
    _shared: dict[type, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.filters = DryRunFilters(self.cluster)

    def shared(self, kind: type[T], make: Callable[[], T]) -> T:
        """One instance of `kind` for all profiles, made when it is first needed."""
        if kind not in self._shared:
            self._shared[kind] = make()
        instance: T = self._shared[kind]
        return instance
