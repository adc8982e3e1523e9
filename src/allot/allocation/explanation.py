"""Explanation: why claims do not fit on a node.

Nothing is recorded while claims are allocated. Only when somebody asks, the search runs once more
under observation: for every alternative it keeps, at the moment when most of its devices had been
found, the first reason why each of the others was refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from allot.allocation.attempt import Attempt
from allot.allocation.candidates import CandidateRules
from allot.allocation.errors import AllocationError, StepsExhaustedError
from allot.allocation.inventory import NodeView
from allot.allocation.problem import AllocationProblem
from allot.allocation.reasons import refusal
from allot.allocation.requests import Alternative, PreparedRequest, prepare_claims
from allot.allocation.search import Frame, Search
from allot.allocation.work_meter import WorkMeter
from allot.api.identities import DeviceId
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

MAX_OBSERVED_STEPS = 1_000
"""Enough to get as far as there is to get; more would only repeat the same reasons."""


_REASON_WORK: Final = 8
"""Units of work to say why one device is refused."""


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
    is_complete: bool = True
    """False if time ran out: what is here is true, but there is more to say."""

    def lines(self) -> list[str]:
        """The explanation as text."""
        lines = [f"node {self.node}: {self.error or 'the claims do not fit'}"]
        lines += [f"  {pool}" for pool in self.pools]
        for report in self.requests:
            lines.append(f"  {report}")
            lines += [f"    {each}" for each in report.refusals]
        if not self.is_complete:
            lines.append("  (time ran out: there may be more reasons)")
        return lines


def explain(problem: AllocationProblem, *, deadline: Deadline = no_deadline) -> Explanation:
    """Why the claims do not fit: for each alternative and device the first reason.

    Of claims that do fit it tells which devices were left aside on the way. Once the time that `deadline` knows of is
    over, what has been found until then comes back, marked as incomplete.
    """
    known = Explanation(problem.node.name, "", (), ())
    meter = WorkMeter(deadline)
    search: _ObservedSearch | None = None
    try:
        view = problem.inventory.view(problem.node, meter)
        known = known._replace(error=view.error, pools=tuple(_unusable(view, meter)))
        if view.error:
            return known
        rules = CandidateRules(problem.node, view, problem.ledger, problem.inventory.gates, meter)
        claims = prepare_claims(problem, rules)
        requests = [request for claim in claims for request in claim.requests]
        search = _ObservedSearch(Attempt(rules, len(claims)), requests)
        search.solve(MAX_OBSERVED_STEPS)
    except AllocationError as error:
        known = known._replace(error=str(error))
    except DeadlineExceededError:
        known = known._replace(is_complete=False)
    except StepsExhaustedError:
        pass
    if search is None:
        return known
    search.unwind()
    reports = search.reports()
    return known._replace(
        requests=reports, is_complete=known.is_complete and len(reports) == search.alternatives
    )


def _unusable(view: NodeView, meter: WorkMeter) -> Iterator[str]:
    for pool in view.pools:
        meter.spend(1)
        if pool.is_incomplete:
            yield f"pool {pool.id} is incomplete: not all of its slices are here"
        elif pool.is_invalid:
            yield f"pool {pool.id} is invalid: {pool.invalid_because}"


class _Observation(NamedTuple):
    found: int
    refusals: tuple[Refusal, ...]


class _ObservedSearch(Search):
    """A search that notes why it goes back."""

    def __init__(self, attempt: Attempt, requests: Sequence[PreparedRequest]) -> None:
        super().__init__(attempt, requests)
        self._best: dict[Alternative, _Observation] = {}
        self.alternatives = sum(len(request.alternatives) for request in requests)

    def _fail(self, frame: Frame) -> None:
        alternative = frame.alternative
        if alternative is not None:
            best = self._best.get(alternative)
            if best is None or best.found < frame.nth:
                self._best[alternative] = _Observation(frame.nth, self._refusals(alternative))
        super()._fail(frame)

    def _refusals(self, alternative: Alternative) -> tuple[Refusal, ...]:
        """Why the devices that the alternative does not have are refused now."""
        attempt = self.attempt
        own = {pick.index for pick in attempt.picks if pick.alternative is alternative}
        devices_by_reason: dict[str, list[DeviceId]] = {}
        for index, device in enumerate(attempt.devices):
            self._meter.spend(_REASON_WORK)
            reason = refusal(attempt, alternative, index)
            if reason is not None and index not in own:
                devices_by_reason.setdefault(reason, []).append(device.id)
        refusals = []
        for reason, devices in devices_by_reason.items():
            self._meter.spend(1)
            refusals.append(Refusal(reason, tuple(devices)))
        return tuple(refusals)

    def reports(self) -> tuple[RequestReport, ...]:
        """One report per alternative; those never reached are judged with nothing picked.

        Where time runs out before, their reports are missing.
        """
        reports = []
        is_over = False
        for alternative in (each for request in self.requests for each in request.alternatives):
            best = self._best.get(alternative)
            observed = best
            if observed is None and not is_over:
                try:
                    observed = _Observation(0, self._refusals(alternative))
                except DeadlineExceededError:
                    is_over = True
            if observed is not None:
                reports.append(
                    RequestReport(
                        str(alternative.claim.key),
                        alternative.label,
                        alternative.count,
                        observed.found,
                        best is not None,
                        observed.refusals,
                    )
                )
        return tuple(reports)
