"""The search: claims in order, requests in order, devices in order; the first solution wins.

    request 0            request 1                    request 2
    ┌────────┐  fits    ┌────────────┐  alternative  ┌────────┐
    │ device ├─────────▶│   choice   ├──────────────▶│ device ├──▶ … all satisfied
    └────────┘          └────────────┘               └───┬────┘
        ▲                     ▲                          │ no device left
        └─────────────────────┴──────────────────────────┘ back to what is to blame

Every box is a frame on a stack of our own, so depth is limited by memory alone. First the search
runs as Kubernetes does, without looking ahead: most problems are solved on the way. When it has
gone back more often than that is worth, `foresight` continues from where it is: it knows what cannot
succeed and skips it. Skipping never changes which solution is first, and never adds a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.allocation.errors import StepsExhaustedError, TooManyFailuresError
from allot.allocation.requests import Alternative, PreparedClaim, PreparedRequest
from allot.allocation.search.attempt import TAKEN, Attempt, Pick
from allot.api.resource import MAX_RESULTS

STEP_WORK: Final = 8
"""Units of work of a step, and of going back, without the devices that are looked at on the way."""
CHECKS_AT_ONCE: Final = 32
"""How many devices are checked before their work is counted."""


class Frame:
    """A decision: which alternative of a request, or which device for an alternative."""

    __slots__ = ("alternative", "exceeded", "nth", "placed", "position", "request")

    def __init__(self, request: int, alternative: Alternative | None, nth: int, start: int) -> None:
        self.request = request
        self.alternative = alternative
        """None where the alternative itself is what is decided."""
        self.nth = nth
        """How many devices the alternative has already."""
        self.position = start
        """What is tried next: an index into the alternatives, the candidates or all devices."""
        self.placed = False
        self.exceeded = 0
        """How many of the alternatives ended because the claim would have got too many devices."""


class Search:
    """Finds the first solution in Kubernetes' order."""

    def __init__(self, attempt: Attempt, requests: Sequence[PreparedRequest]) -> None:
        self.attempt = attempt
        self.requests = requests
        self.selected: list[Alternative] = [request.alternatives[0] for request in requests]
        self.steps = 0
        self.failures = 0
        """How often there was nothing left to try somewhere."""
        self.requests_satisfied = 0
        self.stack: list[Frame] = []
        self.has_begun = False
        self._meter = attempt.rules.meter

    def solve(self, max_steps: int, max_failures: int | None = None) -> bool:
        """Whether there is a solution; if so, it is what the attempt now holds.

        `StepsExhaustedError` if `max_steps` did not suffice to find out, `TooManyFailuresError` if
        the search had to go back more than `max_failures` times.
        """
        if not self.has_begun:
            self.has_begun = True
            if not self._enter(0):
                return True
        while self.stack:
            if self.steps >= max_steps:
                raise StepsExhaustedError(self.steps)
            if max_failures is not None and self.failures > max_failures:
                raise TooManyFailuresError
            frame = self.stack[-1]
            self._meter.spend(STEP_WORK)
            if frame.alternative is None:
                goes_on = self._choose_alternative(frame)
            else:
                goes_on = self._choose_device(frame, frame.alternative)
            if not goes_on:
                return True
        return False

    def unwind(self) -> None:
        """Undo all that is placed."""
        while self.stack:
            self._pop()

    # --- going deeper; the answer is False once everything is satisfied ---

    def _enter(self, request: int) -> bool:
        while request < len(self.requests):
            self.requests_satisfied = max(self.requests_satisfied, request)
            prepared = self.requests[request]
            if prepared.request.first_available:
                self.stack.append(self._frame(request, None, 0, 0))
                return True
            if self._begin(request, prepared.alternatives[0]):
                return True
            request += 1
        return False

    def _begin(self, request: int, alternative: Alternative) -> bool:
        """Begin to look for the devices of an alternative; False if it needs none."""
        self.selected[request] = alternative
        if alternative.count <= 0 and not alternative.wants_all:
            return False
        self.stack.append(self._frame(request, alternative, 0, 0))
        return True

    def _choose_alternative(self, frame: Frame) -> bool:
        alternatives = self.requests[frame.request].alternatives
        if self._is_dead_end(frame):
            return True
        if frame.position >= len(alternatives):
            if frame.exceeded == len(alternatives):
                self._exceed_limit(frame)
            else:
                self._fail(frame)
            return True
        # KEP-4816: alternatives are tried in order.
        alternative = alternatives[frame.position]
        self._meter.alternative = alternative
        frame.position += 1
        self.steps += 1
        return self._begin(frame.request, alternative) or self._enter(frame.request + 1)

    def _choose_device(self, frame: Frame, alternative: Alternative) -> bool:
        self._meter.alternative = alternative
        if frame.placed:
            frame.placed = False
            self._undo()
        elif self._exceeds_limit(frame, alternative):
            self._exceed_limit(frame)
            return True
        elif self._is_dead_end(frame):
            return True
        pick = self._next_pick(frame, alternative)
        if pick is None:
            self._fail(frame)
            return True
        self._place(pick)
        frame.placed = True
        self.steps += 1
        nth = frame.nth + 1
        if nth >= alternative.count:
            return self._enter(frame.request + 1)
        # Combinations, not permutations: go on after the device picked last.
        self.stack.append(self._frame(frame.request, alternative, nth, frame.position))
        return True

    def _next_pick(self, frame: Frame, alternative: Alternative) -> Pick | None:
        attempt = self.attempt
        if alternative.wants_all:
            # Its devices are known; if one of them cannot be had, no other will do.
            if frame.position != frame.nth or frame.nth >= alternative.count:
                return None
            frame.position += 1
            return attempt.check_required(alternative, alternative.all_devices[frame.nth])
        examine, dedicated, is_admin = attempt.examine, attempt.dedicated, alternative.is_admin
        end = len(attempt.devices)
        for start in range(frame.position, end, CHECKS_AT_ONCE):
            for index in range(start, min(start + CHECKS_AT_ONCE, end)):
                if dedicated[index] == TAKEN and not is_admin:
                    continue
                found = examine(alternative, index)
                if isinstance(found, Pick):
                    frame.position = index + 1
                    return found
            self._meter.spend(CHECKS_AT_ONCE * (4 + 2 * len(alternative.constraints)))
        return None

    # --- going back ---

    def _is_dead_end(self, frame: Frame) -> bool:
        """Whether it is known that nothing can succeed here; if so, the search has gone back."""
        return False

    def _fail(self, frame: Frame) -> None:
        """Nothing is left to try here: go back to the decision before."""
        self.failures += 1
        self._pop()

    def _exceeds_limit(self, frame: Frame, alternative: Alternative) -> bool:
        results = self.attempt.results_by_claim[alternative.claim.index]
        return results + alternative.count - frame.nth > MAX_RESULTS

    def _exceed_limit(self, frame: Frame) -> None:
        """Too many devices for one claim: no other device can help, only another alternative of the same claim."""
        claim = self._claim(frame)
        self.failures += 1
        self._pop()
        while self.stack and self._claim(self.stack[-1]) is claim:
            choice = self.stack[-1]
            if choice.alternative is None:
                choice.exceeded += 1
                return
            self._pop()

    def _claim(self, frame: Frame) -> PreparedClaim:
        return self.requests[frame.request].alternatives[0].claim

    def _pop(self) -> None:
        if self.stack[-1].placed:
            self._undo()
        self.stack.pop()

    def _place(self, pick: Pick) -> None:
        self.attempt.place(pick)

    def _undo(self) -> None:
        self.attempt.undo()

    def _frame(self, request: int, alternative: Alternative | None, nth: int, start: int) -> Frame:
        return Frame(request, alternative, nth, start)
