"""Sockets that appear in, and disappear from, registry directories."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allot.client.clock import LoopClock
from allot.kubelet.dra.plugin_watcher import PluginWatcher, RegistryListener, sockets_in

WAIT_SECONDS = 30.0


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="reg-"))
    yield path
    shutil.rmtree(path)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def test_only_sockets_without_a_dot(directory: Path) -> None:
    (directory / "sub").mkdir()
    bind(directory / "a.sock")
    bind(directory / ".hidden.sock")
    bind(directory / "sub" / "b.sock")
    (directory / "file.sock").touch()

    found, directories = sockets_in(str(directory))

    assert sorted(Path(each.path).name for each in found) == ["a.sock", "b.sock"]
    assert len(directories) == 2
    assert sockets_in(str(directory / "missing"))[0] == frozenset()


def test_changes_are_reported(directory: Path) -> None:
    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                await asyncio.sleep(0.005)

    async def main() -> None:
        changes: list[str] = []
        watcher = PluginWatcher(LoopClock(), poll_seconds=0.005)
        watcher.watch(
            directory,
            RegistryListener(
                lambda each: changes.append(f"+{Path(each.path).name}"),
                lambda each: changes.append(f"-{Path(each.path).name}"),
            ),
        )
        running = asyncio.create_task(watcher.run())
        bind(directory / "a.sock")
        await until(lambda: changes == ["+a.sock"])
        (directory / "a.sock").unlink()
        bind(directory / "a.sock")  # again: another process
        await until(lambda: changes[1:] == ["-a.sock", "+a.sock"])
        (directory / "a.sock").unlink()
        await until(lambda: changes[3:] == ["-a.sock"])
        watcher.forget(directory)
        running.cancel()

    asyncio.run(main())
