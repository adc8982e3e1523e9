"""Explanation: why claims do not fit on a node.

Nothing is recorded while claims are allocated. Only when somebody asks, the search runs once more
under observation: for every alternative it keeps, at the moment when most of its devices had been
found, the first reason why each of the others was refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from allot.allocation.attempt import Attempt
from allot.allocation.candidates import CandidateRules
from allot.allocation.errors import AllocationError, StepsExhaustedError
from allot.allocation.problem import AllocationProblem
from allot.allocation.reasons import refusal
from allot.allocation.requests import Alternative, PreparedRequest, prepare_claims
from allot.allocation.search import Frame, Search
from allot.api.identities import DeviceId

MAX_OBSERVED_STEPS = 1_000
"""Enough to get as far as there is to get; more would only repeat the same reasons."""


class Refusal(NamedTuple):
    """One reason, and the devices refused for it, in order."""

    reason: str
    devices: tuple[DeviceId, ...]

    def __str__(self) -> str:
        shown = ", ".join(device.device for device in self.devices[:3])
        more = f", … ({len(self.devices)} devices)" if len(self.devices) > 3 else ""
        return f"{shown}{more}: {self.reason}"


class RequestReport(NamedTuple):
    """How far one request, or one alternative of it, came."""

    claim: str
    request: str
    wanted: int
    found: int
    """Devices it had at the best moment."""
    was_tried: bool
    """Whether all requests before it could be satisfied at least once."""
    refusals: tuple[Refusal, ...]

    def __str__(self) -> str:
        state = "" if self.was_tried else " (never reached: what comes before it does not fit)"
        return (
            f"claim {self.claim}, request {self.request}:"
            f" {self.found} of {self.wanted} device(s) found{state}"
        )


class Explanation(NamedTuple):
    """Why there is no solution on one node."""

    node: str
    error: str
    """What could not be decided, if that is what is wrong."""
    pools: tuple[str, ...]
    """Pools that could not be used, and why."""
    requests: tuple[RequestReport, ...]

    def lines(self) -> list[str]:
        """The explanation as text."""
        lines = [f"node {self.node}: {self.error or 'the claims do not fit'}"]
        lines += [f"  {pool}" for pool in self.pools]
        for report in self.requests:
            lines.append(f"  {report}")
            lines += [f"    {each}" for each in report.refusals]
        return lines


def explain(problem: AllocationProblem) -> Explanation:
    """Why the claims do not fit: for each alternative and device the first reason.

    Of claims that do fit it tells which devices were left aside on the way.
    """
    view = problem.inventory.view(problem.node)
    if view.error:
        return Explanation(problem.node.name, view.error, (), ())
    pools = tuple(
        f"pool {pool.id} is incomplete: not all of its slices are here"
        if pool.is_incomplete
        else f"pool {pool.id} is invalid: {pool.invalid_because}"
        for pool in view.pools
        if not pool.is_usable
    )
    rules = CandidateRules(problem.node, view, problem.ledger, problem.inventory.gates)
    try:
        claims = prepare_claims(problem, rules)
    except AllocationError as error:
        return Explanation(problem.node.name, str(error), pools, ())
    attempt = Attempt(rules, len(claims))
    search = _ObservedSearch(attempt, [request for claim in claims for request in claim.requests])
    failure = ""
    try:
        search.solve(MAX_OBSERVED_STEPS)
    except AllocationError as error:
        failure = str(error)
    except StepsExhaustedError:
        pass
    search.unwind()
    return Explanation(problem.node.name, failure, pools, search.reports())


class _Observation(NamedTuple):
    found: int
    reasons: dict[int, str]


class _ObservedSearch(Search):
    """A search that notes why it goes back."""

    def __init__(self, attempt: Attempt, requests: Sequence[PreparedRequest]) -> None:
        super().__init__(attempt, requests)
        self._best: dict[Alternative, _Observation] = {}

    def _fail(self, frame: Frame) -> None:
        alternative = frame.alternative
        if alternative is not None:
            best = self._best.get(alternative)
            if best is None or best.found < frame.nth:
                self._best[alternative] = _Observation(frame.nth, self._reasons(alternative))
        super()._fail(frame)

    def _reasons(self, alternative: Alternative) -> dict[int, str]:
        reasons = {}
        for index in range(len(self.attempt.devices)):
            reason = refusal(self.attempt, alternative, index)
            if reason is not None and not self._is_own(alternative, index):
                reasons[index] = reason
        return reasons

    def _is_own(self, alternative: Alternative, index: int) -> bool:
        return any(
            pick.index == index and pick.alternative is alternative for pick in self.attempt.picks
        )

    def reports(self) -> tuple[RequestReport, ...]:
        """One report per alternative; those never reached are judged with nothing picked."""
        reports = []
        for request in self.requests:
            for alternative in request.alternatives:
                best = self._best.get(alternative)
                observed = best or _Observation(0, self._reasons(alternative))
                reports.append(
                    RequestReport(
                        str(alternative.claim.key),
                        alternative.label,
                        alternative.count,
                        observed.found,
                        best is not None,
                        self._grouped(observed.reasons),
                    )
                )
        return tuple(reports)

    def _grouped(self, reasons: dict[int, str]) -> tuple[Refusal, ...]:
        devices_by_reason: dict[str, list[DeviceId]] = {}
        for index, reason in reasons.items():
            devices_by_reason.setdefault(reason, []).append(self.attempt.devices[index].id)
        return tuple(
            Refusal(reason, tuple(devices)) for reason, devices in devices_by_reason.items()
        )
