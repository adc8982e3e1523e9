"""The extension points: one class per place in the cycle where a plugin can have its say.

A plugin derives from the points it serves. Deciding is synchronous; only what may talk to the API
server is async: `post_filter`, `pre_bind` and `bind`. Between `pre_filter` and `reserve` nothing is
awaited, so plugins read the live `ClusterState` and see it stand still.

    pre_enqueue → queue → pre_filter → filter* → (post_filter) → pre_score → score* → normalize
      → reserve → permit → pre_bind → bind → post_bind          unreserve undoes reserve and after

`filter` and `score` of a plugin with `filters_locally` / `scores_locally` are functions of the pod's
`equivalence_class`, the node at its `generation`, and the plugin's configuration, and nothing else: their
answers may be remembered by (shape, node, generation). They neither read nor need the cycle state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import EventRegistration
from allot.scheduler.framework.status import SKIP, SUCCESS, Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class Plugin(ABC):
    """Something with a name that the configuration can enable, disable and weigh."""

    name: ClassVar[str]

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """The events that may make a pod fit which this plugin rejected."""
        return ()


class PreEnqueuePlugin(Plugin):
    """Keeps pods out of the active queue."""

    gates_on_referenced_objects: ClassVar[bool] = False
    """Whether only a change of the pod, or of an object that it names, can let a gated pod in."""

    def referenced_objects(self, pod: PodInfo) -> Iterable[Hashable]:
        """The objects that the pod names, as events about them are called."""
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
    """Whether to go on, and on which nodes; None means all."""

    status: Status
    node_names: frozenset[str] | None = None


PRE_FILTER_SUCCESS = PreFilterResult(SUCCESS)
PRE_FILTER_SKIP = PreFilterResult(SKIP)


class PreFilterPlugin(Plugin):
    """Looks at the pod once before nodes are tried."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        """SKIP means that this plugin's `filter` would accept every node for this pod."""

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What `pre_filter` remembered, as if `other` ran on `node` too."""

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What `pre_filter` remembered, as if `other` were gone from `node`."""


class FilterPlugin(Plugin):
    """Says which nodes can take the pod."""

    filters_locally: ClassVar[bool] = True

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        """For plugins that do not filter locally: what besides shape and node decides in this cycle.

        Answers are remembered for pods with an equal value, until the node's generation changes.
        None: they cannot be remembered.
        """
        return None

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """SUCCESS (the constant), or why this node cannot take the pod."""


class ExportedResults(Protocol):
    """What a plugin found out about nodes. It can be pickled."""

    @property
    def timeouts(self) -> int:
        """How many nodes took too long."""
        ...


NodesByName = Callable[[str], NodeInfo | None]


class SlowFilterPlugin(FilterPlugin):
    """A filter that may take long. What it finds out can be found out in another process."""

    @property
    @abstractmethod
    def node_seconds(self) -> float:
        """How long it may take for one node; 0: as long as the whole decision."""

    @abstractmethod
    def retry_timeouts(self, state: CycleState) -> int:
        """Forget the nodes that took too long, so that they are tried again; how many there were."""

    @abstractmethod
    def export_results(self, state: CycleState, node: NodeInfo | None) -> ExportedResults | None:
        """All that was found out, with what `reserve` needs on `node`, the chosen one if there is one."""

    @abstractmethod
    def import_results(
        self, exported: Any, pod: PodInfo, nodes: NodesByName, *, with_timeouts: bool
    ) -> None:
        """Take over what another process found out for a pod.

        That a node does not fit counts for the pod even if its devices have changed since: the queue has kept the
        events that might help it. For other pods it does not count, see `forget_stale`.
        """

    @abstractmethod
    def forget_stale(self, exported: Any) -> None:
        """Forget what was taken over although the devices had changed; the pod has been decided about."""


class PostFilterResult(NamedTuple):
    """What was done for a pod that fits nowhere. `nominated_node` None: leave the nomination alone."""

    status: Status
    nominated_node: str | None = None


class PostFilterPlugin(Plugin):
    """Tries to make room after all nodes have refused."""

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
    """Looks at the nodes that fit before they are scored."""

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        """SKIP means that this plugin would score all nodes alike."""


class ScorePlugin(Plugin):
    """Says which of the nodes that fit it likes best."""

    scores_locally: ClassVar[bool] = True

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The raw score, before `normalize`."""

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        """Bring raw scores into 0..100, in place."""


class ReservePlugin(Plugin):
    """Keeps track of what a pod will use, from the decision on."""

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
    """Can hold a pod back before it is bound."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitResult: ...


class PreBindPlugin(Plugin):
    """Does what must be written before the pod is bound."""

    @abstractmethod
    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        """Whether `pre_bind` has anything to do."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status: ...


class BindPlugin(Plugin):
    """Binds the pod to the node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SKIP leaves the pod to the next bind plugin."""


class PostBindPlugin(Plugin):
    """Is told that a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


class LifecyclePlugin(Plugin):
    """Is told about pods and nodes outside the scheduling cycle."""

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
