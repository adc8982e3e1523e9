"""The statuses of nodes that rejected a pod, by name, with sums over them. Pods of one equivalence class share one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Final

from allot.scheduler.framework.fit_errors import count_reasons
from allot.scheduler.framework.status import Code, Status

MAX_NAMED_NODES: Final = 3


class NodeStatuses(dict[str, Status]):
    """Immutable after construction, so that sums over thousands of nodes are computed once."""

    @cached_property
    def reasons(self) -> str:
        """The reasons with counts, as in conditions."""
        return count_reasons(self.values())

    @cached_property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected a node."""
        return frozenset({status.plugin for status in self.values()})

    @cached_property
    def pending_on(self) -> frozenset[str]:
        """The plugins that reported Pending."""
        return frozenset({s.plugin for s in self.values() if s.code is Code.PENDING})

    @cached_property
    def preemptable(self) -> frozenset[str]:
        """Nodes where preemption may help."""
        return frozenset(name for name, status in self.items() if status.code is Code.UNSCHEDULABLE)

    @cached_property
    def limits_hit(self) -> str:
        """On which nodes a limit ended the search for an answer, and where; empty if none did."""
        slow = {name: status.ended_by for name, status in self.items() if status.ended_by}
        if not slow:
            return ""
        names = ", ".join(islice(slow, MAX_NAMED_NODES))
        more = f" and {len(slow) - MAX_NAMED_NODES} more" if len(slow) > MAX_NAMED_NODES else ""
        return f"Without an answer: {names}{more}; {next(iter(slow.values()))}."


def node_statuses(statuses: Mapping[str, Status]) -> NodeStatuses:
    return statuses if isinstance(statuses, NodeStatuses) else NodeStatuses(statuses)
