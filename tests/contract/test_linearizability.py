"""Every store: registers that many clients read and swap at once behave like one register."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict

import pytest

from allot.storage.etcd import EtcdStore
from allot.storage.interface import (
    MISSING,
    Delete,
    Entry,
    Put,
    RevisionConflictError,
    Store,
)
from tests.contract.etcd_server import EtcdServer
from tests.contract.homes import Home
from tests.contract.linearizability import Event, Outcome, Read, Swap, is_linearizable
from tests.contract.one_loop import run

REFUSED, UNKNOWN = Outcome.REFUSED, Outcome.UNKNOWN

REGISTERS = ["r/1", "r/2", "r/3"]


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([], id="nothing"),
        pytest.param([Event(Swap(None, "a"), 0, 1), Event(Read("a"), 2, 3)], id="one-by-one"),
        pytest.param([Event(Swap(None, "a"), 0, 3), Event(Read(None), 1, 2)], id="read-before"),
        pytest.param([Event(Swap(None, "a"), 0, 3), Event(Read("a"), 1, 2)], id="read-after"),
        pytest.param(
            [
                Event(Swap(None, "a"), 0, 9),
                Event(Swap(None, "b", REFUSED), 0, 9),
                Event(Swap("a", "c"), 0, 9),
                Event(Read("c"), 0, 9),
                Event(Read("a"), 0, 9),
            ],
            id="all-at-once",
        ),
        pytest.param(
            [Event(Swap(None, "a", UNKNOWN), 0), Event(Read(None), 1, 2), Event(Read("a"), 3, 4)],
            id="lost-answer-happened-late",
        ),
        pytest.param(
            [Event(Swap(None, "a", UNKNOWN), 0), Event(Read(None), 5, 6)], id="lost-and-not-done"
        ),
        pytest.param(
            [Event(Swap(None, "a"), 0, 1), Event(Swap("a", None), 2, 3), Event(Read(None), 4, 5)],
            id="deleted",
        ),
    ],
)
def test_histories_of_a_register(history: list[Event]) -> None:
    assert is_linearizable(history)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([Event(Swap(None, "a"), 0, 1), Event(Read(None), 2, 3)], id="stale-read"),
        pytest.param(
            [Event(Read("a"), 0, 1), Event(Swap(None, "a"), 2, 3)], id="read-of-the-future"
        ),
        pytest.param(
            [
                Event(Swap(None, "a"), 0, 1),
                Event(Swap("a", "b"), 2, 5),
                Event(Swap("a", "c"), 3, 6),
            ],
            id="lost-update",
        ),
        pytest.param(
            [
                Event(Swap(None, "a"), 0, 9),
                Event(Read("a"), 1, 2),
                Event(Read(None), 3, 4),
            ],
            id="back-in-time",
        ),
        pytest.param(
            [Event(Swap(None, "a"), 0, 1), Event(Swap("a", "b", REFUSED), 2, 3)],
            id="refused-without-reason",
        ),
        pytest.param(
            [
                Event(Swap(None, "a", UNKNOWN), 0),
                Event(Read("a"), 1, 2),
                Event(Read(None), 3, 4),
            ],
            id="lost-answer-undone",
        ),
    ],
)
def test_histories_of_no_register(history: list[Event]) -> None:
    assert not is_linearizable(history)


async def use_registers(stores: list[Store], clients: int, actions: int) -> dict[str, list[Event]]:
    """Read and swap at random; what was seen of each register."""
    histories: dict[str, list[Event]] = defaultdict(list)

    async def client(number: int) -> None:
        chance = random.Random(number)  # noqa: S311
        store = stores[number % len(stores)]
        known: dict[str, tuple[str | None, int]] = {}
        for count in range(actions):
            key = chance.choice(REGISTERS)
            called = time.monotonic()
            action: Read | Swap
            if key not in known or chance.random() < 0.4:
                entry = await store.get(key)
                known[key] = (entry.value.decode(), entry.revision) if entry else (None, MISSING)
                action = Read(known[key][0])
            else:
                old, revision = known.pop(key)
                new = None if old is not None and chance.random() < 0.2 else f"{number}.{count}"
                operation = Put(key, new.encode(), revision) if new else Delete(key, revision)
                try:
                    written = await store.write(operation)
                except RevisionConflictError:
                    action = Swap(old, new, REFUSED)
                else:
                    action = Swap(old, new)
                    known[key] = new, written if new else MISSING
            histories[key].append(Event(action, called, time.monotonic()))
            if chance.random() < 0.3:
                await asyncio.sleep(0)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return histories


def check_histories(histories: dict[str, list[Event]]) -> None:
    for key, history in histories.items():
        assert is_linearizable(history), key
        swaps = [event.action for event in history if isinstance(event.action, Swap)]
        # The test says something only if clients got into each other's way.
        assert {swap.outcome for swap in swaps} == {Outcome.DONE, REFUSED}


def test_registers_of_one_process(home: Home) -> None:
    async def scenario(store: Store) -> None:
        check_histories(await use_registers([store], clients=8, actions=100))

    home.run(scenario)


def test_registers_of_several_processes(etcd: EtcdServer) -> None:
    async def scenario() -> None:
        stores: list[Store] = [await EtcdStore.connect([etcd.url], "/registers/") for _ in range(2)]
        check_histories(await use_registers(stores, clients=8, actions=100))
        for store in stores:
            await store.close()

    run(scenario())


def test_a_store_with_stale_reads_is_found_out(home: Home) -> None:
    async def scenario(store: Store) -> None:
        get = store.get
        first: Entry | None = None
        reads = 0

        async def stale(key: str) -> Entry | None:
            """Every now and then what was there at first."""
            nonlocal first, reads
            entry = await get(key)
            if key != REGISTERS[0]:
                return entry
            reads += 1
            first = first or entry
            return first if reads % 10 == 0 else entry

        store.get = stale  # type: ignore[method-assign]
        histories = await use_registers([store], clients=8, actions=100)
        assert not is_linearizable(histories[REGISTERS[0]])

    home.run(scenario)
