"""Every store: entries, pages of them, and writes that happen as a whole or not at all."""

from __future__ import annotations

import asyncio

import pytest

from allot.storage.interface import (
    MISSING,
    Check,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
    Store,
    StoreUnavailableError,
)
from tests.contract.homes import Home
from tests.contract.one_loop import run

ODD_KEYS = [
    " ",
    "%",
    "_",
    "*",
    "a",
    "a/",
    "a/b",
    "a/b/",
    "a/b/c",
    "a/bc",
    "a//b",
    "a\nb",
    "a\x00b",
    "a'b\"c",
    "a\\b",
    "revision",
    "compaction",
    "ä",
    "a\u0301",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "\U0010ffff\U0010ffff",
    "z" * 1000,
]


async def keys_of(store: Store, prefix: str = "") -> list[str]:
    return [entry.key for entry in (await store.list(prefix)).entries]


def test_what_is_written_can_be_read(home: Home) -> None:
    async def scenario(store: Store) -> None:
        assert await store.get("a") is None

        first = await store.write(Put("a", b"1"))
        assert await store.get("a") == Entry("a", b"1", first, first)

        second = await store.write(Put("a", b"2"))
        assert second > first
        assert await store.get("a") == Entry("a", b"2", second, first)

        third = await store.write(Delete("a"))
        assert third > second
        assert await store.get("a") is None

        fourth = await store.write(Put("a", b""))
        assert await store.get("a") == Entry("a", b"", fourth, fourth)
        assert await store.revision() == fourth

    home.run(scenario)


def test_an_empty_store_has_empty_pages(home: Home) -> None:
    async def scenario(store: Store) -> None:
        page = await store.list("")
        assert page == ([], await store.revision(), 0)

    home.run(scenario)


def test_keys_may_be_odd(home: Home) -> None:
    async def scenario(store: Store) -> None:
        for key in reversed(ODD_KEYS):
            await store.write(Put(key, key.encode()))
        for key in ODD_KEYS:
            entry = await store.get(key)
            assert entry is not None
            assert (entry.key, entry.value) == (key, key.encode())
        for prefix in ODD_KEYS:
            expected = sorted(key for key in ODD_KEYS if key.startswith(prefix))
            assert await keys_of(store, prefix) == expected
        for after in ODD_KEYS:
            page = await store.list("a", after=after)
            assert [entry.key for entry in page.entries] == sorted(
                key for key in ODD_KEYS if key.startswith("a") and key > after
            )
        await store.write(*(Delete(key) for key in ODD_KEYS))
        assert await keys_of(store) == []

    home.run(scenario)


def test_values_may_be_any_bytes(home: Home) -> None:
    async def scenario(store: Store) -> None:
        values = [b"", b"\x00", bytes(range(256)), b"x" * 1_000_000]
        for index, value in enumerate(values):
            await store.write(Put(f"k{index}", value))
        assert [entry.value for entry in (await store.list("k")).entries] == values

    home.run(scenario)


@pytest.mark.parametrize("key", ["", "a\ud800"], ids=["empty", "half-a-character"])
def test_a_key_without_meaning_is_refused(home: Home, key: str) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(StorageError, match="not a valid key"):
            await store.write(Put(key, b""))
        assert await store.get(key) is None
        assert await keys_of(store) == []

    home.run(scenario)


