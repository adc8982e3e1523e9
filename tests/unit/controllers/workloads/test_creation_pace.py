from __future__ import annotations

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.controllers.workloads.pod_control import (
    BURST_REPLICAS,
    CREATIONS_PER_SECOND,
    MAX_LIMITED_OWNERS,
    CreationRateLimiter,
)


class Pace:
    """A pace with a clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.again: list[tuple[str, float]] = []
        self.pace = CreationRateLimiter(lambda: self.now, self._note)

    def _note(self, key: ObjectKey, seconds: float) -> None:
        self.again.append((key.name, seconds))

    def admit(self, name: str, wanted: int) -> int:
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        return self.pace.admit(RawObject({"metadata": metadata}), wanted)


def test_few_pods_are_created_at_once() -> None:
    pace = Pace()

    assert [pace.admit("small", 10) for _ in range(5)] == [10] * 5
    assert pace.again == []


def test_a_hundred_thousand_pods_come_at_a_pace() -> None:
    pace = Pace()

    assert pace.admit("huge", 100_000) == BURST_REPLICAS
    assert pace.admit("huge", 99_500) == 0
    assert pace.again == [("huge", 1.0)] * 2
    pace.now = 1.0
    assert pace.admit("huge", 99_500) == CREATIONS_PER_SECOND


def test_others_are_not_concerned() -> None:
    pace = Pace()
    pace.admit("huge", 100_000)

    assert pace.admit("small", 10) == 10


def test_owners_are_forgotten_in_time() -> None:
    pace = Pace()
    for number in range(MAX_LIMITED_OWNERS + 1):
        pace.admit(f"owner-{number}", BURST_REPLICAS)

    assert pace.admit("owner-0", BURST_REPLICAS) == BURST_REPLICAS
    assert pace.admit(f"owner-{MAX_LIMITED_OWNERS}", BURST_REPLICAS) == 0
