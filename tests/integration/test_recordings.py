"""A cluster is recorded, asked about at any time, and replayed: always the same answers."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.client import Client
from allot.client.history import resource_version_at
from allot.client.in_process import InProcessTransport
from allot.client.snapshot import Snapshot
from allot.client.snapshot_lists import take_snapshot
from allot.questions.cluster_clone import clone_cluster
from allot.questions.observed_cluster import KINDS
from allot.questions.recording import recorder as recorder_module
from allot.questions.recording.reader import Recording
from allot.questions.recording.recorder import Recorder, observed, open_log
from allot.questions.recording.replay import Replay
from allot.questions.recording.writer import Limits
from allot.testing.processes import PROGRAM
from allot.testing.servers import TOKEN, LocalServer
from tests.acceptance.runner.rest import RestClient
from tests.integration.test_up import PODS, START_SECONDS, TEMPLATE, allot

SECONDS = 30.0


def a_client(server: LocalServer) -> Client:
    return Client(InProcessTransport(server.server.app, TOKEN))


def contents(snapshot: Snapshot) -> list[str]:
    """What scheduling reads of a cluster, in any order."""
    return sorted(json.dumps(each, sort_keys=True) for each in clone_cluster(snapshot, salt=b"s"))


@asynccontextmanager
async def recorded(client: Client, path: Path) -> AsyncIterator[Recorder]:
    """The recording goes on until the end of the block."""
    about = observed(await take_snapshot(client, KINDS), KINDS, anonymized=False)
    log = open_log(path, about, Limits(), b"s")
    recorder = Recorder(client, log, about.readable, lambda: datetime.now(UTC))
    running = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(SECONDS):
            await recorder.begun.wait()
        yield recorder
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def seen(path: Path, wanted: list[str]) -> None:
    """Wait until the recording has come to this state."""
    async with asyncio.timeout(SECONDS):
        while True:
            with Recording.open(path) as recording:
                if contents(recording.snapshot_at(recording.ends)) == wanted:
                    return
            await asyncio.sleep(0.05)


async def change(client: Client, chance: random.Random) -> None:
    """Create, change or delete a pod."""
    name = f"pod-{chance.randrange(4)}"
    key = ObjectKey("default", name)
    pod = await client.find(resources.PODS, key)
    if pod is None:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await client.create(resources.PODS, resources.PODS.codec.decode(json.dumps(body).encode()))
    elif chance.random() < 0.5:
        labels = {"metadata": {"labels": {"app": str(chance.random())}}}
        await client.patch(resources.PODS, key, labels)
    else:
        await client.delete(resources.PODS, key)


def test_a_recording_has_the_states_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of before a restart of the recorder; the server's own history says the same, and so does a replay."""
    monkeypatch.setattr(recorder_module, "FLUSH_SECONDS", 0.05)
    path = tmp_path / "r"
    chance = random.Random(7)  # noqa: S311

    async def scenario() -> None:
        states: dict[datetime, list[str]] = {}
        async with LocalServer() as server:
            client = a_client(server)
            for _ in range(3):
                async with recorded(client, path):
                    for _ in range(8):
                        await change(client, chance)
                        state = contents(await take_snapshot(client, KINDS))
                        await seen(path, state)
                        states[datetime.now(UTC)] = state
                        await asyncio.sleep(0.01)
                await change(client, chance)  # while it is not recorded
            await asyncio.sleep(1.1)  # the times of revisions are a second apart
            now = datetime.now(UTC)
            version = await resource_version_at(client, now)
            current = contents(await take_snapshot(client, KINDS))
            await asyncio.sleep(1.1)
            await change(client, chance)
            past = await take_snapshot(client, KINDS, resource_version=version)
            assert contents(past) == current
            assert contents(await take_snapshot(client, KINDS)) != current
        with Recording.open(path) as recording:
            assert len(recording.gaps) == 2
            for moment, state in states.items():
                assert contents(recording.snapshot_at(moment)) == state
            await replayed(recording, states)

    asyncio.run(scenario())


def test_a_recording_that_is_stopped_twice_is_written_to_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            client = a_client(server)
            about = observed(await take_snapshot(client, KINDS), KINDS, anonymized=False)
            log = open_log(tmp_path / "r", about, Limits(), b"s")
            recorder = Recorder(client, log, about.readable, lambda: datetime.now(UTC))
            running = asyncio.create_task(recorder.run())
            async with asyncio.timeout(SECONDS):
                await recorder.begun.wait()
            stopped = datetime.now(UTC)
            running.cancel()
            await asyncio.sleep(0)
            assert not running.done()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        with Recording.open(tmp_path / "r") as recording:
            assert recording.ends >= stopped

    asyncio.run(scenario())


