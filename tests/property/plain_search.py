"""The search of Kubernetes v1.38 as it is, recursive and without lookahead, to count its steps.

A step is an invocation of its innermost function: one for each claim, request, alternative and device that is begun,
and one for each of them that is done.
"""

from __future__ import annotations

from allot.allocation import AllocationProblem
from allot.allocation.errors import AllocationError
from allot.allocation.requests import Alternative, prepare_claims
from allot.allocation.search.attempt import AllocationAttempt, Pick
from allot.allocation.search.candidates import CandidateRules
from allot.api.resource import MAX_RESULTS


class LimitExceededError(Exception):
    """The claim would get too many devices."""


class TooManyStepsError(Exception):
    """The search takes longer than the test is willing to wait."""


class PlainSearch:
    def __init__(self, problem: AllocationProblem, max_steps: int) -> None:
        view = problem.inventory.view(problem.node)
        rules = CandidateRules(problem.node, view, problem.ledger, problem.inventory.gates)
        self.claims = prepare_claims(problem, rules)
        self.attempt = AllocationAttempt(rules, len(self.claims))
        self.max_steps = max_steps
        self.steps = 0

    def satisfied(self, claim: int = 0, request: int = 0) -> bool:
        self._count()
        if claim >= len(self.claims):
            return True
        requests = self.claims[claim].requests
        if request >= len(requests):
            try:
                return self.satisfied(claim + 1)
            except LimitExceededError:
                return False
        alternatives = requests[request].alternatives
        if not requests[request].request.first_available:
            return self._filled(claim, request, alternatives[0], 0, 0)
        all_exceeded = True
        for alternative in alternatives:
            self._count()
            try:
                if self._filled(claim, request, alternative, 0, 0):
                    return True
            except LimitExceededError:
                continue
            all_exceeded = False
        if all_exceeded:
            raise LimitExceededError
        return False

    def _filled(
        self, claim: int, request: int, alternative: Alternative, nth: int, start: int
    ) -> bool:
        if alternative.wants_all and not alternative.all_devices:
            return False
        if nth >= alternative.count:
            return self.satisfied(claim, request + 1)
        if self.attempt.results_by_claim[claim] + alternative.count - nth > MAX_RESULTS:
            raise LimitExceededError
        if alternative.wants_all:
            pick = self.attempt.check_required(alternative, alternative.all_devices[nth])
            return pick is not None and self._goes_on(pick, claim, request, nth, 0)
        for index in range(start, len(self.attempt.devices)):
            pick = self.attempt.check(alternative, index)
            if pick is not None and self._goes_on(pick, claim, request, nth, index + 1):
                return True
        return False

    def _goes_on(self, pick: Pick, claim: int, request: int, nth: int, start: int) -> bool:
        self.attempt.place(pick)
        done = False
        try:
            self._count()
            done = self._filled(claim, request, pick.alternative, nth + 1, start)
        finally:
            if not done:
                self.attempt.undo()
        return done

    def _count(self) -> None:
        self.steps += 1
        if self.steps > self.max_steps:
            raise TooManyStepsError


Picked = list[tuple[str, str]]


def plain_answer(problem: AllocationProblem, max_steps: int) -> tuple[Picked | str | None, int]:
    """Devices by request, or the error, or None if nothing fits; and the steps that took.

    `TooManyStepsError` if it takes more than `max_steps`.
    """
    search: PlainSearch | None = None
    try:
        search = PlainSearch(problem, max_steps)
        if not search.satisfied():
            return None, search.steps
    except AllocationError as error:
        return str(error), search.steps if search is not None else 0
    devices = search.attempt.devices
    picks = search.attempt.picks
    return [(pick.alternative.label, str(devices[pick.index].id)) for pick in picks], search.steps
