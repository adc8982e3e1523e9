"""The sorted map of current entries."""

from __future__ import annotations

import random

import pytest

from allot.storage.entries import MAX_INSERTED, Entries
from allot.storage.interface import Change, Entry

KEYS = [f"{kind}/{number}" for kind in "abc" for number in range(200)]


def an_entry(key: str, revision: int) -> Entry:
    return Entry(key, b"", revision, revision)


@pytest.mark.parametrize("writes", [1, MAX_INSERTED // 2, 4 * MAX_INSERTED])
def test_pages_are_sorted_however_many_writes_come_between_them(writes: int) -> None:
    chance = random.Random(writes)  # noqa: S311 - the same in every run
    known = {key: an_entry(key, 1) for key in chance.sample(KEYS, 100)}
    entries = Entries(known.values())
    revision = 1
    for _ in range(20):
        for _ in range(writes):
            revision += 1
            key = chance.choice(KEYS)
            old, new = known.get(key), an_entry(key, revision)
            if old is not None and chance.random() < 0.4:
                del known[key]
                entries.apply([Change(revision, key, None, old)])
            else:
                known[key] = new
                entries.apply([Change(revision, key, new, old)])
            assert entries.get(key) == known.get(key)
        assert len(entries) == len(known)
        for prefix in ("", "b/", "b/1", "d/"):
            expected = sorted(key for key in known if key.startswith(prefix))
            page = entries.page(prefix, "", 0, revision)
            assert [entry.key for entry in page.entries] == expected
            first = entries.page(prefix, "", 3, revision)
            assert [entry.key for entry in first.entries] == expected[:3]
            assert first.remaining == len(expected[3:])