def test_pages_follow_each_other_without_gap_or_overlap(home: Home) -> None:
    async def scenario(store: Store) -> None:
        wanted = [f"a/{index:02}" for index in range(25)]
        await store.write(*(Put(key, b"") for key in wanted))
        await store.write(Put("a", b""), Put("b/1", b""))
        revision = await store.revision()
        seen: list[str] = []
        after = ""
        while True:
            page = await store.list("a/", after=after, limit=10, revision=revision)
            assert page.revision == revision
            seen += [entry.key for entry in page.entries]
            assert page.remaining == 25 - len(seen)
            if not page.remaining:
                break
            assert len(page.entries) == 10
            after = page.entries[-1].key
            await store.write(Put("a/00", b"new"), Delete("a/24"), Put(f"a/new{after}", b""))
        assert seen == wanted

        now = await store.list("a/", limit=3)
        assert [entry.key for entry in now.entries] == wanted[:3]
        assert now.remaining == 23
        assert (await store.list("a/", after="a/zz")).entries == []
        assert len((await store.list("a/", after="A")).entries) == 26

    home.run(scenario)


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(Put("a", b"new", MISSING), id="create-existing"),
        pytest.param(Put("a", b"new", 1 << 40), id="update-stale"),
        pytest.param(Delete("a", 1 << 40), id="delete-stale"),
        pytest.param(Delete("a", MISSING), id="delete-existing-as-missing"),
        pytest.param(Check("a", MISSING), id="check-missing"),
        pytest.param(Check("a", 1 << 40), id="check-stale"),
        pytest.param(Put("none", b"new", 1 << 40), id="update-missing"),
        pytest.param(Delete("none", 1 << 40), id="delete-missing"),
        pytest.param(Check("none", 1 << 40), id="check-of-missing"),
    ],
)
def test_a_conflict_says_what_was_found_and_changes_nothing(
    home: Home, operation: Operation
) -> None:
    async def scenario(store: Store) -> None:
        revision = await store.write(Put("a", b"old"), Put("b", b"old"))
        for operations in (
            [operation],
            [Put("b", b"new"), Put("c", b""), operation],
            [operation, Delete("b")],
        ):
            with pytest.raises(RevisionConflictError) as caught:
                await store.write(*operations)
            error = caught.value
            assert error.key == operation.key
            assert error.expected == operation.expected
            assert error.actual == (revision if operation.key == "a" else MISSING)
        assert await store.revision() == revision
        entries = (await store.list("")).entries
        assert [(entry.key, entry.value, entry.revision) for entry in entries] == [
            ("a", b"old", revision),
            ("b", b"old", revision),
        ]

    home.run(scenario)


def test_of_several_conflicts_the_first_is_reported(home: Home) -> None:
    async def scenario(store: Store) -> None:
        await store.write(Put("b", b""))
        with pytest.raises(RevisionConflictError) as caught:
            await store.write(Put("a", b""), Check("b", MISSING), Check("c", 7))
        assert caught.value.key == "b"

    home.run(scenario)


def test_expectations_that_hold(home: Home) -> None:
    async def scenario(store: Store) -> None:
        first = await store.write(Put("a", b"1", MISSING), Check("b", MISSING))
        second = await store.write(Put("a", b"2", first))
        third = await store.write(Put("b", b"1", MISSING), Check("a", second))
        fourth = await store.write(Delete("a", second), Delete("c", MISSING), Check("b", third))
        assert await store.revision() == fourth
        assert (await store.list("")).entries == [Entry("b", b"1", third, third)]

    home.run(scenario)


def test_a_write_of_several_keys_has_one_revision(home: Home) -> None:
    async def scenario(store: Store) -> None:
        old = await store.write(Put("b", b""), Put("c", b""))
        new = await store.write(Put("a", b"1"), Delete("b"), Put("c", b"2", old), Delete("d"))
        page = await store.list("")
        assert page.entries == [Entry("a", b"1", new, new), Entry("c", b"2", new, old)]
        assert page.revision == new

    home.run(scenario)


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([], id="nothing"),
        pytest.param([Delete("none")], id="delete-missing"),
        pytest.param([Delete("none", MISSING), Delete("no")], id="delete-as-missing"),
        pytest.param([Check("none", MISSING)], id="check"),
        pytest.param([Check("none", MISSING), Delete("no"), Delete("nothing")], id="both"),
    ],
)
def test_a_write_that_changes_nothing_has_no_revision(
    home: Home, operations: list[Operation]
) -> None:
    async def scenario(store: Store) -> None:
        revision = await store.write(Put("a", b""))
        assert await store.write(*operations) == revision
        assert await store.revision() == revision
        entry = await store.get("a")
        assert entry is not None
        assert await store.write(Check("a", entry.revision), *operations) == revision
        assert await store.write(Delete("a"), *operations) > revision

    home.run(scenario)


def test_a_key_twice_in_one_write_is_refused(home: Home) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(StorageError, match="twice"):
            await store.write(Put("a", b""), Delete("a"))
        assert await store.get("a") is None

    home.run(scenario)


