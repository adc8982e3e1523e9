"""Lists: the newest first, page by page, however many there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.times import read_time
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.dashboard import object_lists
from allot.dashboard.object_lists import PAGE_SIZE, list_objects
from allot.testing.builders import a_claim, a_pod, an_allocation


def a_dated_claim(number: int) -> ResourceClaim:
    claim = a_claim(name=f"c{number:03}", allocation=an_allocation("a") if number % 2 else None)
    created = read_time(f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")
    return replace(claim, metadata=replace(claim.metadata, creation_timestamp=created))


def page_of(page: int, search: str = "", state: str = "") -> dict[str, Any]:
    objects = Snapshot()
    for number in range(3 * PAGE_SIZE + 1):
        objects.put(resources.RESOURCE_CLAIMS, a_dated_claim(number))
    return asyncio.run(list_objects(objects, "claims", search, state, page))


@pytest.mark.parametrize("max_found", [10, 10_000])
@pytest.mark.parametrize(
    ("page", "first", "count"), [(0, 300, 100), (1, 200, 100), (3, 0, 1), (4, 0, 0)]
)
def test_pages(
    page: int, first: int, count: int, max_found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lists, "MAX_FOUND", max_found)

    found = page_of(page)

    assert [row["claim"] for row in found["rows"]] == [
        f"default/c{number:03}" for number in range(first, first - count, -1)
    ]
    assert found["total"] == 301


def test_search_and_state() -> None:
    found = page_of(0, search="c30", state="allocated")

    assert (found["rows"], found["total"]) == ([], 0)
    assert found["states"] == {"pending": 151, "allocated": 150}
    assert page_of(0, search="c30")["total"] == 1


def test_pods_with_claims_or_without_a_node() -> None:
    objects = Snapshot()
    pods = (
        a_pod("plain").with_value("node-1", "spec", "nodeName"),
        a_pod("waiting"),
        a_pod("trainer", claims={"gpu": "c"}).with_value("node-1", "spec", "nodeName"),
    )
    for pod in pods:
        objects.put(resources.PODS, pod)

    found = asyncio.run(list_objects(objects, "pods", "", "", 0))

    assert [row["pod"] for row in found["rows"]] == ["default/trainer", "default/waiting"]
