"""What stands against nodes, by name, and what follows from it for the pod. Pods that are refused alike share one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from allot.scheduler.framework.fit_errors import count_reasons
from allot.scheduler.framework.status import Code, Status


class Refusals(dict[str, Status]):
    """Not changed once it is made, so that what is found out about thousands of nodes is found out once."""

    @cached_property
    def reasons(self) -> str:
        """Counted, as conditions show them."""
        return count_reasons(self.values())

    @cached_property
    def plugins(self) -> frozenset[str]:
        """Those that might change their mind."""
        return frozenset({status.plugin for status in self.values()})

    @cached_property
    def pending_on(self) -> frozenset[str]:
        """Plugins that only wait for something."""
        return frozenset({s.plugin for s in self.values() if s.code is Code.PENDING})

    @cached_property
    def might_yield(self) -> frozenset[str]:
        """Nodes that might take the pod if others were evicted."""
        return frozenset(name for name, status in self.items() if status.code is Code.UNSCHEDULABLE)


def refusals(statuses: Mapping[str, Status]) -> Refusals:
    return statuses if isinstance(statuses, Refusals) else Refusals(statuses)