def test_of_concurrent_creates_one_succeeds(home: Home) -> None:
    async def scenario(store: Store) -> None:
        outcomes = await asyncio.gather(
            *(store.write(Put("a", b"%d" % index, MISSING)) for index in range(20)),
            return_exceptions=True,
        )
        revisions = [outcome for outcome in outcomes if isinstance(outcome, int)]
        conflicts = [each for each in outcomes if isinstance(each, RevisionConflictError)]
        assert len(revisions) == 1
        assert [conflict.actual for conflict in conflicts] == revisions * 19

    home.run(scenario)


def test_concurrent_increments_are_not_lost(home: Home) -> None:
    async def scenario(store: Store) -> None:
        await store.write(Put("n", b"0"))

        async def increment() -> None:
            while True:
                entry = await store.get("n")
                assert entry is not None
                try:
                    await store.write(Put("n", b"%d" % (int(entry.value) + 1), entry.revision))
                except RevisionConflictError:
                    continue
                return

        await asyncio.gather(*(increment() for _ in range(20)))
        entry = await store.get("n")
        assert entry is not None
        assert entry.value == b"20"

    home.run(scenario)


def test_a_failed_write_does_not_spoil_its_neighbours(home: Home) -> None:
    async def scenario(store: Store) -> None:
        await store.write(Put("taken", b""))

        async def write(index: int) -> int:
            expected = MISSING if index % 3 else None
            key = "taken" if index % 3 == 1 else f"k{index:02}"
            return await store.write(Put(key, b"", expected), Put(f"x{index:02}", b""))

        outcomes = await asyncio.gather(
            *(write(index) for index in range(30)), return_exceptions=True
        )
        for index, outcome in enumerate(outcomes):
            assert isinstance(outcome, RevisionConflictError) == (index % 3 == 1)
        revisions = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert len(set(revisions)) == 20
        written = [index for index in range(30) if index % 3 != 1]
        assert await keys_of(store, "k") == [f"k{index:02}" for index in written]
        assert await keys_of(store, "x") == [f"x{index:02}" for index in written]

    home.run(scenario)


def test_a_write_whose_caller_went_away_does_no_harm(home: Home) -> None:
    async def scenario(store: Store) -> None:
        tasks = [asyncio.create_task(store.write(Put(f"k{index}", b""))) for index in range(10)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        written = {outcome for outcome in outcomes[1::2] if isinstance(outcome, int)}
        assert len(written) == 5
        assert await store.write(Put("after", b"")) > max(written)
        assert {f"k{index}" for index in range(1, 10, 2)} < set(await keys_of(store, ""))

    home.run(scenario)


def test_writes_under_way_are_finished_before_closing(home: Home) -> None:
    async def scenario() -> None:
        async with home.open() as store:
            writes = [asyncio.create_task(store.write(Put(f"{n}", b""))) for n in range(50)]
            await asyncio.sleep(0)
        revisions = [await write for write in writes]
        assert len(set(revisions)) == 50
        with pytest.raises(StoreUnavailableError):
            await store.write(Put("late", b""))
        await store.close()

    run(scenario())


def test_everything_is_there_after_opening_again(lasting_home: Home) -> None:
    async def first(store: Store) -> int:
        await store.write(Put("a", b"1"), Put("b", b"1"), Put("c", b"1"))
        await store.write(Put("b", b"2"))
        return await store.write(Delete("c"))

    async def second(store: Store) -> None:
        assert await store.revision() == last
        assert [(entry.key, entry.value) for entry in (await store.list("")).entries] == [
            ("a", b"1"),
            ("b", b"2"),
        ]
        assert await store.write(Put("c", b"2")) > last

    last = lasting_home.run(first)
    lasting_home.run(second)


def test_revisions_do_not_repeat_when_the_last_is_compacted(lasting_home: Home) -> None:
    async def first(store: Store) -> int:
        await store.write(Put("a", b"1"))
        last = await store.write(Delete("a"))
        await store.compact(last)
        return last

    async def second(store: Store) -> None:
        assert await store.revision() == last
        assert await store.oldest() == last
        assert await store.write(Put("a", b"2")) > last

    last = lasting_home.run(first)
    lasting_home.run(second)
