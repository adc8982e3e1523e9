"""What claims would get on each node, remembered until the devices that the node can use change.

Claims that ask for the same get the same, so one search serves all of them; only shares get an identity of their own
for each. That a node took too long is remembered as well, until it is time to try again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, NamedTuple

from allot.allocation import TargetNode
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.scheduler.framework.backoff import TIMEOUT_BACKOFF
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.filter_results import NodeAnswer

MAX_WISHES: Final = 100
"""How many different sets of claims answers are remembered for."""
MAX_ANSWERS: Final = 50_000
"""How many answers are remembered for all of them together."""


MAX_KINDS_OF_NODES: Final = 1000
"""How many kinds of nodes answers are remembered for, per set of claims."""


class RememberedAnswer(NamedTuple):
    """An answer for one node, and since when its devices are as they were then."""

    last_change: int
    target: TargetNode
    answer: NodeAnswer


class NodeAnswers:
    """Answers for one set of claims, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, RememberedAnswer] = {}
        self._by_likeness: dict[Hashable, NodeAnswer] = {}
        self.retries = 0
        """How often answers were forgotten although no devices had changed."""
        self._outdated: list[str] = []
        self._timeouts_in_a_row = 0
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._by_node) + len(self._by_likeness)

    def get(self, target: TargetNode, last_change: int) -> NodeAnswer | None:
        """The answer for a node whose devices changed last at `last_change`, if it is known."""
        known = self._by_node.get(target.name)
        if known is None or known.last_change != last_change or known.target is not target:
            return None
        return known.answer

    def put(self, target: TargetNode, last_change: int, answer: NodeAnswer) -> None:
        if answer.status.code is not Code.ERROR:  # an error names the claim
            self._by_node[target.name] = RememberedAnswer(last_change, target, answer)

    def put_outdated(self, target: TargetNode, last_change: int, answer: NodeAnswer) -> None:
        """An answer from before the devices changed last. It counts until `forget_outdated`."""
        self.put(target, last_change, answer)
        self._outdated.append(target.name)

    def forget_outdated(self) -> None:
        if self._outdated:
            self.retries += 1  # what was concluded from them does not count any more either
        for name in self._outdated:
            self._by_node.pop(name, None)
        self._outdated.clear()

    def entries(self) -> Iterable[RememberedAnswer]:
        return self._by_node.values()

    # --- nodes that took too long ---

    def note_timeouts(self, nodes: int, now: float) -> None:
        """So many nodes took too long this time. If any, they are left alone for a while, each time longer."""
        self._timeouts_in_a_row = self._timeouts_in_a_row + 1 if nodes else 0
        self._retry_at = now + TIMEOUT_BACKOFF.after(self._timeouts_in_a_row)

    def retry_timeouts(self, now: float) -> None:
        """Give nodes that took too long another chance, if they have been left alone long enough."""
        if self._timeouts_in_a_row and now >= self._retry_at and self.forget_timeouts():
            self._retry_at = now + TIMEOUT_BACKOFF.after(self._timeouts_in_a_row)

    def forget_timeouts(self) -> int:
        """Forget the nodes that took too long; how many there were."""
        slow = [name for name, known in self._by_node.items() if known.answer.timed_out]
        for name in slow:
            del self._by_node[name]
        if slow:
            self.retries += 1
            self._by_likeness = {
                alike: answer for alike, answer in self._by_likeness.items() if not answer.timed_out
            }
        return len(slow)

    def get_alike(self, likeness: Hashable) -> NodeAnswer | None:
        """The answer for a node that looks like this; without results, which name its devices."""
        return self._by_likeness.get(likeness)

    def put_alike(self, likeness: Hashable, answer: NodeAnswer) -> None:
        if answer.status.code is not Code.ERROR:
            if len(self._by_likeness) >= MAX_KINDS_OF_NODES:
                self._by_likeness.clear()
            self._by_likeness[likeness] = answer._replace(results=())


class RememberedAnswers:
    """Answers for the sets of claims that were asked about last."""

    def __init__(self) -> None:
        self._by_wish: dict[Hashable, NodeAnswers] = {}

    def for_wish(self, wish: Hashable) -> NodeAnswers:
        """The answers for claims that ask for this. What nobody asked about lately is dropped."""
        known = self._by_wish
        found = known.pop(wish, None)
        if found is None:
            found = NodeAnswers()
            while known and (len(known) >= MAX_WISHES or self._total() > MAX_ANSWERS):
                del known[next(iter(known))]
        known[wish] = found
        return found

    def _total(self) -> int:
        return sum(map(len, self._by_wish.values()))


def with_own_shares(answer: NodeAnswer, new_share_id: Callable[[], str]) -> NodeAnswer:
    """The answer for another set of claims that ask for the same: a share belongs to one claim alone."""
    results = tuple(_with_own_shares(result, new_share_id) for result in answer.results)
    return answer._replace(results=results)


def _with_own_shares(result: AllocationResult, new_share_id: Callable[[], str]) -> AllocationResult:
    devices = result.devices.results
    if not any(device.share_id for device in devices):
        return result
    shared = tuple(
        replace(device, share_id=new_share_id()) if device.share_id else device
        for device in devices
    )
    return replace(result, devices=replace(result.devices, results=shared))
