"""Explanation: why claims do not fit on a node.

Allocation itself records nothing. For an explanation, `conflicts` finds what cannot be satisfied together; then an
observed search runs on that conflict and keeps, for every alternative at its best moment (most devices found), the
reason why each other device is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from allot.allocation.errors import AllocationError, StepsExhaustedError
from allot.allocation.explain.conflicts import (
    PROOF_STEPS,
    ConflictSet,
    Proof,
    find_conflict,
)
from allot.allocation.explain.findings import (
    Conflict,
    ConflictingConstraint,
    ConflictingRequest,
    ConstraintSide,
    Explanation,
    Refusal,
    RequestReport,
    SideValue,
    UnusablePool,
)
from allot.allocation.explain.reasons import AnyReason, TypedValue
from allot.allocation.explain.refusals import refusal, typed_set
from allot.allocation.explain.subproblems import (
    Member,
    claim_of,
    concerns,
    constraint_of,
    members_of,
    request_name,
    restricted,
    with_alternative,
)
from allot.allocation.inventory import NodeView
from allot.allocation.problem import AllocationProblem, StepBudget
from allot.allocation.requests import Alternative, PreparedRequest, prepare_claims
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.backtracking import BacktrackingSearch, SearchFrame
from allot.allocation.search.candidates import CandidateRules
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import DeviceRequest
from allot.api.identities import DeviceId
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

_MAX_OBSERVED_STEPS: Final = 200
"""Steps of an observed search; more would only repeat the same reasons."""
_NOT_REACHED: Final = "not tried: the search for the others took all steps"
_REASON_WORK: Final = 8
"""Units of work to find why one device is refused."""


def explain(
    problem: AllocationProblem,
    budget: StepBudget = StepBudget(PROOF_STEPS),  # noqa: B008 - a value
    *,
    deadline: Deadline = no_deadline,
) -> Explanation:
    """The conflict, and the reason for each alternative and refused device.

    For claims that fit, it reports the devices that were refused on the way. When the deadline passes, the findings
    so far are returned, marked as incomplete.
    """
    known = Explanation(problem.node.name, "", (), ())
    meter = WorkMeter(deadline)
    try:
        view = problem.inventory.view(problem.node, meter)
        known = known._replace(error=view.error, pools=tuple(_unusable(view, meter)))
        if view.error:
            return known
        found = find_conflict(problem, budget, deadline=deadline)
    except DeadlineExceededError:
        return known._replace(is_complete=False)
    if found is not None and not found.in_time:
        known = known._replace(is_complete=False)
    return _Reporter(problem, meter, found).completed(known)


def _unusable(view: NodeView, meter: WorkMeter) -> Iterator[UnusablePool]:
    for pool in view.pools:
        meter.spend(1)
        if not pool.is_usable:
            reason = "" if pool.is_incomplete else pool.invalid_because
            yield UnusablePool(pool.id.driver, pool.id.pool, reason)


class _Reporter:
    """Reports how far every request gets."""

    def __init__(
        self, problem: AllocationProblem, meter: WorkMeter, found: ConflictSet | None
    ) -> None:
        self._problem = problem
        self._meter = meter
        self._found = found
        self._error = ""

    def completed(self, known: Explanation) -> Explanation:
        """The explanation with all reports; incomplete once the deadline has passed."""
        found = self._found
        everything = members_of(self._problem)
        conflicting = found.members if found is not None and found.members else everything
        reports: dict[Member, tuple[RequestReport, ...]] = {}
        is_complete = known.is_complete
        sides: dict[Member, tuple[ConstraintSide, ...]] = {}
        try:
            is_proven = found is not None and bool(found.members)
            reports.update(self._observed(conflicting, in_conflict=is_proven))
            for member in everything:
                if not member.is_constraint and member not in reports:
                    reports.update(self._observed((member,), in_conflict=False))
            for member in conflicting if is_proven else ():
                if member.is_constraint:
                    sides[member] = tuple(self._sides(member, conflicting))
        except DeadlineExceededError:
            is_complete = False
        conflict = self._conflict(found, reports, sides) if found is not None else None
        return known._replace(
            error=self._error,
            requests=tuple(report for member in sorted(reports) for report in reports[member]),
            conflict=conflict,
            is_complete=is_complete,
        )

    # --- requests ---

    def _observed(
        self, members: Sequence[Member], *, in_conflict: bool
    ) -> Iterator[tuple[Member, tuple[RequestReport, ...]]]:
        """The findings of a search for these members, by request."""
        requests = [member for member in members if not member.is_constraint]
        try:
            search = self._search(restricted(self._problem, members))
        except AllocationError as error:
            # Preparation failed before any device was checked: for one request, or for all together.
            if in_conflict:
                self._error = str(error)
            for member in requests:
                yield member, tuple(self._unprepared(member, in_conflict, error.problem))
            return
        error_text = search.observe()
        if in_conflict:
            self._error = error_text
        for member, request in zip(requests, search.requests, strict=True):
            reports = {each.request: each for each in search.reports(request, in_conflict)}
            for alternative in search.unreached(request):
                label = alternative.label
                alone = self._observed_alternative(members, member, alternative, in_conflict)
                reports[label] = alone or reports[label]._replace(problem=_NOT_REACHED)
            for skipped in request.skipped:
                reports[skipped.label] = RequestReport(
                    str(skipped.claim), skipped.label, 1, 0, (), in_conflict, skipped.reason
                )
            yield member, tuple(reports[label] for label, _ in _wanted(request.request))

    def _observed_alternative(
        self,
        members: Sequence[Member],
        member: Member,
        alternative: Alternative,
        in_conflict: bool,
    ) -> RequestReport | None:
        """How far an alternative gets that was not reached after others; None if it is not reached alone."""
        problem = with_alternative(self._problem, member, alternative.subrequest)
        try:
            search = self._search(restricted(problem, members))
        except AllocationError:
            return None
        search.observe()
        for request in search.requests:
            if (request.alternatives[0].claim.key, request.request.name) == (
                alternative.claim.key,
                alternative.request,
            ) and not any(search.unreached(request)):
                return next(search.reports(request, in_conflict))
        return None

    def _search(self, problem: AllocationProblem) -> _ObservedSearch:
        view = problem.inventory.view(problem.node, self._meter)
        gates = problem.inventory.gates
        rules = CandidateRules(
            problem.node, view, problem.ledger, gates, self._meter, problem.avoided
        )
        claims = prepare_claims(problem, rules)
        requests = [request for claim in claims for request in claim.requests]
        return _ObservedSearch(AllocationAttempt(rules, len(claims)), requests)

    def _unprepared(
        self, member: Member, in_conflict: bool, problem: str
    ) -> Iterator[RequestReport]:
        claim = claim_of(self._problem, member)
        request = self._problem.claims[member.claim].spec.devices.requests[member.position]
        for name, count in _wanted(request):
            yield RequestReport(claim, name, count, 0, (), in_conflict, problem)

    # --- the conflict ---

    def _conflict(
        self,
        found: ConflictSet,
        reports: dict[Member, tuple[RequestReport, ...]],
        sides: dict[Member, tuple[ConstraintSide, ...]],
    ) -> Conflict:
        problem = self._problem
        requests = [member for member in found.members if not member.is_constraint]
        short = sum(
            min((report.short for report in reports[member]), default=0)
            for member in requests
            if member in reports
        )
        return Conflict(
            found.proof,
            tuple(
                ConflictingRequest(claim_of(problem, member), request_name(problem, member))
                for member in requests
            ),
            tuple(
                self._constraint(member, sides.get(member, ()))
                for member in found.members
                if member.is_constraint
            ),
            max(short, 1) if found.proof is not Proof.UNPROVEN else short,
        )

    def _constraint(
        self, member: Member, sides: tuple[ConstraintSide, ...]
    ) -> ConflictingConstraint:
        constraint = constraint_of(self._problem, member)
        return ConflictingConstraint(
            claim_of(self._problem, member),
            member.position,
            constraint.match_attribute or constraint.distinct_attribute or "",
            constraint.match_attribute is not None,
            sides,
        )

    def _sides(self, constraint: Member, conflicting: Sequence[Member]) -> Iterator[ConstraintSide]:
        """For each request that the constraint covers: the values of the devices that it can get alone."""
        for member in conflicting:
            if member.is_constraint or not concerns(self._problem, constraint, member):
                continue
            try:
                search = self._search(restricted(self._problem, (member, constraint)))
            except AllocationError:
                continue
            for alternative in search.requests[0].alternatives:
                yield self._side(search.attempt, alternative)

    def _side(self, attempt: AllocationAttempt, alternative: Alternative) -> ConstraintSide:
        values: dict[TypedValue, list[str]] = {}
        without = []
        if not alternative.constraints:
            return ConstraintSide(alternative.label)
        constraint = alternative.constraints[0]
        alternative.constraints = ()
        for index, device in enumerate(attempt.devices):
            self._meter.spend(_REASON_WORK)
            try:
                if attempt.check(alternative, index) is None:
                    continue
                value = attempt.rules.attribute(constraint, alternative, index)
            except AllocationError:
                continue
            if value is None:
                without.append(str(device.id))
            else:
                values.setdefault(typed_set(value), []).append(str(device.id))
        return ConstraintSide(
            alternative.label,
            tuple(SideValue(value, tuple(devices)) for value, devices in values.items()),
            tuple(without),
        )


def _wanted(request: DeviceRequest) -> Iterator[tuple[str, int]]:
    """The request, or its alternatives, and how many devices each asks for."""
    if request.exactly is not None:
        yield request.name, request.exactly.count
    for alternative in request.first_available:
        yield f"{request.name}/{alternative.name}", alternative.count


class _Observation(NamedTuple):
    found: int
    refusals: tuple[Refusal, ...]


class _ObservedSearch(BacktrackingSearch):
    """A search that records why it backtracks."""

    def __init__(self, attempt: AllocationAttempt, requests: Sequence[PreparedRequest]) -> None:
        super().__init__(attempt, requests)
        self._best: dict[Alternative, _Observation] = {}
        self._satisfied: set[Alternative] = set()

    def _enter(self, request: int) -> bool:
        if request:
            self._satisfied.update(self.selected[:request])
        return super()._enter(request)

    def _fail(self, frame: SearchFrame) -> None:
        self._note(frame)
        super()._fail(frame)

    def observe(self) -> str:
        """Search until the steps are used up; returns the error that ended it, if any."""
        error_text = ""
        try:
            self.solve(_MAX_OBSERVED_STEPS)
        except AllocationError as error:
            error_text = str(error)
            if self.stack:
                self._note(self.stack[-1])
        except StepsExhaustedError:
            pass
        self.unwind()
        return error_text

    def unreached(self, request: PreparedRequest) -> Iterator[Alternative]:
        """Alternatives that were neither satisfied nor given up before the steps ended."""
        for alternative in request.alternatives:
            if alternative not in self._satisfied and alternative not in self._best:
                yield alternative

    def _note(self, frame: SearchFrame) -> None:
        alternative = frame.alternative
        if alternative is None or alternative in self._satisfied:
            return
        best = self._best.get(alternative)
        if best is None or best.found < frame.nth:
            self._best[alternative] = _Observation(frame.nth, self._refusals(alternative))

    def _refusals(self, alternative: Alternative) -> tuple[Refusal, ...]:
        """Why devices are refused now, including those the alternative has already."""
        attempt = self.attempt
        devices_by_reason: dict[AnyReason, list[DeviceId]] = {}
        for index, device in enumerate(attempt.devices):
            self._meter.spend(_REASON_WORK)
            reason = refusal(attempt, alternative, index)
            if reason is not None:
                devices_by_reason.setdefault(reason, []).append(device.id)
        refusals = []
        for reason, devices in devices_by_reason.items():
            self._meter.spend(1)
            refusals.append(Refusal(reason, tuple(devices)))
        return tuple(refusals)

    def reports(self, request: PreparedRequest, in_conflict: bool) -> Iterator[RequestReport]:
        """One report per alternative; those never reached are examined without picks."""
        for alternative in request.alternatives:
            if alternative in self._satisfied:
                observed = _Observation(alternative.count, ())
            else:
                observed = self._best.get(alternative) or _Observation(
                    0, self._refusals(alternative)
                )
            yield RequestReport(
                str(alternative.claim.key),
                alternative.label,
                # Mode All needs at least one device.
                max(alternative.count, 1) if alternative.wants_all else alternative.count,
                observed.found,
                observed.refusals,
                in_conflict,
            )
