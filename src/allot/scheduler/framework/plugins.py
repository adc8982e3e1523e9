"""The extension points: one class each. A plugin derives from those that it serves.

Decisions are synchronous; only methods that may call the API server are async: `post_filter`, `pre_bind` and `bind`.
Nothing is awaited between `pre_filter` and `reserve`, so `ClusterState` does not change during a cycle.

    pre_enqueue → queue → pre_filter → filter* → (post_filter) → pre_score → score* → normalize
      → reserve → permit → pre_bind → bind → post_bind          unreserve undoes reserve and after

`filter` and `score` of a plugin with `filters_locally` / `scores_locally` depend only on the pod's `equivalence_class`,
the node at its `generation`, and the plugin's configuration. Their results are cached by these three; they do not read
the cycle state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import EventRegistration
from allot.scheduler.framework.status import SKIP, SUCCESS, Status
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.scheduler.framework.ordered_binding import OrderedBinding


class Plugin(ABC):
    """A named unit that the configuration enables, disables and weighs."""

    name: ClassVar[str]

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """The cluster events that may help a pod which this plugin rejected."""
        return ()


def has_own(plugin: Plugin, statement: str, method: str) -> bool:
    """Whether a statement of a plugin class is about its own method: a subclass may override only the latter."""
    for class_ in type(plugin).__mro__:
        if statement in vars(class_):
            return True
        if method in vars(class_):
            return False
    return False


class PreEnqueuePlugin(Plugin):
    """Keeps pods out of the active queue."""

    gates_on_referenced_objects: ClassVar[bool] = False
    """Whether only changes of the pod, or of objects that it references, can admit a gated pod."""

    def referenced_objects(self, pod: PodInfo) -> Iterable[Hashable]:
        """The keys of the objects that the pod references, as in events about them."""
        return ()

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS, or why the pod is gated."""


class QueueSortPlugin(Plugin):
    """Orders the active queue."""

    @abstractmethod
    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float, ...]:
        """Pods with smaller keys come first."""


class PreFilterResult(NamedTuple):
    """The status, and the names of the nodes to filter; None means all."""

    status: Status
    node_names: frozenset[str] | None = None


PRE_FILTER_SUCCESS = PreFilterResult(SUCCESS)
PRE_FILTER_SKIP = PreFilterResult(SKIP)


class PreFilterPlugin(Plugin):
    """Runs once per cycle, before nodes are filtered."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        """SKIP means that this plugin's `filter` would accept every node for this pod."""

    may_reject_with: ClassVar[frozenset[Trait]] = frozenset()
    """Traits of a cluster in which `pre_filter` may say anything but SKIP whatever `may_reject` says."""

    def may_reject(self, pod: PodInfo) -> bool:
        """Whether `pre_filter` may say anything but SKIP for pods of this `shape`. It is asked once about all of them."""
        return True

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` ran on `node`."""

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` did not run on `node`."""


class FilterPlugin(Plugin):
    """Decides which nodes can run the pod."""

    filters_locally: ClassVar[bool] = True

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        """For plugins that do not filter locally: what else the results depend on in this cycle.

        Results are cached for pods of the same equivalence class with an equal key, until the node's generation
        changes. None: they are not cached.
        """
        return None

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """SUCCESS (the constant), or why the pod does not fit on the node."""


class ExportedResults(Protocol):
    """Results of a plugin for nodes, which can be pickled."""

    @property
    def timeouts(self) -> int:
        """The number of nodes that timed out."""
        ...


NodesByName = Callable[[str], NodeInfo | None]


class SlowFilterPlugin(FilterPlugin):
    """A filter that may take long, and whose results can be computed in another process."""

    @property
    @abstractmethod
    def node_seconds(self) -> float:
        """The time limit for one node; 0: that of the whole decision."""

    @abstractmethod
    def retry_timeouts(self, state: CycleState) -> int:
        """Forget the nodes that timed out, so that they are tried again; their number."""

    @abstractmethod
    def export_results(self, state: CycleState, node: NodeInfo | None) -> ExportedResults | None:
        """All results, with what `reserve` needs on `node`, the chosen one if there is one."""

    @abstractmethod
    def import_results(
        self, exported: Any, pod: PodInfo, nodes: NodesByName, *, with_timeouts: bool
    ) -> None:
        """Take over the results of another process for a pod.

        A rejection counts for this pod even if the node's devices have changed since: the queue replays the events
        that may help it. For other pods it does not count, see `forget_stale`.
        """

    @abstractmethod
    def forget_stale(self, exported: Any) -> None:
        """Forget results that were imported although the devices had changed; the pod's decision is made."""


