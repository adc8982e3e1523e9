"""What a pod takes in `allot up`, where components are linked: messages, and commits that are waited for.

Speed is guarded by counting steps, which are the same on every machine.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from allot import features
from allot.apiserver.http.link_server import LinkServer
from allot.client.client import Client
from allot.client.link import AnyFrame, Link, LinkTransport, RequestFrame, SequenceFrame
from allot.components import ClusterParts, Components
from allot.storage.interface import Store
from allot.storage.revision_log import RevisionLog
from allot.storage.sqlite import SqliteStore
from allot.storage.transactions import Batch
from allot.testing.servers import LocalServer

DRA = "/apis/resource.k8s.io/v1"
ALL_PODS = "/api/v1/namespaces/default/pods"
CLAIMS_AND_PODS = re.compile(r"registry/(pods|resourceclaims\.[^/]*)/default/")
HELD_SECONDS = 60.0


class HeldCommits:
    """Commits of what components write end only after the writer has been answered."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._answered = threading.Semaphore(0)
        self.held = 0
        append, answer = RevisionLog.append, LinkServer._answer

        def held(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
            for change in (change for batch in batches for change in batch):
                is_new_pod = change.previous is None and "/pods/" in change.key
                if CLAIMS_AND_PODS.match(change.key) and not is_new_pod:
                    self.held += 1
                    assert self._answered.acquire(timeout=HELD_SECONDS)
            append(log, batches, last, time)

        async def answered(server: LinkServer, frame: RequestFrame) -> int:
            code = await answer(server, frame)
            if frame.method != "GET" and is_about_pod(frame):
                self._answered.release()
            return code

        patch.setattr(RevisionLog, "append", held)
        patch.setattr(LinkServer, "_answer", answered)


def is_about_pod(frame: RequestFrame) -> bool:
    return "/namespaces/default/" in frame.path and "/events" not in frame.path


class CountingLink(Link):
    """Counts the messages about pods and claims of the default namespace."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Counter[str] = Counter()
        send = self.send

        def counted(frame: AnyFrame) -> None:
            match frame:
                case SequenceFrame():
                    self.sent[" + ".join(map(_name, frame.requests))] += 1
                case RequestFrame() if is_about_pod(frame) and not frame.is_stream:
                    self.sent[_name(frame)] += 1
            send(frame)

        self.send = counted


def _name(frame: RequestFrame) -> str:
    resource = frame.path.partition("/namespaces/default/")[2]
    return f"{frame.method} {re.sub(r'/p[^/]*', '/NAME', resource)}"


async def until_known(components: Components) -> None:
    """Returns when the components have received what a pod needs."""
    assert components._informers is not None
    needed = {"nodes", "deviceclasses", "resourceslices", "resourceclaimtemplates"}
    while True:
        informers = components._informers._informers.values()
        if needed <= {each.resource.plural for each in informers if each.list()}:
            return
        await asyncio.sleep(0.01)


async def bind_a_pod(server: LocalServer, components: Components) -> None:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec: dict[str, Any] = {"driver": "d.example.com", "nodeName": "n", "pool": pool}
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "100"}
    node = {"metadata": {"name": "n"}, "status": {"capacity": amounts, "allocatable": amounts}}
    await server.post("/api/v1/nodes", node)
    await server.post(f"{DRA}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
    slice_ = {"metadata": {"name": "s"}, "spec": {**spec, "devices": [{"name": "d"}]}}
    await server.post(f"{DRA}/resourceslices", slice_)
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    await server.post(f"{DRA}/namespaces/default/resourceclaimtemplates", template)
    await until_known(components)
    container = {"name": "m", "image": "i", "resources": {"claims": [{"name": "c"}]}}
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
    pod = {"containers": [container], "resourceClaims": claims}
    async with server.watch(ALL_PODS) as events:
        await server.post(ALL_PODS, {"metadata": {"name": "p"}, "spec": pod})
        while True:
            event = await events.next()
            assert event is not None
            if event["object"]["spec"].get("nodeName") == "n":
                return


@asynccontextmanager
async def linked_components(
    server: LocalServer, store: Store
) -> AsyncIterator[tuple[CountingLink, Components]]:
    """Scheduler and controllers at the other end of a link to the server, to be started and stopped."""
    ours, theirs = socket.socketpair()
    other_end = LinkServer(server.server.app, store)
    await other_end.start(theirs)
    link = CountingLink()
    await asyncio.get_running_loop().create_connection(lambda: link._protocol, sock=ours)
    components = Components(
        lambda user, agent: Client(LinkTransport(link, user, agent)),
        ClusterParts(nodes=None),
        features.DEFAULTS,
    )
    try:
        yield link, components
    finally:
        await components.stop()
        link.close()
        await other_end.close()


def test_a_pod_takes_two_messages_and_components_wait_for_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = HeldCommits(monkeypatch)

    async def story() -> Counter[str]:
        store = await SqliteStore.open(tmp_path / "store.db", shows_pending_writes=True)
        async with (
            asyncio.timeout(150),
            LocalServer(store) as server,
            linked_components(server, store) as (link, components),
        ):
            await components.start()
            await bind_a_pod(server, components)
        return link.sent

    sent = asyncio.run(story())

    about = {name: count for name, count in sent.items() if "/NAME" in name or " + " in name}
    assert about == {
        "POST resourceclaims + PATCH pods/NAME/status": 1,
        "PUT resourceclaims/NAME + POST pods/NAME/binding": 1,
    }
    assert commits.held == 4
