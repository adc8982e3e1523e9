"""Backtracking search: claims, requests and devices in order; the first solution wins.

    request 0            request 1                    request 2
    ┌────────┐  fits    ┌────────────┐  alternative  ┌────────┐
    │ device ├─────────▶│   choice   ├──────────────▶│ device ├──▶ … all satisfied
    └────────┘          └────────────┘               └───┬────┘
        ▲                     ▲                          │ no device left
        └─────────────────────┴──────────────────────────┘ back to a choice in the conflict set

Every box is a frame on an explicit stack: memory limits the depth, not Python. The search starts as
Kubernetes does, without lookahead, which solves most problems. After many failures `forward_checking`
resumes from the same point and prunes what cannot succeed. Pruning never changes which solution is
first, and never adds a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.allocation.errors import StepsExhaustedError, TooManyFailuresError
from allot.allocation.requests import Alternative, PreparedClaim, PreparedRequest
from allot.allocation.search.attempt import TAKEN, AllocationAttempt, Pick
from allot.api.resource import MAX_RESULTS

_STEP_WORK: Final = 8
"""Units of work of a step and of backtracking, not counting the devices that are checked."""
_SKIP_WORK: Final = 4
"""Units of work to pass over the devices of a slice that are known to be refused."""
CHECKS_AT_ONCE: Final = 32
"""How many devices are checked before their work is metered."""


class SearchFrame:
    """A choice point: which alternative of a request, or which device for an alternative."""

    __slots__ = ("alternative", "exceeded", "nth", "placed", "position", "request")

    def __init__(self, request: int, alternative: Alternative | None, nth: int, start: int) -> None:
        self.request = request
        self.alternative = alternative
        """None while the alternative itself is chosen."""
        self.nth = nth
        """How many devices the alternative has so far."""
        self.position = start
        """What to try next: an index into the alternatives, the candidates or all devices."""
        self.placed = False
        self.exceeded = 0
        """How many alternatives failed because the claim would exceed its device limit."""


class BacktrackingSearch:
    """Finds the first solution in Kubernetes' order."""

    def __init__(self, attempt: AllocationAttempt, requests: Sequence[PreparedRequest]) -> None:
        self.attempt = attempt
        self.requests = requests
        self.selected: list[Alternative] = [request.alternatives[0] for request in requests]
        self.steps = 0
        self.failures = 0
        """How often a frame had nothing left to try."""
        self.requests_satisfied = 0
        self.stack: list[SearchFrame] = []
        self.has_begun = False
        self._meter = attempt.rules.meter

    def solve(self, max_steps: int, max_failures: int | None = None) -> bool:
        """Whether there is a solution; the attempt then holds it.

        `StepsExhaustedError` if `max_steps` is not enough, `TooManyFailuresError` after more than
        `max_failures` failures.
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
            self._meter.spend(_STEP_WORK)
            if frame.alternative is None:
                goes_on = self._choose_alternative(frame)
            else:
                goes_on = self._choose_device(frame, frame.alternative)
            if not goes_on:
                return True
        return False

    def unwind(self) -> None:
        """Undo all picks."""
        while self.stack:
            self._pop()

    # --- descending; False once every request is satisfied ---

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
        """Start on the devices of an alternative; False if it needs none."""
        self.selected[request] = alternative
        if alternative.count <= 0 and not alternative.wants_all:
            return False
        self.stack.append(self._frame(request, alternative, 0, 0))
        return True

    def _choose_alternative(self, frame: SearchFrame) -> bool:
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

    def _choose_device(self, frame: SearchFrame, alternative: Alternative) -> bool:
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
        # Combinations, not permutations: continue after the last picked device.
        self.stack.append(self._frame(frame.request, alternative, nth, frame.position))
        return True

    def _next_pick(self, frame: SearchFrame, alternative: Alternative) -> Pick | None:
        attempt = self.attempt
        if alternative.wants_all:
            # Mode All: its devices are fixed, so one that cannot be taken has no substitute.
            if frame.position != frame.nth or frame.nth >= alternative.count:
                return None
            frame.position += 1
            return attempt.check_required(alternative, alternative.all_devices[frame.nth])
        examine, dedicated, is_admin = attempt.examine, attempt.dedicated, alternative.is_admin
        refused_from, devices = attempt.rules.refused_from, attempt.devices
        start, end = frame.position, len(devices)
        while start < end:
            # Not again where a search goes on in the middle of a slice.
            is_first_look = start != frame.position or devices[start].number == 0
            if is_first_look and (refused := refused_from(alternative, devices, start)):
                self._meter.spend(_SKIP_WORK)
                start += refused
                continue
            stop = min(start + CHECKS_AT_ONCE, end)
            for index in range(start, stop):
                if dedicated[index] == TAKEN and not is_admin:
                    continue
                found = examine(alternative, index)
                if isinstance(found, Pick):
                    frame.position = index + 1
                    return found
            self._meter.spend(CHECKS_AT_ONCE * (4 + 2 * len(alternative.constraints)))
            start = stop
        return None

    # --- backtracking ---

    def _is_dead_end(self, frame: SearchFrame) -> bool:
        """Whether nothing can succeed here; if so, the search has backtracked."""
        return False

    def _fail(self, frame: SearchFrame) -> None:
        """Nothing is left to try here: backtrack to the previous choice."""
        self.failures += 1
        self._pop()

    def _exceeds_limit(self, frame: SearchFrame, alternative: Alternative) -> bool:
        results = self.attempt.results_by_claim[alternative.claim.index]
        return results + alternative.count - frame.nth > MAX_RESULTS

    def _exceed_limit(self, frame: SearchFrame) -> None:
        """Too many devices for one claim: only another alternative of the same claim can help."""
        claim = self._claim(frame)
        self.failures += 1
        self._pop()
        while self.stack and self._claim(self.stack[-1]) is claim:
            choice = self.stack[-1]
            if choice.alternative is None:
                choice.exceeded += 1
                return
            self._pop()

    def _claim(self, frame: SearchFrame) -> PreparedClaim:
        return self.requests[frame.request].alternatives[0].claim

    def _pop(self) -> None:
        if self.stack[-1].placed:
            self._undo()
        self.stack.pop()

    def _place(self, pick: Pick) -> None:
        self.attempt.place(pick)

    def _undo(self) -> None:
        self.attempt.undo()

    def _frame(
        self, request: int, alternative: Alternative | None, nth: int, start: int
    ) -> SearchFrame:
        return SearchFrame(request, alternative, nth, start)
