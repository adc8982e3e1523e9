"""What claims would get on each node, remembered until the devices that the node can use change.

Claims that ask for the same get the same, so one search serves all of them. Shares are the exception:
each needs an identity of its own, so where there are any, only the verdict and the score are kept.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from allot.allocation import TargetNode
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.answers import NodeAnswer

MAX_WISHES: Final = 100
"""How many different sets of claims answers are remembered for."""
MAX_ANSWERS: Final = 50_000
"""How many answers are remembered for all of them together."""


MAX_KINDS_OF_NODES: Final = 1000
"""How many kinds of nodes answers are remembered for, per set of claims."""


class _Remembered(NamedTuple):
    last_change: int
    target: TargetNode
    answer: NodeAnswer


class NodeAnswers:
    """Answers for one set of claims, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, _Remembered] = {}
        self._by_likeness: dict[Hashable, NodeAnswer] = {}

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
            self._by_node[target.name] = _Remembered(last_change, target, answer)

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


def is_for_anybody(answer: NodeAnswer) -> bool:
    """Whether the answer can be given to several claims as it is: it has results, and none are shares."""
    return not answer.status.is_success or (
        bool(answer.results)
        and not any(
            device.share_id for result in answer.results for device in result.devices.results
        )
    )