class PostFilterResult(NamedTuple):
    """The result of post_filter. `nominated_node` None: the nomination does not change."""

    status: Status
    nominated_node: str | None = None


class PostFilterPlugin(Plugin):
    """Runs when no node fits, such as preemption."""

    @abstractmethod
    async def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> PostFilterResult:
        """SUCCESS if the pod will fit on the nominated node soon."""


class PreScorePlugin(Plugin):
    """Runs once per cycle, before the feasible nodes are scored."""

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        """SKIP means that this plugin's `score` is not called for this pod."""

    may_rank_with: ClassVar[frozenset[Trait]] = frozenset()
    """Traits of a cluster in which `pre_score` may say anything but SKIP whatever `may_rank` says."""

    def may_rank(self, pod: PodInfo) -> bool:
        """Whether `pre_score` may say anything but SKIP for pods of this `shape`. It is asked once about all of them."""
        return True


class ScorePlugin(Plugin):
    """Ranks the feasible nodes."""

    scores_locally: ClassVar[bool] = True
    scores_by_filter: ClassVar[str] = ""
    """For plugins that do not score locally: the filter plugin on whose results scores depend besides.

    Scores are cached where the results of that filter are.
    """
    normalizes_by_value: ClassVar[bool] = False
    """Whether a normalized score depends on nothing but the raw score and which other raw scores there are.

    Then each raw score is normalized once, however many nodes have it, and `normalize` gets no nodes.
    """

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The raw score, before `normalize`."""

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        """Bring raw scores into 0..100, in place."""


class ReservePlugin(Plugin):
    """Tracks what a pod uses from the moment a node is chosen."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status: ...

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`; must also work if that failed half-way or never ran."""


class PermitResult(NamedTuple):
    """Whether to bind now. WAIT: once the pod is allowed through `Handle.waiting_pods` within the timeout."""

    status: Status
    timeout_seconds: float = 0.0


class PermitPlugin(Plugin):
    """Can delay or reject a pod before it is bound."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitResult: ...


class PreBindPlugin(Plugin):
    """Writes what must exist before the pod is bound."""

    @abstractmethod
    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        """Whether `pre_bind` has anything to do. Asked of all plugins before the first `pre_bind` runs."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status: ...


class BindPlugin(Plugin):
    """Binds the pod to the node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SKIP leaves the pod to the next bind plugin."""

    def ordered_binding(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> OrderedBinding | None:
        """What `bind` would send, to be sent with the last write of pre_bind; None if that cannot be."""
        return None


class PostBindPlugin(Plugin):
    """Runs after a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


class LifecyclePlugin(Plugin):
    """Is notified of pods and nodes outside the scheduling cycle."""

    @abstractmethod
    def caches_synced(self, gated: Iterable[PodInfo]) -> None:
        """The informers have synced. `gated` are the pods that are gated at that time."""

    @abstractmethod
    def binding_cancelled(self, pod: PodInfo) -> None:
        """The pod was deleted while it was being bound."""

    @abstractmethod
    def node_deleted(self, name: str) -> None: ...


EXTENSION_POINTS: Final[Mapping[str, type[Plugin]]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
"""By the name that a KubeSchedulerConfiguration uses."""


def extension_points(plugin: type[Plugin]) -> tuple[str, ...]:
    """The names of the extension points that a plugin class serves."""
    return tuple(name for name, point in EXTENSION_POINTS.items() if issubclass(plugin, point))
