"""What the allocator says about the devices of nodes, for one pod."""

from __future__ import annotations

from collections.abc import Hashable

from allot.allocation import Explanation, Wording, explain
from allot.allocation.explain.phrases import pool_text
from allot.allocation.explain.transfer import transferred
from allot.allocation.problem import AllocationProblem
from allot.api.base import replace
from allot.scheduler.explain.effort import IsOver, deadline_of
from allot.scheduler.explain.explanations import NodeExplanation, requests_in
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.nodes import NodeInfo


class DeviceExplainer:
    """Explains the devices of nodes for one pod. Equivalent nodes share an explanation."""

    def __init__(self, profile: Profile, state: CycleState, is_over: IsOver) -> None:
        self.state = state
        self._plugin = profile.plugin(NAME)
        self._deadline = deadline_of(is_over)
        self._known: dict[Hashable, tuple[AllocationProblem, Explanation]] = {}

    def explained(self, node: NodeInfo) -> Explanation | None:
        """None if the pod needs no devices there."""
        plugin = self._plugin
        allocation_problem = (
            plugin.allocation_problem(self.state, node) if isinstance(plugin, ClaimFilter) else None
        )
        if allocation_problem is None or not isinstance(plugin, ClaimFilter):
            return None
        node_class = plugin.node_equivalence_class(self.state, node)
        if node_class is not None and node_class in self._known:
            example, explanation = self._known[node_class]
            return transferred(explanation, example, allocation_problem)
        explanation = explain(allocation_problem, deadline=self._deadline)
        if node_class is not None and explanation.is_complete and not explanation.error:
            self._known[node_class] = allocation_problem, explanation
        return explanation


def with_devices(found: NodeExplanation, explanation: Explanation) -> NodeExplanation:
    """The explanation of a node, with that of its devices."""
    wording = Wording()
    pools = tuple(map(pool_text, explanation.pools))
    return replace(
        found,
        details=(*pools, *found.details),
        conflict=explanation.conflict,
        summary=wording.conflict(explanation),
        requests=requests_in(explanation, wording),
    )
