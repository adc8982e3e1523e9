"""The mutation cache of the resource claim controller."""

from __future__ import annotations

from allot.api.identities import ObjectKey
from allot.controllers.resource_claims.mutation_cache import (
    CREATED_CLAIM_TTL_SECONDS,
    CreatedClaims,
    DeletedPods,
)

C, D = ObjectKey("ns", "c"), ObjectKey("ns", "d")
P = ObjectKey("ns", "p")


def test_the_last_deleted_pods_are_remembered() -> None:
    deleted = DeletedPods(limit=2)
    for uid in ("a", "b", "a", "c"):
        deleted.add(uid)

    assert ["a" in deleted, "b" in deleted, "c" in deleted] == [True, False, True]


def test_a_claim_is_ours_until_it_is_seen_or_time_is_up() -> None:
    time = [0.0]
    made = CreatedClaims(lambda: time[0])
    made.add(C, P, "pod")
    made.add(D, P, "pod")
    assert made.is_made_for(C, "pod")
    assert not made.is_made_for(C, "another")

    made.forget(C)
    assert not made.is_made_for(C, "pod")

    assert made.expire() == []
    time[0] = CREATED_CLAIM_TTL_SECONDS
    assert not made.is_made_for(D, "pod")
    assert made.expire() == [P]
    assert not made


def test_the_oldest_claims_are_forgotten_first() -> None:
    made = CreatedClaims(lambda: 0.0, limit=1)
    made.add(C, P, "pod")
    made.add(D, P, "pod")

    assert not made.is_made_for(C, "pod")
    assert made.is_made_for(D, "pod")
