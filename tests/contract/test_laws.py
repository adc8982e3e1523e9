"""Every store does what a plain dictionary of states would do, whatever is asked of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from allot.storage.interface import (
    MISSING,
    Check,
    CompactedError,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    Store,
)
from tests.contract.etcd_server import EtcdServer
from tests.contract.homes import SMALL_WINDOW, EtcdHome, Home, MemoryHome, SqliteHome
from tests.contract.one_loop import run

KEYS = ["a", "a/", "a/1", "a/2", "b", "ä"]
PREFIXES = ["", "a", "a/", "b", "c"]


class Intent(NamedTuple):
    """An operation whose expected revision is chosen when the state is known."""

    kind: str
    key: str
    expectation: str


class Write(NamedTuple):
    intents: list[Intent]


class ListPages(NamedTuple):
    prefix: str
    age: int
    limit: int


class WatchFrom(NamedTuple):
    prefix: str
    age: int


class Compact(NamedTuple):
    age: int


class Reopen(NamedTuple):
    pass


Step = Write | ListPages | WatchFrom | Compact | Reopen

intents = st.builds(
    Intent,
    st.sampled_from(["put", "put", "delete", "check"]),
    st.sampled_from(KEYS),
    st.sampled_from(["any", "any", "missing", "right", "right", "wrong"]),
)
ages = st.integers(0, 20)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Write, st.lists(intents, max_size=4, unique_by=lambda intent: intent.key)),
    st.builds(Write, st.lists(intents, max_size=4, unique_by=lambda intent: intent.key)),
    st.builds(ListPages, st.sampled_from(PREFIXES), ages, st.integers(0, 3)),
    st.builds(WatchFrom, st.sampled_from(PREFIXES), ages),
    st.builds(Compact, ages),
    st.builds(Reopen),
)


class Model:
    """The states of all revisions, as dictionaries."""

    def __init__(self, revision: int) -> None:
        self.states: dict[int, dict[str, Entry]] = {revision: {}}
        self.oldest = 0

    @property
    def revision(self) -> int:
        return max(self.states)

    @property
    def now(self) -> dict[str, Entry]:
        return self.states[self.revision]

    def revision_of_age(self, age: int) -> int:
        return sorted(self.states)[max(0, len(self.states) - 1 - age)]

    def operation(self, intent: Intent, value: bytes) -> Operation:
        entry = self.now.get(intent.key)
        actual = entry.revision if entry else MISSING
        expected = {"any": None, "missing": MISSING, "right": actual, "wrong": actual + 1}[
            intent.expectation
        ]
        match intent.kind:
            case "put":
                return Put(intent.key, value, expected)
            case "delete":
                return Delete(intent.key, expected)
            case _:
                return Check(intent.key, actual if expected is None else expected)

    def conflict(self, operations: list[Operation]) -> tuple[str, int] | None:
        for operation in operations:
            entry = self.now.get(operation.key)
            actual = entry.revision if entry else MISSING
            if operation.expected not in {None, actual}:
                return operation.key, actual
        return None

    def after(self, operations: list[Operation], revision: int) -> dict[str, Entry]:
        state = dict(self.now)
        for operation in operations:
            if isinstance(operation, Put):
                old = state.get(operation.key)
                created = old.created if old else revision
                state[operation.key] = Entry(operation.key, operation.value, revision, created)
            elif isinstance(operation, Delete):
                state.pop(operation.key, None)
        return state

    def changes(self, prefix: str, after: int) -> list[tuple[int, dict[str, object]]]:
        """Per revision the keys that differ from the revision before, with what they were and are."""
        revisions = sorted(self.states)
        found = []
        for before, revision in pairwise(revisions):
            if revision > after:
                old, new = self.states[before], self.states[revision]
                differing: dict[str, object] = {
                    key: (old.get(key), new.get(key))
                    for key in old.keys() | new.keys()
                    if key.startswith(prefix) and old.get(key) != new.get(key)
                }
                if differing:
                    found.append((revision, differing))
        return found


async def write(store: Store, model: Model, step: Write, value: bytes) -> None:
    operations = [model.operation(intent, value) for intent in step.intents]
    conflict = model.conflict(operations)
    if conflict is not None:
        with pytest.raises(RevisionConflictError) as caught:
            await store.write(*operations)
        assert (caught.value.key, caught.value.actual) == conflict
        return
    last = model.revision
    revision = await store.write(*operations)
    state = model.after(operations, revision)
    if state == model.now:
        assert revision == last
    else:
        assert revision > last
        model.states[revision] = state


async def list_pages(store: Store, model: Model, step: ListPages) -> None:
    revision = model.revision_of_age(step.age)
    expected = [
        entry
        for key, entry in sorted(model.states[revision].items())
        if key.startswith(step.prefix)
    ]
    seen: list[Entry] = []
    after = ""
    while True:
        try:
            page = await store.list(step.prefix, revision=revision, after=after, limit=step.limit)
        except CompactedError:
            assert revision < model.oldest
            return
        assert revision >= model.oldest
        seen += page.entries
        assert page.remaining == len(expected) - len(seen)
        if not page.remaining:
            break
        after = seen[-1].key
    assert seen == expected


async def watch_from(store: Store, model: Model, step: WatchFrom) -> None:
    after = model.revision_of_age(step.age)
    expected = model.changes(step.prefix, after)
    await store.revision()
    async with store.watch(step.prefix, after) as watch:
        if after < model.oldest:
            with pytest.raises(CompactedError):
                await asyncio.wait_for(anext(watch), 120)
            return
        found = []
        for _ in expected:
            changes = await asyncio.wait_for(anext(watch), 120)
            differing = {change.key: (change.previous, change.entry) for change in changes}
            assert len(differing) == len(changes)
            found.append((changes[0].revision, differing))
        assert found == expected
        assert watch.pending() == []


async def play(home: Home, script: list[Step]) -> None:
    store = await home._open(SMALL_WINDOW)
    try:
        model = Model(await store.revision())
        for number, step in enumerate(script):
            match step:
                case Write():
                    await write(store, model, step, b"%d" % number)
                case ListPages():
                    await list_pages(store, model, step)
                case WatchFrom():
                    await watch_from(store, model, step)
                case Compact(age):
                    revision = model.revision_of_age(age)
                    await store.compact(revision)
                    model.oldest = max(model.oldest, revision)
                case Reopen():
                    if not isinstance(home, MemoryHome):
                        await store.close()
                        store = await home._open(SMALL_WINDOW)
            assert await store.revision() == model.revision
            for key in KEYS:
                assert await store.get(key) == model.now.get(key)
    finally:
        await store.close()


scripts = st.lists(steps, min_size=1, max_size=40)


def check(make_home: Callable[[], Home], script: list[Step]) -> None:
    run(play(make_home(), script))


@settings(max_examples=150, deadline=None)
@given(scripts)
def test_memory_agrees_with_the_model(script: list[Step]) -> None:
    check(MemoryHome, script)


@settings(max_examples=100, deadline=None)
@given(st.booleans(), scripts)
def test_sqlite_agrees_with_the_model(pending: bool, script: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        check(lambda: SqliteHome(Path(directory), shows_pending_writes=pending), script)


@settings(
    max_examples=15,
    deadline=None,
    phases=(
        Phase.explicit,
        Phase.generate,
    ),  # to make examples smaller takes long with a real server
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(script=scripts)
@example(
    script=[
        Write([Intent("put", "a/", "any"), Intent("put", "b", "any")]),
        Compact(0),
        Reopen(),
        WatchFrom("b", 3),
    ]
)
def test_etcd_agrees_with_the_model(etcd: EtcdServer, script: list[Step]) -> None:
    check(lambda: EtcdHome(etcd.url), script)
