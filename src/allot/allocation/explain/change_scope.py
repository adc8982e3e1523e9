"""What candidate changes are made of, and what may be changed: only members of the conflict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from allot.allocation.explain.changes import AnyChange
from allot.allocation.explain.findings import Conflict, Explanation, Refusal, RequestReport
from allot.allocation.explain.reasons import ExpressionFailed
from allot.allocation.problem import AllocationProblem
from allot.api.claims import DeviceSubRequest, ExactDeviceRequest

MAX_TRIED: Final = 64
"""How many devices, holders or amounts of one kind are tried."""
DEVICE_WORK: Final = 2
"""Units of work to check a device or slice for candidates."""

Spec = ExactDeviceRequest | DeviceSubRequest
PutSpec = Callable[[Spec], AllocationProblem]
"""The problem with another specification of a request or alternative."""


class Candidate(NamedTuple):
    """A change and the problem with that change. Smaller is better."""

    size: int
    change: AnyChange
    problem: AllocationProblem


Candidates = Iterator[tuple[object, Candidate]]
"""Candidates with their subject; of one subject, only one change is proposed."""


class RequestKey(NamedTuple):
    """A request or alternative, by claim and name."""

    claim: str
    request: str


class ChangeScope:
    """What may be changed: the members of the conflict, or everything without a conflict."""

    def __init__(self, explanation: Explanation | None) -> None:
        conflict = explanation.conflict if explanation is not None else None
        self.conflict: Conflict | None = (
            conflict if conflict is not None and conflict.requests else None
        )
        self._reports: dict[RequestKey, RequestReport] = {
            RequestKey(report.claim, report.request): report
            for report in (explanation.requests if explanation is not None else ())
        }
        self.failures: Collection[tuple[RequestKey, ExpressionFailed]] = [
            (place, refusal.reason)
            for place, report in self._reports.items()
            for refusal in report.refusals
            if isinstance(refusal.reason, ExpressionFailed)
        ]

    def refusals(self, place: RequestKey) -> tuple[Refusal, ...]:
        """Why devices are refused to a request or alternative."""
        report = self._reports.get(place)
        return report.refusals if report is not None else ()

    def wanted(self, place: RequestKey) -> int:
        """How many devices a request or alternative needs; 0 if that is not known."""
        report = self._reports.get(place)
        return report.wanted if report is not None else 0

    def has_request(self, claim: str, request: str) -> bool:
        return self.conflict is None or any(
            (each.claim, each.request) == (claim, request) for each in self.conflict.requests
        )

    def has_constraint(self, claim: str, index: int) -> bool:
        return self.conflict is None or any(
            (each.claim, each.constraint) == (claim, index) for each in self.conflict.constraints
        )

    def lacking_attributes(self, place: RequestKey) -> Iterator[str]:
        """The attributes of constraints in the conflict that no device of a request or alternative has."""
        for each in self.conflict.constraints if self.conflict is not None else ():
            for side in each.sides:
                if (each.claim, side.request) == place and side.without and not side.values:
                    yield each.attribute

    def has_different_types(self, claim: str, attribute: str) -> bool:
        """Whether the values that a matchAttribute in the conflict compares have different types."""
        for each in self.conflict.constraints if self.conflict is not None else ():
            if (each.claim, each.attribute, each.must_match) == (claim, attribute, True):
                types = {value.value.type for side in each.sides for value in side.values}
                if len(types) > 1:
                    return True
        return False
