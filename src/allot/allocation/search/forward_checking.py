"""Forward checking: the search continues and prunes what cannot succeed.

Four techniques, beside the bounds of `bounds`:

- *Domains*: devices that are refused before any pick are not tried (`domains`).
- *Equivalence classes*: when a device has failed, interchangeable ones are not tried.
- *Dead ends*: a subtree whose residual state equals that of an earlier dead end fails, too
  (`residual_state`).
- *Conflict-directed backjumping*: a choice outside the conflict set of a failure is not revisited
  (`conflict_sets`).

Errors are results, too: nothing is pruned that could have raised one. Bounds cover requests only up to
the first that can raise an error: if those cannot be satisfied, the search never gets there. A backjump
passes a choice only if no request between it and the deepest one with a part in the failure can raise an
error. The other techniques prune copies of what was tried in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Final

from allot.allocation.requests import Alternative, PreparedRequest
from allot.allocation.search.attempt import AllocationAttempt, Pick
from allot.allocation.search.backtracking import CHECKS_AT_ONCE, BacktrackingSearch, SearchFrame
from allot.allocation.search.bounds import Bounds, Need
from allot.allocation.search.conflict_frame import ConflictFrame
from allot.allocation.search.conflict_sets import ConflictSets
from allot.allocation.search.domains import FutureDomains
from allot.allocation.search.residual_state import ResidualState
from allot.api.resource import MAX_RESULTS

_LOOKAHEAD_FRAMES: Final = 64
"""For how many frames after a failure dead ends and bounds are checked."""
_MAX_DEAD_ENDS: Final = 16_384
"""How many dead ends are kept; the oldest are dropped first."""
_INITIAL_COUNTS: Final = 100_000
_COUNTS_PER_STEP: Final = 100
_COUNTS_PER_PROVEN: Final = 16
"""How many devices bounds may count: initially, per step, and per device counted in a proof."""


class ForwardCheckingSearch(BacktrackingSearch):
    """Finds the same first solution as `BacktrackingSearch`, usually with far fewer steps, and never with more."""

    def __init__(
        self,
        attempt: AllocationAttempt,
        requests: Sequence[PreparedRequest],
        before: BacktrackingSearch,
    ) -> None:
        """`before` is the search to resume from."""
        super().__init__(attempt, requests)
        self._before = before
        self.steps = before.steps
        self.requests_satisfied = before.requests_satisfied
        self._dead_ends: dict[Hashable, int] = {}  # and how deep the search went from there
        self._signatures: deque[Hashable] = deque()  # of dead ends, the oldest first
        self._counts_left = _INITIAL_COUNTS
        self._lookahead_left = _LOOKAHEAD_FRAMES

    def resume(self) -> None:
        """Rebuild the frames of the other search, from the first one on, with lookahead."""
        before = self._before
        frames = before.stack.copy()
        picks = self.attempt.picks.copy()
        before.unwind()
        self.has_begun = before.has_begun
        self._future = FutureDomains(self.attempt, self.requests)
        self._bounds = Bounds(self.attempt, self._future)
        self._conflict_sets = ConflictSets(self.attempt)
        self._residual = ResidualState(self.attempt, self._future, self._conflict_sets)
        self._last_in_claim = _last_in_claim(self.requests)
        placed = iter(picks)
        for number, old in enumerate(frames):
            is_last = number == len(frames) - 1
            # Check the first frame, which decides about any solution, and those near the failure.
            self._lookahead_left = int(number == 0 or len(frames) - number <= _LOOKAHEAD_FRAMES)
            if self._is_abandoned(old, next(placed) if old.placed else None, is_last):
                break
        self._lookahead_left = _LOOKAHEAD_FRAMES

    def _is_abandoned(self, old: SearchFrame, pick: Pick | None, is_last: bool) -> bool:
        """Rebuild a frame of the other search; whether it is a dead end, and the search has backtracked."""
        self._meter.spend(_RESUME_WORK)
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
                frame.conflicts, frame.deepest = everything, len(self.requests) - 1
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
            # Earlier failures here have no recorded conflict set: assume all frames.
            frame.conflicts, frame.deepest = everything, len(self.requests) - 1
        return False

    def _replay(self, frame: ConflictFrame, alternative: Alternative, pick: Pick) -> bool:
        """Place the other search's pick; whether other devices were tried before it."""
        failed = False
        if alternative.wants_all:
            frame.position += 1
        else:
            indices = self._future.domains[alternative].indices
            at = bisect_left(indices, pick.index)
            for position in range(frame.position, at):
                index = indices[position]
                self._meter.spend(_RESUME_WORK)
                if self.attempt.check(alternative, index) is not None:
                    frame.tried.setdefault(self._equivalence_class(frame, index), index)
                    failed = True
                else:
                    frame.conflicts |= self._conflict_sets.of_refusal(
                        alternative, index, self._earlier()
                    )
            frame.position = at + 1
            frame.last = pick.index
        self._place(pick)
        frame.placed = True
        return failed

    def _frame(
        self, request: int, alternative: Alternative | None, nth: int, start: int
    ) -> ConflictFrame:
        choices = 0
        if self.stack:
            above = self.stack[-1]
            assert isinstance(above, ConflictFrame)
            claim = self.requests[request].alternatives[0].claim
            if self._claim(above) is claim:
                choices = above.choices
                if above.alternative is None:
                    choices |= 1 << (len(self.stack) - 1)
        return ConflictFrame(request, alternative, nth, start, choices)

    def _earlier(self) -> int:
        """All frames below the last one."""
        return (1 << (len(self.stack) - 1)) - 1

    # --- lookahead ---

    def _is_dead_end(self, frame: SearchFrame) -> bool:
        assert isinstance(frame, ConflictFrame)
        if frame.entered:
            return False
        frame.entered = True
        if not self._lookahead_left:
            return False
        self._lookahead_left -= 1
        if self._is_limit_ahead(frame):
            return True
        frame.signature, frame.relevant = self._signature(frame)
        deepest = self._dead_ends.get(frame.signature)
        if deepest is None:
            end = self._future.first_possible_error(frame.request, frame.alternative)
            if end == frame.request:
                return False
            if not self._is_impossible(frame, end):
                return False
            deepest = end - 1
        frame.deepest = max(frame.deepest, deepest)
        frame.conflicts |= frame.relevant
        self._fail(frame)
        return True

    def _is_impossible(self, frame: ConflictFrame, end: int) -> bool:
        """Whether bounds prove that the requests before `end` cannot be satisfied.

        Counting is limited to a share of the work, which grows with every proof.
        """
        bounds = self._bounds
        if bounds.work > self._counts_left + _COUNTS_PER_STEP * self.steps:
            return False
        alternative = frame.alternative
        need = None
        if alternative is not None:
            need = Need(alternative, alternative.count - frame.nth, frame.position)
        before = bounds.work
        values_left = bounds.values_left(frame.request, need, end)
        if values_left is None:
            self._counts_left += _COUNTS_PER_PROVEN * (bounds.work - before)
            return True
        frame.values_left = values_left
        return False

    def _is_limit_ahead(self, frame: ConflictFrame) -> bool:
        """Whether the claim exceeds its device limit, whichever alternatives are chosen from here on."""
        claim = self._claim(frame)
        if not claim.may_exceed_limit:
            return False
        last = self._last_in_claim[frame.request]
        if self._future.first_possible_error(frame.request, frame.alternative) <= last:
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
        frame.conflicts |= frame.choices
        frame.deepest = max(frame.deepest, last)
        self._fail(frame)
        return True

    def _next_pick(self, frame: SearchFrame, alternative: Alternative) -> Pick | None:
        assert isinstance(frame, ConflictFrame)
        earlier = self._earlier()
        if alternative.wants_all:
            pick = super()._next_pick(frame, alternative)
            if pick is None and frame.nth < alternative.count:
                index = alternative.all_devices[frame.nth]
                frame.conflicts |= self._conflict_sets.of_refusal(alternative, index, earlier)
            return pick
        if frame.last is not None:
            frame.tried.setdefault(self._equivalence_class(frame, frame.last), frame.last)
        domain = self._future.domains[alternative]
        wanted = [
            (tokens, frame.values_left[constraint])
            for constraint, tokens in zip(alternative.constraints, domain.tokens, strict=True)
            if constraint in frame.values_left
        ]
        last_safe = self._future.first_possible_error(frame.request, alternative) - 1
        check, conflicts = self.attempt.check, self._conflict_sets
        indices = domain.indices
        for position in range(frame.position, len(indices)):
            if not position % CHECKS_AT_ONCE:
                self._meter.spend(CHECKS_AT_ONCE * (4 + 2 * len(alternative.constraints)))
            index = indices[position]
            if any(tokens[index].isdisjoint(values) for tokens, values in wanted):
                frame.conflicts |= frame.relevant
                frame.deepest = max(frame.deepest, last_safe)
                continue
            twin = frame.tried.get(self._equivalence_class(frame, index)) if frame.tried else None
            if twin is not None:
                frame.conflicts |= conflicts.of_use(index) | conflicts.of_use(twin)
                continue
            pick = check(alternative, index)
            if pick is not None:
                frame.position = position + 1
                frame.last = index
                return pick
            frame.conflicts |= conflicts.of_refusal(alternative, index, earlier)
        return None

    def _equivalence_class(self, frame: SearchFrame, index: int) -> Hashable:
        """Equal for devices that are interchangeable from this frame on."""
        return self._future.classes_from[frame.request][index], self.attempt.use_of(index)

    # --- dead ends ---

    def _signature(self, frame: ConflictFrame) -> tuple[Hashable, int]:
        """The residual state at a frame, and the frames that shape it."""
        claim = self._claim(frame)
        state, relevant = self._residual.of(frame.request, frame.alternative, frame.position)
        results = 0
        if claim.may_exceed_limit:
            results = self.attempt.results_by_claim[claim.index]
            relevant |= frame.choices
        if self._residual.depends_on_first_shares(frame.request):
            relevant |= self._earlier()
        relevant |= self._structural_conflicts(frame)
        return (
            frame.request,
            frame.alternative,
            frame.nth,
            frame.position,
            results,
            state,
        ), relevant

    def _structural_conflicts(self, frame: SearchFrame) -> int:
        """Frames in every conflict set: the previous device and the choice of the same alternative."""
        depth = len(self.stack) - 1
        conflicts = 0
        if frame.nth > 0:
            conflicts |= 1 << (depth - 1)
        if frame.alternative is not None and self.requests[frame.request].request.first_available:
            conflicts |= 1 << (depth - frame.nth - 1)
        return conflicts

    # --- backtracking ---

    def _fail(self, frame: SearchFrame) -> None:
        """Backjump to the last choice in the conflict set."""
        assert isinstance(frame, ConflictFrame)
        conflicts = (frame.conflicts | self._structural_conflicts(frame)) & self._earlier()
        self.failures += 1
        self._lookahead_left = _LOOKAHEAD_FRAMES
        deepest = frame.deepest
        if frame.signature is not None:
            if frame.signature not in self._dead_ends:
                self._signatures.append(frame.signature)
            self._dead_ends[frame.signature] = deepest
            if len(self._signatures) > _MAX_DEAD_ENDS:
                del self._dead_ends[self._signatures.popleft()]
        self._pop()
        backjump_to = conflicts.bit_length() - 1
        while len(self.stack) - 1 > backjump_to:
            skipped = self.stack[-1]
            assert isinstance(skipped, ConflictFrame)
            deepest = max(deepest, skipped.deepest)
            if self._future.next_failing[skipped.request] <= deepest:
                break
            self._pop()
        if self.stack:
            last = self.stack[-1]
            assert isinstance(last, ConflictFrame)
            last.conflicts |= conflicts
            last.deepest = max(last.deepest, deepest)

    def _exceed_limit(self, frame: SearchFrame) -> None:
        """The number of devices of a claim depends on its alternatives, not on the devices picked."""
        assert isinstance(frame, ConflictFrame)
        choices = frame.choices
        deepest = max(each.deepest for each in self.stack if isinstance(each, ConflictFrame))
        super()._exceed_limit(frame)
        self._lookahead_left = _LOOKAHEAD_FRAMES
        if self.stack:
            last = self.stack[-1]
            assert isinstance(last, ConflictFrame)
            last.conflicts |= choices & self._earlier()
            last.deepest = max(last.deepest, deepest)

    def _place(self, pick: Pick) -> None:
        super()._place(pick)
        self._conflict_sets.add(pick, len(self.stack) - 1)

    def _undo(self) -> None:
        self._conflict_sets.remove(self.attempt.picks[-1])
        super()._undo()


_RESUME_WORK: Final = 4
"""Units of work to rebuild a device or frame of the other search."""


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