async def replayed(recording: Recording, states: dict[datetime, list[str]]) -> None:
    async with LocalServer() as server:
        client = a_client(server)
        replay = Replay(recording, server.store, server.server.caches)
        await replay.show(recording.begins)
        then = recording.begins
        for moment, state in states.items():
            waits: list[float] = []

            async def sleep(seconds: float, waits: list[float] = waits) -> None:
                waits.append(seconds)

            await replay.play(then, moment, 10.0, sleep)
            assert sum(waits) == pytest.approx((moment - then).total_seconds() / 10)
            then = moment
            assert contents(await take_snapshot(client, KINDS)) == state
        await replay.show(recording.begins)
        first = contents(recording.snapshot_at(recording.begins))
        assert contents(await take_snapshot(client, KINDS)) == first


def test_times_before_what_a_server_keeps() -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            response = await server.ask("GET", "/history", query={"at": "2020-01-01T00:00:00Z"})
            assert response.code == 410
            assert "the history that is kept begins at 2" in response.json["message"]
            for text in ("", "yesterday", "2020-01-01T00:00:00"):
                response = await server.ask("GET", "/history", query={"at": text})
                assert response.code == 400
                assert "is not a time in RFC 3339" in response.json["message"]

    asyncio.run(scenario())


# --- the program ---


class RecordProcess:
    """`allot record`, in its own process."""

    def __init__(self, kubeconfig: Path, path: Path) -> None:
        command = [str(PROGRAM), "record", "--kubeconfig", str(kubeconfig), "-o", str(path)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline()

    def end(self, number: int) -> str:
        """What it said on standard error."""
        self._process.send_signal(number)
        _, errors = self._process.communicate(timeout=SECONDS)
        if number != signal.SIGKILL:
            assert self._process.returncode == 0, errors
        return errors


def answers(*where: str | Path) -> list[Any]:
    found = []
    for command in ("devices", "status"):
        ended = allot(command, *where, "-o", "json")
        assert ended.returncode == 0, ended.stderr
        answer = json.loads(ended.stdout)
        answer.pop(
            "notes", None
        )  # such as that nothing was recorded from then until the next start
        found.append(answer)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_recorded_killed_continued_and_replayed(tmp_path: Path) -> None:
    manifests, path, data = tmp_path / "w.yaml", tmp_path / "c.rec", tmp_path / "a"
    manifests.write_text(TEMPLATE)
    chance = random.Random(3)  # noqa: S311
    up = allot("up", "--data-dir", data, "--port", "0", "--wait", "-f", manifests)
    assert up.returncode == 0, up.stderr
    kubeconfig = data / "kubeconfig"
    by_time: dict[str, list[Any]] = {}
    try:
        with RestClient.from_kubeconfig(kubeconfig) as client:
            for round_ in range(4):
                process = RecordProcess(kubeconfig, path)
                said = "continuing" if round_ else "recording to"
                assert process.first_line.startswith(said)
                client.call("POST", PODS, body=a_gpu_pod(f"pod-{round_}"))
                wait_until_running(client, f"pod-{round_}")
                time.sleep(2)  # written every second
                now = datetime.now(UTC).replace(microsecond=0)
                expected = answers("--kubeconfig", kubeconfig)
                assert answers("-f", path) == expected
                if round_ < 3:
                    time.sleep(chance.random())
                    process.end(signal.SIGKILL)
                    with path.open("ab") as file:
                        file.write(b'{"at":"2026-')
                else:
                    time.sleep(2)
                    assert answers("--kubeconfig", kubeconfig, "--at", "-1s") == expected
                    process.end(signal.SIGTERM)
                by_time[now.isoformat()] = expected
        live = allot("devices", "--kubeconfig", kubeconfig, "--at", "2020-01-01T00:00:00Z")
        assert live.returncode == 2
        assert "the history that is kept begins at" in live.stderr
    finally:
        allot("down", "--data-dir", data)
    for moment, expected in by_time.items():
        assert answers("-f", path, "--at", moment) == expected
    with Recording.open(path) as recording:
        changes = [(each.key, each.at, each.object is None) for each in recording.changes()]
        assert len(changes) == len(set(changes))
        assert len(recording.gaps) == 3
    replay = subprocess.Popen(
        [str(PROGRAM), "replay", str(path), "--speed", "0", "--from", "-0s", "--port", "0",
         "--data-dir", str(tmp_path / "b")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert replay.stdout is not None
        while (line := replay.stdout.readline()) != "ready\n":
            assert line
        assert answers("--kubeconfig", tmp_path / "b" / "kubeconfig") == list(by_time.values())[-1]
    finally:
        replay.send_signal(signal.SIGTERM)
        replay.communicate(timeout=SECONDS)
        assert replay.returncode == 0


def a_gpu_pod(name: str) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    main = {"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [main], "resourceClaims": claims}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def wait_until_running(client: RestClient, name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while client.call("GET", f"{PODS}/{name}")["status"]["phase"] != "Running":
        assert time.monotonic() < deadline
        time.sleep(0.2)
