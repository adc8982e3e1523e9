"""What the core asks of whatever explains failed attempts, such as `explain.failure_reasons`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol

from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.state.pods import PodInfo

ALTERNATIVE_UNAVAILABLE: Final = "PreferredAlternativeUnavailable"
"""The reason of the event that says why a pod gets no better alternatives (KEP-4816)."""


class UnschedulablePod(NamedTuple):
    """A pod that fits on no node, with the decision about it."""

    profile: Profile
    pod: PodInfo
    decision: NoNode


ReportReason = Callable[[str], Coroutine[Any, Any, None]]
"""Reports a reason that was found late, if the pod is still unschedulable."""


class FailureExplainer(Protocol):
    """Finds reasons for conditions and events, in the time that decisions leave over."""

    def decided(self, seconds: float) -> None:
        """A decision took so long; a share of that is time for explanations."""

    def of(self, rejection: UnschedulablePod) -> str | None:
        """The reason; empty if there is nothing to add, None if it is found later."""

    def of_error(self, profile: Profile, pod: PodInfo, error: CycleError) -> str | None:
        """The reason of an attempt that ended in an error."""

    def of_choice(self, profile: Profile, chosen: Chosen, pod: PodInfo) -> str:
        """Why a pod that gets a node gets no better alternatives there; empty if it gets the best."""

    def report_later(self, rejection: UnschedulablePod, report: ReportReason) -> bool:
        """Report the reason when there is time; whether `report_all` must be started for that."""

    async def report_all(self) -> None:
        """Report all reasons that wait."""
