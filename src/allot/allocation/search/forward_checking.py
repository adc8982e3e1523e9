"""Foresight: the search goes on, but without trying what cannot succeed.

Four ways to know, beside the bounds that counting gives:

- *Domains*: devices that were refused at the outset are not looked at.
- *Interchangeable devices*: when one of several that are alike has failed, so would the others.
- *Dead ends*: where the rest of the search depends on the same things as it did at an earlier dead
  end, it ends the same way. Only what the rest can feel is compared (`state`).
- *Blame*: a decision that had no part in a failure is not revisited (conflict-directed
  backjumping, `blame`).

An error is an answer too, and nothing is skipped that could have ended in one. Counting goes only
up to the first request that can fail: if those before it cannot be satisfied, the search never gets
there. Blame jumps over a decision only if nothing from there down to the deepest request that had
a part in the failure can fail. The other rules skip what mirrors something that was tried in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Final

from allot.allocation.constraints import Constraint
from allot.allocation.requests import Alternative, PreparedRequest
from allot.allocation.search.attempt import Attempt, Pick
from allot.allocation.search.backtracking import CHECKS_AT_ONCE, Frame, Search
from allot.allocation.search.bounds import Bounds, Need
from allot.allocation.search.conflict_sets import Blame
from allot.allocation.search.domains import Outlook, Token
from allot.allocation.search.state import StateAhead
from allot.api.resource import MAX_RESULTS

_FRAMES_ALERT: Final = 64
"""For how many frames after a failure it is worth looking for the next one."""
_MAX_DEAD_ENDS: Final = 16_384
"""How many dead ends are remembered; the oldest are forgotten first."""
_COUNTED_AT_FIRST: Final = 100_000
_COUNTED_PER_STEP: Final = 100
_COUNTED_FOR_A_PROOF: Final = 16
"""How many devices may be counted: to begin with, for each step, and for each one counted in a proof."""


class MindfulFrame(Frame):
    """A frame that remembers what was tried and who is to blame."""

    __slots__ = (
        "blame",
        "choices",
        "deepest",
        "entered",
        "felt",
        "last",
        "signature",
        "tried",
        "values_left",
    )

    def __init__(
        self, request: int, alternative: Alternative | None, nth: int, start: int, choices: int
    ) -> None:
        super().__init__(request, alternative, nth, start)
        self.choices = choices
        """The frames that chose an alternative for the same claim."""
        self.entered = False
        self.blame = 0
        self.deepest = request
        """The last request that had a part in what failed here."""
        self.last: int | None = None
        self.tried: dict[Hashable, int] = {}
        self.signature: Hashable = None
        self.felt = 0
        self.values_left: dict[Constraint, frozenset[Token]] = {}


class ForesightedSearch(Search):
    """Finds the same first solution as `Search`, usually with far fewer steps, and never with more."""

    def __init__(
        self, attempt: Attempt, requests: Sequence[PreparedRequest], before: Search
    ) -> None:
        """`before` is the search that this one takes over from."""
        super().__init__(attempt, requests)
        self._before = before
        self.steps = before.steps
        self.requests_satisfied = before.requests_satisfied
        self._dead_ends: dict[Hashable, int] = {}  # and how deep the search went from there
        self._signatures: deque[Hashable] = deque()  # of dead ends, the oldest first
        self._worth_counting = _COUNTED_AT_FIRST
        self._alert = _FRAMES_ALERT

    def take_over(self) -> None:
        """Look ahead from where the other search is, frame by frame from the first one."""
        before = self._before
        frames = before.stack.copy()
        picks = self.attempt.picks.copy()
        before.unwind()
        self.has_begun = before.has_begun
        self._outlook = Outlook(self.attempt, self.requests)
        self._bounds = Bounds(self.attempt, self._outlook)
        self._blame = Blame(self.attempt)
        self._ahead = StateAhead(self.attempt, self._outlook, self._blame)
        self._last_in_claim = _last_in_claim(self.requests)
        placed = iter(picks)
        for number, old in enumerate(frames):
            is_last = number == len(frames) - 1
            # The first frame tells whether there is any solution; near the last one is what failed.
            self._alert = int(number == 0 or len(frames) - number <= _FRAMES_ALERT)
            if self._is_abandoned(old, next(placed) if old.placed else None, is_last):
                break
        self._alert = _FRAMES_ALERT

    def _is_abandoned(self, old: Frame, pick: Pick | None, is_last: bool) -> bool:
        """Put a frame of the other search in place; whether it is a dead end, and the search has gone back."""
        self._meter.spend(_TAKE_OVER_WORK)
        start = 0
        if old.nth and self.stack:
            start = self.stack[-1].position
        frame = self._frame(old.request, old.alternative, old.nth, start)
        self.stack.append(frame)
        everything = (1 << (len(self.stack) - 1)) - 1
        if old.alternative is None:
            if self._is_dead_end(frame):
                return True
            frame.position = old.position
            frame.exceeded = old.exceeded
            if old.position:
                self.selected[old.request] = self.requests[old.request].alternatives[
                    old.position - 1
                ]
            if old.position > (0 if is_last else 1):
                frame.blame, frame.deepest = everything, len(self.requests) - 1
            return False
        self._meter.alternative = old.alternative
        self.selected[old.request] = old.alternative
        if self._exceeds_limit(frame, old.alternative):
            return False
        if self._is_dead_end(frame):
            return True
        if pick is None:
            return False
        if self._replay(frame, old.alternative, pick) or is_last:
            # What failed here failed without anything to blame for it.
            frame.blame, frame.deepest = everything, len(self.requests) - 1
        return False

    def _replay(self, frame: MindfulFrame, alternative: Alternative, pick: Pick) -> bool:
        """Place the device that the other search has here; whether others were tried before it."""
        failed = False
        if alternative.wants_all:
            frame.position += 1
        else:
            indices = self._outlook.domains[alternative].indices
            at = bisect_left(indices, pick.index)
            for position in range(frame.position, at):
                index = indices[position]
                self._meter.spend(_TAKE_OVER_WORK)
                if self.attempt.check(alternative, index) is not None:
                    frame.tried.setdefault(self._likeness(frame, index), index)
                    failed = True
                else:
                    frame.blame |= self._blame.of_refusal(alternative, index, self._earlier())
            frame.position = at + 1
            frame.last = pick.index
        self._place(pick)
        frame.placed = True
        return failed

    def _frame(
        self, request: int, alternative: Alternative | None, nth: int, start: int
    ) -> MindfulFrame:
        choices = 0
        if self.stack:
            above = self.stack[-1]
            assert isinstance(above, MindfulFrame)
            claim = self.requests[request].alternatives[0].claim
            if self._claim(above) is claim:
                choices = above.choices
                if above.alternative is None:
                    choices |= 1 << (len(self.stack) - 1)
        return MindfulFrame(request, alternative, nth, start, choices)

    def _earlier(self) -> int:
        """All frames below the last one."""
        return (1 << (len(self.stack) - 1)) - 1

    # --- before something is tried ---

    def _is_dead_end(self, frame: Frame) -> bool:
        assert isinstance(frame, MindfulFrame)
        if frame.entered:
            return False
        frame.entered = True
        if not self._alert:
            return False
        self._alert -= 1
        if self._is_limit_ahead(frame):
            return True
        frame.signature, frame.felt = self._signature(frame)
        deepest = self._dead_ends.get(frame.signature)
        if deepest is None:
            end = self._outlook.end_of_safety(frame.request, frame.alternative)
            if end == frame.request:
                return False
            if not self._is_impossible(frame, end):
                return False
            deepest = end - 1
        frame.deepest = max(frame.deepest, deepest)
        frame.blame |= frame.felt
        self._fail(frame)
        return True

    def _is_impossible(self, frame: MindfulFrame, end: int) -> bool:
        """Whether counting proves that the requests before `end` cannot be satisfied.

        Counting is worth a part of the time, and more where it has proven something.
        """
        bounds = self._bounds
        if bounds.work > self._worth_counting + _COUNTED_PER_STEP * self.steps:
            return False
        alternative = frame.alternative
        need = None
        if alternative is not None:
            need = Need(alternative, alternative.count - frame.nth, frame.position)
        before = bounds.work
        values_left = bounds.values_left(frame.request, need, end)
        if values_left is None:
            self._worth_counting += _COUNTED_FOR_A_PROOF * (bounds.work - before)
            return True
        frame.values_left = values_left
        return False

    def _is_limit_ahead(self, frame: MindfulFrame) -> bool:
        """Whether the claim will get too many devices, whichever alternatives are chosen from here on."""
        claim = self._claim(frame)
        if not claim.may_exceed_limit:
            return False
        last = self._last_in_claim[frame.request]
        if self._outlook.end_of_safety(frame.request, frame.alternative) <= last:
            return False
        count = self.attempt.results_by_claim[claim.index]
        begin = frame.request
        if frame.alternative is not None:
            count += frame.alternative.count - frame.nth
            begin += 1
        for request in self.requests[begin : last + 1]:
            count += min(alternative.count for alternative in request.alternatives)
        if count <= MAX_RESULTS:
            return False
        frame.blame |= frame.choices
        frame.deepest = max(frame.deepest, last)
        self._fail(frame)
        return True

    def _next_pick(self, frame: Frame, alternative: Alternative) -> Pick | None:
        assert isinstance(frame, MindfulFrame)
        earlier = self._earlier()
        if alternative.wants_all:
            pick = super()._next_pick(frame, alternative)
            if pick is None and frame.nth < alternative.count:
                index = alternative.all_devices[frame.nth]
                frame.blame |= self._blame.of_refusal(alternative, index, earlier)
            return pick
        if frame.last is not None:
            frame.tried.setdefault(self._likeness(frame, frame.last), frame.last)
        domain = self._outlook.domains[alternative]
        wanted = [
            (tokens, frame.values_left[constraint])
            for constraint, tokens in zip(alternative.constraints, domain.tokens, strict=True)
            if constraint in frame.values_left
        ]
        last_safe = self._outlook.end_of_safety(frame.request, alternative) - 1
        check, blame = self.attempt.check, self._blame
        indices = domain.indices
        for position in range(frame.position, len(indices)):
            if not position % CHECKS_AT_ONCE:
                self._meter.spend(CHECKS_AT_ONCE * (4 + 2 * len(alternative.constraints)))
            index = indices[position]
            if any(tokens[index].isdisjoint(values) for tokens, values in wanted):
                frame.blame |= frame.felt
                frame.deepest = max(frame.deepest, last_safe)
                continue
            twin = frame.tried.get(self._likeness(frame, index)) if frame.tried else None
            if twin is not None:
                frame.blame |= blame.of_use(index) | blame.of_use(twin)
                continue
            pick = check(alternative, index)
            if pick is not None:
                frame.position = position + 1
                frame.last = index
                return pick
            frame.blame |= blame.of_refusal(alternative, index, earlier)
        return None

    def _likeness(self, frame: Frame, index: int) -> Hashable:
        """The same for devices that are interchangeable from this frame on."""
        return self._outlook.classes_from[frame.request][index], self.attempt.use_of(index)

    # --- dead ends ---

    def _signature(self, frame: MindfulFrame) -> tuple[Hashable, int]:
        """All that the rest of the search can feel of what is picked, and the frames behind it."""
        claim = self._claim(frame)
        state, felt = self._ahead.of(frame.request, frame.alternative, frame.position)
        results = 0
        if claim.may_exceed_limit:
            results = self.attempt.results_by_claim[claim.index]
            felt |= frame.choices
        if self._ahead.shares_pay(frame.request):
            felt |= self._earlier()
        felt |= self._always_felt(frame)
        return (frame.request, frame.alternative, frame.nth, frame.position, results, state), felt

    def _always_felt(self, frame: Frame) -> int:
        """The device picked before for the same alternative, and the choice of that alternative."""
        depth = len(self.stack) - 1
        blame = 0
        if frame.nth > 0:
            blame |= 1 << (depth - 1)
        if frame.alternative is not None and self.requests[frame.request].request.first_available:
            blame |= 1 << (depth - frame.nth - 1)
        return blame

    # --- going back ---

    def _fail(self, frame: Frame) -> None:
        """Go back to the last decision that has a part in the failure."""
        assert isinstance(frame, MindfulFrame)
        blame = (frame.blame | self._always_felt(frame)) & self._earlier()
        self.failures += 1
        self._alert = _FRAMES_ALERT
        deepest = frame.deepest
        if frame.signature is not None:
            if frame.signature not in self._dead_ends:
                self._signatures.append(frame.signature)
            self._dead_ends[frame.signature] = deepest
            if len(self._signatures) > _MAX_DEAD_ENDS:
                del self._dead_ends[self._signatures.popleft()]
        self._pop()
        guilty = blame.bit_length() - 1
        while len(self.stack) - 1 > guilty:
            innocent = self.stack[-1]
            assert isinstance(innocent, MindfulFrame)
            deepest = max(deepest, innocent.deepest)
            if self._outlook.next_failing[innocent.request] <= deepest:
                break
            self._pop()
        if self.stack:
            last = self.stack[-1]
            assert isinstance(last, MindfulFrame)
            last.blame |= blame
            last.deepest = max(last.deepest, deepest)

    def _exceed_limit(self, frame: Frame) -> None:
        """How many devices a claim has depends on which alternatives it got, not on the devices."""
        assert isinstance(frame, MindfulFrame)
        choices = frame.choices
        deepest = max(each.deepest for each in self.stack if isinstance(each, MindfulFrame))
        super()._exceed_limit(frame)
        self._alert = _FRAMES_ALERT
        if self.stack:
            last = self.stack[-1]
            assert isinstance(last, MindfulFrame)
            last.blame |= choices & self._earlier()
            last.deepest = max(last.deepest, deepest)

    def _place(self, pick: Pick) -> None:
        super()._place(pick)
        self._blame.add(pick, len(self.stack) - 1)

    def _undo(self) -> None:
        self._blame.remove(self.attempt.picks[-1])
        super()._undo()


_TAKE_OVER_WORK: Final = 4
"""Units of work to look once more at a device or frame of the other search."""


def _last_in_claim(requests: Sequence[PreparedRequest]) -> list[int]:
    """By request: the last one of the same claim."""
    last: list[int] = [0] * len(requests)
    for at in reversed(range(len(requests))):
        is_same = (
            at + 1 < len(requests)
            and requests[at + 1].alternatives[0].claim is requests[at].alternatives[0].claim
        )
        last[at] = last[at + 1] if is_same else at
    return last
