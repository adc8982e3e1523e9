from __future__ import annotations

from allot.allocation import Ledger
from allot.api.base import replace
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.identities import DeviceId, ObjectKey
from allot.features import DEFAULTS
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.testing.builders import DRIVER, an_allocation
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    LONG_AGO,
    a_stored_claim,
)

KEY = ObjectKey("default", "claim")
GPU_0 = an_allocation("gpu-0")
GPU_1 = an_allocation("gpu-1")


class Tracked:
    """A tracker and what it told its listeners."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.tracker = ClaimTracker(DEFAULTS)
        for claim in claims:
            self.tracker.put(claim)
        self.changes: list[tuple[int | None, int | None]] = []
        self.ledger_changes: list[str] = []
        self.tracker.add_listener(self._changed)
        self.tracker.add_ledger_listener(self._entered)

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.changes.append((_version(old), _version(new)))

    def _entered(self, allocation: AllocationResult) -> None:
        self.ledger_changes += [result.device for result in allocation.devices.results]

    def version(self) -> int | None:
        return _version(self.tracker.get(KEY))

    def taken(self) -> list[str]:
        return [
            name
            for name in ("gpu-0", "gpu-1", "gpu-2")
            if self.tracker.ledger.is_dedicated(DeviceId(DRIVER, "node-1", name))
        ]


def _version(claim: ResourceClaim | None) -> int | None:
    return None if claim is None else int(claim.metadata.resource_version)


# --- the informer and our own writes ---


def test_claims_come_change_and_go() -> None:
    tracked = Tracked()
    tracked.tracker.put(a_stored_claim(version=1))
    tracked.tracker.put(a_stored_claim(version=2))
    tracked.tracker.remove(a_stored_claim(version=3))

    assert tracked.changes == [(None, 1), (1, 2), (2, None)]
    assert tracked.version() is None


def test_our_own_write_counts_before_the_informer_shows_it() -> None:
    tracked = Tracked(a_stored_claim(version=1))

    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    assert tracked.version() == 5
    assert tracked.taken() == ["gpu-0"]
    assert tracked.changes == [(1, 5)]


def test_a_write_of_ours_that_comes_back_is_no_news() -> None:
    tracked = Tracked(a_stored_claim(version=1))
    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    tracked.tracker.put(a_stored_claim(version=5, allocation=GPU_0))

    assert tracked.changes == [(1, 5)]
    assert tracked.ledger_changes == ["gpu-0"]


def test_versions_older_than_our_write_are_ignored() -> None:
    tracked = Tracked(a_stored_claim(version=1))
    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    tracked.tracker.put(a_stored_claim(version=3))

    assert tracked.version() == 5
    assert tracked.taken() == ["gpu-0"]
    assert tracked.changes == [(1, 5)]


def test_versions_newer_than_our_write_replace_it() -> None:
    tracked = Tracked(a_stored_claim(version=1))
    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    tracked.tracker.put(a_stored_claim(version=6))

    assert tracked.version() == 6
    assert tracked.taken() == []


def test_answers_older_than_what_the_informer_showed_are_ignored() -> None:
    tracked = Tracked(a_stored_claim(version=7))

    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    assert tracked.version() == 7
    assert tracked.taken() == []


def test_versions_are_compared_as_numbers() -> None:
    tracked = Tracked(a_stored_claim(version=9))

    tracked.tracker.put(a_stored_claim(version=10))

    assert tracked.version() == 10


def test_answers_for_claims_that_are_gone_are_ignored() -> None:
    tracked = Tracked()

    tracked.tracker.assume(a_stored_claim(version=5, allocation=GPU_0))

    assert tracked.version() is None
    assert tracked.taken() == []


def test_answers_for_a_predecessor_of_the_same_name_are_ignored() -> None:
    tracked = Tracked(a_stored_claim(version=3, uid="second"))

    tracked.tracker.assume(a_stored_claim(version=5, uid="first", allocation=GPU_0))

    assert tracked.version() == 3
    assert tracked.taken() == []


def test_a_successor_of_the_same_name_is_another_claim() -> None:
    tracked = Tracked(a_stored_claim(version=3, uid="first", allocation=GPU_0))

    tracked.tracker.put(a_stored_claim(version=9, uid="second"))

    assert tracked.changes == [(3, None), (None, 9)]
    assert tracked.taken() == []


def test_a_predecessor_that_goes_late_leaves_its_successor_alone() -> None:
    tracked = Tracked(a_stored_claim(version=9, uid="second", allocation=GPU_1))

    tracked.tracker.remove(a_stored_claim(version=3, uid="first"))

    assert tracked.version() == 9
    assert tracked.taken() == ["gpu-1"]


def test_all_listeners_hear_everything_once_and_in_order() -> None:
    tracked = Tracked()
    heard: list[tuple[str, int | None]] = []
    tracked.tracker.add_listener(lambda _, new: heard.append(("first", _version(new))))
    tracked.tracker.add_listener(lambda _, new: heard.append(("second", _version(new))))

    tracked.tracker.put(a_stored_claim(version=1))
    tracked.tracker.put(a_stored_claim(version=2))

    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_listeners_find_the_ledger_up_to_date() -> None:
    tracked = Tracked()
    seen: list[list[str]] = []
    tracked.tracker.add_listener(lambda *_: seen.append(tracked.taken()))

    tracked.tracker.put(a_stored_claim(version=1, allocation=GPU_0))
    tracked.tracker.put(a_stored_claim(version=2))

    assert seen == [["gpu-0"], []]


# --- in flight ---


def test_devices_are_taken_as_soon_as_that_is_decided() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)

    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    assert tracked.tracker.has_pending_allocation("uid-claim")
    assert tracked.taken() == ["gpu-0"]
    assert tracked.changes == [], "nothing was written"


def test_a_decision_that_was_given_up_frees_its_devices() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    tracked.tracker.remove_pending_allocation(claim)

    assert not tracked.tracker.has_pending_allocation("uid-claim")
    assert tracked.taken() == []
    assert tracked.ledger_changes == ["gpu-0", "gpu-0"]


def test_a_decision_that_was_written_is_entered_once() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))
    stamped = replace(GPU_0, allocation_timestamp=LONG_AGO)
    tracked.tracker.assume(a_stored_claim(version=2, allocation=stamped))

    tracked.tracker.remove_pending_allocation(claim)

    assert tracked.taken() == ["gpu-0"]
    assert tracked.ledger_changes == ["gpu-0"]


def test_in_flight_wins_over_what_others_write() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    tracked.tracker.put(a_stored_claim(version=2, allocation=GPU_1))
    assert tracked.taken() == ["gpu-0"]
    tracked.tracker.remove_pending_allocation(claim)

    assert tracked.taken() == ["gpu-1"]


def test_a_claim_deleted_in_flight_holds_its_devices_until_it_lands() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    tracked.tracker.remove(claim)
    assert tracked.taken() == ["gpu-0"]
    tracked.tracker.remove_pending_allocation(claim)

    assert tracked.taken() == []


def test_a_claim_replaced_in_flight_does_not_land_on_its_successor() -> None:
    claim = a_stored_claim(version=1, uid="first")
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    tracked.tracker.put(a_stored_claim(version=2, uid="second", allocation=GPU_1))
    tracked.tracker.remove_pending_allocation(claim)

    assert tracked.taken() == ["gpu-1"]
    assert tracked.ledger_changes == ["gpu-0", "gpu-1", "gpu-0"]


def test_landing_twice_is_landing_once() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))
    tracked.tracker.remove_pending_allocation(claim)

    tracked.tracker.remove_pending_allocation(claim)

    assert tracked.ledger_changes == ["gpu-0", "gpu-0"]


def test_the_ledger_follows_a_change_of_devices() -> None:
    tracked = Tracked(a_stored_claim(version=1, allocation=GPU_0))

    tracked.tracker.put(a_stored_claim(version=2, allocation=GPU_1))

    assert tracked.taken() == ["gpu-1"]
    assert tracked.ledger_changes == ["gpu-0", "gpu-1"]
    expected = Ledger(DEFAULTS)
    expected.add("default/claim#uid-claim", GPU_1)
    assert tracked.tracker.ledger.snapshot() == expected.snapshot()


def _with(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    return replace(claim, status=replace(claim.status, allocation=allocation))


def test_devices_that_were_given_up_are_told_of() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    released: list[str] = []
    tracked.tracker.add_release_listener(lambda given_up: released.append(given_up.metadata.name))
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))

    tracked.tracker.remove_pending_allocation(claim)

    assert released == ["claim"]
    assert tracked.changes == [], "the claim itself did not change"


def test_devices_that_were_written_are_not_given_up() -> None:
    claim = a_stored_claim(version=1)
    tracked = Tracked(claim)
    released: list[ResourceClaim] = []
    tracked.tracker.add_release_listener(released.append)
    tracked.tracker.add_pending_allocation(_with(claim, GPU_0))
    tracked.tracker.assume(a_stored_claim(version=2, allocation=GPU_0))

    tracked.tracker.remove_pending_allocation(claim)

    assert released == []
