"""Foresight: the search again, but without trying what cannot succeed.

Four ways to know, beside the bounds that counting gives:

- *Domains*: devices that were refused at the outset are not looked at.
- *Interchangeable devices*: when one of several that are alike has failed, so would the others.
- *Dead ends*: where the rest of the search depends on the same things as it did at an earlier dead
  end, it ends the same way. Only what the rest can feel is compared, and alike devices are alike.
- *Blame*: a decision that had no part in a failure is not revisited (conflict-directed
  backjumping). Blame is a set of frames, one bit for each place on the stack.

An error is an answer too, and nothing is skipped that could have ended in one. Counting goes only
up to the first request that can fail: if those before it cannot be satisfied, the search never gets
there. Blame jumps over a decision only if nothing from there down to the deepest request that had
a part in the failure can fail. The other rules skip what mirrors something that was tried in full.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from allot.allocation.attempt import Attempt, Pick
from allot.allocation.bounds import Bounds, Need
from allot.allocation.constraints import Constraint
from allot.allocation.domains import Outlook, Token
from allot.allocation.pools import PoolId
from allot.allocation.requests import Alternative, PreparedClaim, PreparedRequest
from allot.allocation.search import Frame, Search

_FRAMES_ALERT: Final = 64
"""For how many frames after a failure it is worth looking for the next one."""


class MindfulFrame(Frame):
    """A frame that remembers what was tried and who is to blame."""

    __slots__ = ("blame", "deepest", "entered", "felt", "last", "signature", "tried", "values_left")

    def __init__(self, request: int, alternative: Alternative | None, nth: int, start: int) -> None:
        super().__init__(request, alternative, nth, start)
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
    """The same first solution as `Search`, usually with far fewer steps."""

    def __init__(
        self,
        attempt: Attempt,
        requests: Sequence[PreparedRequest],
        before: Search | None = None,
    ) -> None:
        """`before` is a search that was given up; its steps count, too."""
        super().__init__(attempt, requests)
        if before is not None:
            self.steps = before.steps
            self.requests_satisfied = before.requests_satisfied
        self._outlook = Outlook(attempt, requests)
        self._bounds = Bounds(attempt, self._outlook)
        self._dead_ends: dict[Hashable, int] = {}  # and how deep the search went from there
        self._depths: list[int] = []  # of the frames that hold the attempt's picks
        self._alert = _FRAMES_ALERT
        self._constraints_ahead: dict[int, list[Constraint]] = {}
        self._pools_ahead: dict[int, list[PoolId]] = {}
        self._payers_ahead: dict[int, bool] = {}
        self._limited = {
            id(claim)
            for request in requests
            if (claim := request.alternatives[0].claim).may_exceed_limit
        }

    def _frame(self, request: int, alternative: Alternative | None, nth: int, start: int) -> Frame:
        return MindfulFrame(request, alternative, nth, start)

    # --- before something is tried ---

    def _choose_alternative(self, frame: Frame) -> bool:
        assert isinstance(frame, MindfulFrame)
        if self._is_dead_end(frame, None):
            return True
        return super()._choose_alternative(frame)

    def _choose_device(self, frame: Frame, alternative: Alternative) -> bool:
        assert isinstance(frame, MindfulFrame)
        need = Need(alternative, alternative.count - frame.nth, frame.position)
        if self._is_dead_end(frame, need):
            return True
        return super()._choose_device(frame, alternative)

    def _is_dead_end(self, frame: MindfulFrame, need: Need | None) -> bool:
        """Whether there is no use in trying anything here; if so, the search has gone back."""
        if frame.entered:
            return False
        frame.entered = True
        if not self._alert:
            return False
        self._alert -= 1
        frame.signature, frame.felt = self._signature(frame)
        deepest = self._dead_ends.get(frame.signature)
        if deepest is None:
            end = self._outlook.end_of_safety(frame.request, frame.alternative)
            if end == frame.request:
                return False
            values_left = self._bounds.values_left(frame.request, need, end)
            if values_left is not None:
                frame.values_left = values_left
                return False
            deepest = end - 1
        frame.deepest = max(frame.deepest, deepest)
        frame.blame |= frame.felt
        self._fail(frame)
        return True

    def _next_pick(self, frame: Frame, alternative: Alternative) -> Pick | None:
        assert isinstance(frame, MindfulFrame)
        if alternative.wants_all:
            pick = super()._next_pick(frame, alternative)
            if pick is None and frame.nth < alternative.count:
                frame.blame |= self._to_blame(alternative, alternative.all_devices[frame.nth])
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
        for position in range(frame.position, len(domain.indices)):
            index = domain.indices[position]
            if any(tokens[index].isdisjoint(values) for tokens, values in wanted):
                frame.blame |= frame.felt
                frame.deepest = max(frame.deepest, last_safe)
                continue
            twin = frame.tried.get(self._likeness(frame, index))
            if twin is not None:
                frame.blame |= self._holding(index) | self._holding(twin)
                continue
            pick = self.attempt.check(alternative, index)
            if pick is not None:
                frame.position = position + 1
                frame.last = index
                return pick
            frame.blame |= self._to_blame(alternative, index)
        return None

    def _likeness(self, frame: Frame, index: int) -> Hashable:
        """The same for devices that are interchangeable from this frame on."""
        return self._outlook.classes_from[frame.request][index], self.attempt.use_of(index)

    # --- dead ends ---

    def _signature(self, frame: MindfulFrame) -> tuple[Hashable, int]:
        """All that the rest of the search can feel of what is picked, and the frames behind it."""
        attempt, at = self.attempt, frame.request
        classes = self._outlook.classes_from[at]
        claim = self.requests[at].alternatives[0].claim
        felt_constraints = self._felt_constraints(claim, at)
        felt_pools = self._felt_pools(at)
        domain = None if frame.alternative is None else self._outlook.domains[frame.alternative]
        behind = set(domain.indices[: frame.position]) if domain is not None else frozenset()
        felt = 0
        touched: set[int] = set()
        for pick, depth in zip(attempt.picks, self._depths, strict=True):
            index = pick.index
            relevant = index in classes
            if relevant:
                touched.add(index)
            if (
                relevant
                or any(
                    constraint in felt_constraints for constraint in pick.alternative.constraints
                )
                or (pick.pays_counters and self._pool(index) in felt_pools)
            ):
                felt |= 1 << depth
        limited = id(claim) in self._limited
        if limited or self._shares_pay_ahead(at):
            felt |= (1 << (len(self.stack) - 1)) - 1
        felt |= self._always_felt(frame)
        uses = sorted((classes[index], index in behind, attempt.use_of(index)) for index in touched)
        signature = (
            at,
            frame.alternative,
            frame.nth,
            frame.position,
            attempt.results_by_claim[claim.index] if limited else 0,
            tuple(constraint.state() for constraint in felt_constraints),
            tuple(uses),
            tuple(attempt.counters_used(pool) for pool in felt_pools),
        )
        return signature, felt

    def _always_felt(self, frame: Frame) -> int:
        """The device picked before for the same alternative, and the choice of that alternative."""
        depth = len(self.stack) - 1
        blame = 0
        if frame.nth > 0:
            blame |= 1 << (depth - 1)
        if frame.alternative is not None and self.requests[frame.request].request.first_available:
            blame |= 1 << (depth - frame.nth - 1)
        return blame

    def _felt_constraints(self, claim: PreparedClaim, at: int) -> list[Constraint]:
        """The constraints of the claim that still matter from a request on."""
        known = self._constraints_ahead.get(at)
        if known is None:
            ahead = {
                id(constraint)
                for request in self.requests[at:]
                for alternative in request.alternatives
                for constraint in alternative.constraints
            }
            known = [constraint for constraint in claim.constraints if id(constraint) in ahead]
            self._constraints_ahead[at] = known
        return known

    def _felt_pools(self, at: int) -> list[PoolId]:
        """The pools whose counters still matter from a request on."""
        known = self._pools_ahead.get(at)
        if known is None:
            devices = self.attempt.devices
            classes = self._outlook.classes_from[at]
            known = sorted({self._pool(index) for index in classes if devices[index].counter_uses})
            self._pools_ahead[at] = known
        return known

    def _shares_pay_ahead(self, at: int) -> bool:
        """Whether what is *not* picked can be felt: a share that would have paid for the next."""
        known = self._payers_ahead.get(at)
        if known is None:
            devices = (self.attempt.devices[index] for index in self._outlook.classes_from[at])
            known = any(device.shareable and device.counter_uses for device in devices)
            self._payers_ahead[at] = known
        return known

    def _pool(self, index: int) -> PoolId:
        id_ = self.attempt.devices[index].id
        return PoolId(id_.driver, id_.pool)

    # --- blame ---

    def _to_blame(self, alternative: Alternative, index: int) -> int:
        """The frames without whose picks the device might not have been refused."""
        attempt = self.attempt
        if attempt.is_in_use(alternative, index):
            return self._holding(index)
        device = attempt.devices[index]
        pays = bool(device.counter_uses)
        if pays and device.shareable:
            # Somebody else's share would have paid for it: all that did not take one have a part.
            return (1 << (len(self.stack) - 1)) - 1
        pool = self._pool(index)
        blame = 0
        for pick, depth in zip(attempt.picks, self._depths, strict=True):
            if (
                pick.index == index
                or (pays and pick.pays_counters and self._pool(pick.index) == pool)
                or any(each in pick.alternative.constraints for each in alternative.constraints)
            ):
                blame |= 1 << depth
        return blame

    def _holding(self, index: int) -> int:
        """The frames that picked the device."""
        blame = 0
        for pick, depth in zip(self.attempt.picks, self._depths, strict=True):
            if pick.index == index:
                blame |= 1 << depth
        return blame

    # --- going back ---

    def _fail(self, frame: Frame) -> None:
        """Go back to the last decision that has a part in the failure."""
        assert isinstance(frame, MindfulFrame)
        depth = len(self.stack) - 1
        earlier = (1 << depth) - 1
        blame = (frame.blame | self._always_felt(frame)) & earlier
        self.failures += 1
        self._alert = _FRAMES_ALERT
        deepest = frame.deepest
        if frame.signature is not None:
            self._dead_ends[frame.signature] = deepest
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

    def _back_to_choice(self) -> None:
        deepest = max(frame.deepest for frame in self.stack if isinstance(frame, MindfulFrame))
        super()._back_to_choice()
        if self.stack:
            choice = self.stack[-1]
            assert isinstance(choice, MindfulFrame)
            choice.blame |= (1 << (len(self.stack) - 1)) - 1
            choice.deepest = max(choice.deepest, deepest)

    def _place(self, pick: Pick) -> None:
        super()._place(pick)
        self._depths.append(len(self.stack) - 1)

    def _undo(self) -> None:
        super()._undo()
        self._depths.pop()
