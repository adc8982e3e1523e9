"""A process that writes at full speed until it is killed, and says what was answered and shown to it.

    python -m tests.contract.crash_writer STORE WRITERS

Each writer counts up in a register of its own, `count/WRITER`, and in the same write in `copy/WRITER`. Lines on
the standard output:

    start REVISION                 before anything is written
    done WRITER COUNT REVISION     a write was answered
    seen REVISION                  the watcher was shown a revision

STORE is `sqlite:PATH`, `sqlite-pending:PATH` for a store that shows writes while they are committed, or `etcd:URL,...`.
Of the writers every other one submits its writes and goes on before they are durable.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from allot.storage.etcd import EtcdStore
from allot.storage.interface import (
    MISSING,
    Put,
    RevisionConflictError,
    Store,
    StoreUnavailableError,
)
from allot.storage.sqlite import SqliteStore

STDOUT = 1


def say(text: str) -> None:
    os.write(STDOUT, text.encode() + b"\n")


async def count_up(store: Store, writer: int) -> None:
    key, copy = f"count/{writer}", f"copy/{writer}"
    while True:
        try:
            entry = await store.get(key)
            count, revision = (int(entry.value), entry.revision) if entry else (0, MISSING)
            while True:
                value = b"%d" % (count + 1)
                send = store.submit if writer % 2 else store.write
                revision = await send(Put(key, value, revision), Put(copy, value))
                count += 1
                if writer % 2:
                    confirming.add(asyncio.create_task(confirm(store, writer, count, revision)))
                else:
                    say(f"done {writer} {count} {revision}")
        except StoreUnavailableError:
            await asyncio.sleep(0.01)  # not known: look again
        except RevisionConflictError:
            pass  # a write that was given up as not known happened late: look again


confirming: set[asyncio.Task[None]] = set()


async def confirm(store: Store, writer: int, count: int, revision: int) -> None:
    with suppress(StoreUnavailableError):
        await store.until_durable(revision)
        say(f"done {writer} {count} {revision}")


async def follow(store: Store, after: int) -> None:
    async for changes in store.watch("count/", after):
        await store.until_durable(changes[0].revision)
        say(f"seen {changes[0].revision}")


async def forget(store: Store, revision: int) -> None:
    """Compact what was before, while others write; from where the last process was killed in it."""
    oldest = await store.oldest()
    for upto in range(oldest, revision + 1, max(1, (revision - oldest) // 20)):
        try:
            await store.compact(upto)
        except StoreUnavailableError:
            return
        await asyncio.sleep(0.01)


async def main(name: str, writers: int) -> None:
    kind, _, place = name.partition(":")
    store: Store
    if kind.startswith("sqlite"):
        store = await SqliteStore.open(
            Path(place),
            compaction_interval_seconds=0,
            shows_pending_writes=kind == "sqlite-pending",
        )
    else:
        store = await EtcdStore.connect(place.split(","), timeout_seconds=5)
    start = await store.revision()
    say(f"start {start}")
    tasks = [follow(store, start), *(count_up(store, writer) for writer in range(writers))]
    if kind.startswith("sqlite"):  # compaction commits etcd's database: see etcd_server.py
        tasks.append(forget(store, start))
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
