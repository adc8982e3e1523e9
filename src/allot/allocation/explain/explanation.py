"""Explanation: why claims do not fit on a node.

Allocation itself records nothing. For an explanation, `conflicts` finds what cannot be satisfied together; then an
observed search runs on that conflict and keeps, for every alternative at its best moment (most devices found), the
reason why each other device is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from allot.allocation.errors import AllocationError, ExpressionError
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
from allot.allocation.explain.observed_search import REASON_WORK, ObservedSearch
from allot.allocation.explain.reasons import ExpressionFailed, TypedValue
from allot.allocation.explain.refusals import typed_set
from allot.allocation.explain.subproblems import (
    Member,
    claim_of,
    concerns,
    constraint_of,
    is_all,
    members_of,
    request_name,
    restricted,
    with_alternative,
    with_one_device,
)
from allot.allocation.inventory import NodeView
from allot.allocation.problem import AllocationProblem, StepBudget
from allot.allocation.requests import Alternative, prepare_claims
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.candidates import CandidateRules
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

_NOT_REACHED: Final = "not tried: the search for the others took all steps"


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
                yield member, tuple(self._unprepared(member, in_conflict, error))
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
                    str(skipped.claim), skipped.label, 1, 0, (), in_conflict, skipped.problem
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

    def _search(self, problem: AllocationProblem) -> ObservedSearch:
        view = problem.inventory.view(problem.node, self._meter)
        gates = problem.inventory.gates
        rules = CandidateRules(
            problem.node, view, problem.ledger, gates, self._meter, problem.avoided
        )
        claims = prepare_claims(problem, rules)
        requests = [request for claim in claims for request in claim.requests]
        return ObservedSearch(AllocationAttempt(rules, len(claims)), requests)

    def _unprepared(
        self, member: Member, in_conflict: bool, error: AllocationError
    ) -> Iterator[RequestReport]:
        claim = claim_of(self._problem, member)
        request = self._problem.claims[member.claim].spec.devices.requests[member.position]
        for name, count in _wanted(request):
            alternative = with_alternative(self._problem, member, name.partition("/")[2])
            problem = error.problem
            refusals: tuple[Refusal, ...] = ()
            try:
                search = self._search(restricted(alternative, (member,)))
            except AllocationError as own:
                if isinstance(own, ExpressionError):
                    refusals = self._errors_of_all(alternative, member)
                problem = "" if refusals else own.problem
            else:
                if request.first_available:
                    search.observe()
                    yield next(search.reports(search.requests[0], in_conflict))
                    continue
            yield RequestReport(claim, name, count, 0, refusals, in_conflict, problem)

    def _errors_of_all(self, problem: AllocationProblem, member: Member) -> tuple[Refusal, ...]:
        """For mode All: the devices on which an expression fails."""
        try:
            search = self._search(restricted(with_one_device(problem, member), (member,)))
        except AllocationError:
            return ()
        report = next(search.reports(search.requests[0], in_conflict=False))
        return tuple(each for each in report.refusals if isinstance(each.reason, ExpressionFailed))

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
                if alternative.constraints:  # others are not covered by the constraint
                    yield self._side(search.attempt, alternative)

    def _side(self, attempt: AllocationAttempt, alternative: Alternative) -> ConstraintSide:
        values: dict[TypedValue, list[str]] = {}
        without = []
        constraint = alternative.constraints[0]
        alternative.constraints = ()
        for index, device in enumerate(attempt.devices):
            self._meter.spend(REASON_WORK)
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
            constraint.attribute not in alternative.derived
            and any(
                each.name == constraint.attribute for each in alternative.spec.derived_attributes
            ),
        )


def _wanted(request: DeviceRequest) -> Iterator[tuple[str, int]]:
    """The request, or its alternatives, and how many devices each asks for."""
    if request.exactly is not None:
        yield request.name, _count(request.exactly)
    for alternative in request.first_available:
        yield f"{request.name}/{alternative.name}", _count(alternative)


def _count(spec: ExactDeviceRequest | DeviceSubRequest) -> int:
    """0 for mode All."""
    return 0 if is_all(spec) else spec.count
