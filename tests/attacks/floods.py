"""Requests that are dear for the server: many, large, or never finished.

Each function sends until it is told to stop, or until it has sent what it has to send. All are bounded in number.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Final, Self

from allot.testing.http_client import Address
from tests.attacks import bombs
from tests.attacks.manifests import (
    Manifest,
    collection,
    collection_of,
    config_map,
    pod,
    pool_status_request,
)

MEGABYTE: Final = 1024 * 1024
MAX_BODY: Final = 3 * MEGABYTE - 1024
JSON: Final = "application/json"
YAML: Final = "application/yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
CONFIG_MAPS: Final = collection("ConfigMap")
PODS: Final = collection("Pod")
GONE: Final = (OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError)


@dataclass
class Flood:
    """Where it goes, when it ends, and what came back."""

    address: Address
    stopping: threading.Event = field(default_factory=threading.Event)
    codes: Counter[str] = field(default_factory=Counter)
    longest_answer: int = 0
    most_headers: int = 0
    broken: str = ""
    """Why it could not go on, if so."""

    @property
    def anonymous(self) -> Address:
        return self.address._replace(token="")


Run = Callable[[Flood], Awaitable[None]]


class Socket:
    """A TLS connection on which anything can be sent."""

    def __init__(self, flood: Flood, address: Address | None = None, limit: int = 2**24) -> None:
        """`limit` is about how much of an answer is taken before it is read."""
        self._flood, self._address, self._limit = flood, address or flood.address, limit

    async def __aenter__(self) -> Self:
        address = self._address
        self._reader, self._writer = await asyncio.open_connection(
            address.host, address.port, ssl=address.context, limit=self._limit
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.transport.abort()

    def head(
        self, method: str, path: str, length: int, content_type: str = JSON, accept: str = JSON
    ) -> bytes:
        token = self._address.token
        authorization = f"authorization: Bearer {token}\r\n" if token else ""
        return (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\n{authorization}content-type: {content_type}\r\n"
            f"accept: {accept}\r\ncontent-length: {length}\r\n\r\n"
        ).encode()

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
    ) -> str:
        await self.send(self.head(method, path, len(body), content_type, accept) + body)
        return await self.answer()

    async def told(
        self, method: str, path: str, body: bytes = b"", content_type: str = JSON
    ) -> Any:
        """What the answer says."""
        await self.send(self.head(method, path, len(body), content_type, JSON) + body)
        await self.answer()
        return json.loads(self.content)

    async def answer(self) -> str:
        """Its code; the rest is counted."""
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].lower().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines)
        length = int(headers.get(b"content-length", b"0"))
        self.content = await self._reader.readexactly(length)
        if headers.get(b"transfer-encoding") == b"chunked":
            length = await self._read_chunks()
        flood = self._flood
        flood.longest_answer = max(flood.longest_answer, length)
        flood.most_headers = max(flood.most_headers, len(lines))
        code = status.split()[1].decode()
        flood.codes[code] += 1
        return code

    async def _read_chunks(self) -> int:
        """How many bytes there were."""
        total = 0
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            await self._reader.readexactly(size + 2)
            total += size
        await self._reader.readuntil(b"\r\n")
        return total

    async def read_all(self) -> None:
        """Until the server ends it."""
        while await self._reader.read(65536):
            pass


async def together(flood: Flood, works: Iterable[Awaitable[None]]) -> None:
    """All at once; broken connections are counted. Ends when the flood is to stop."""

    async def one(work: Awaitable[None]) -> None:
        try:
            await work
        except GONE as error:
            flood.codes[type(error).__name__] += 1

    tasks = [asyncio.ensure_future(one(work)) for work in works]
    while not flood.stopping.is_set() and not all(task.done() for task in tasks):
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- many ---


def creating(manifests: list[Manifest], connections: int = 4) -> Run:
    """Objects, as fast as so many clients can create them; those that are turned away are sent again."""

    async def run(flood: Flood) -> None:
        left = iter(manifests)

        async def work() -> None:
            async with Socket(flood) as client:
                for manifest in left:
                    body = json.dumps(manifest).encode()
                    while await client.ask("POST", collection_of(manifest), body) == "429":
                        await asyncio.sleep(0.5)

        await together(flood, (work() for _ in range(connections)))

    return run


def pool_status(requests: int = 60, limit: int = 1000) -> Run:
    """Questions about all pools, faster than they can be answered."""

    async def run(flood: Flood) -> None:
        numbers = iter(range(requests))

        async def work() -> None:
            async with Socket(flood) as client:
                for number in numbers:
                    asked = pool_status_request(f"flood-{number}", limit)
                    body = json.dumps(asked).encode()
                    await client.ask("POST", collection_of(asked), body)

        await together(flood, (work() for _ in range(4)))

    return run


def watches(number: int = 1000) -> Run:
    """Watches of all pods, all of them read, while pods come and go."""

    async def run(flood: Flood) -> None:
        gate = asyncio.Semaphore(20)

        async def work() -> None:
            async with gate:
                client = await Socket(flood).__aenter__()
                await client.send(client.head("GET", "/api/v1/pods?watch=true", 0))
            try:
                await client.read_all()
            finally:
                await client.__aexit__()

        async def change() -> None:
            async with Socket(flood) as client:
                await client.ask("POST", PODS, encoded(pod("watched", "no-such-claim")))
                for turn in count():
                    changed = {"metadata": {"annotations": {"turn": str(turn)}}}
                    await client.ask("PATCH", f"{PODS}/watched", encoded(changed), MERGE_PATCH)
                    await asyncio.sleep(0.5)

        await together(flood, [change(), *(work() for _ in range(number))])

    return run


# --- large, and never finished ---


def anonymous_bodies(number: int = 200, size: int = MAX_BODY) -> Run:
    """Bodies to a path that does not exist, without credentials."""

    async def run(flood: Flood) -> None:
        body = b"x" * size
        gate = asyncio.Semaphore(50)

        async def work() -> None:
            async with gate, Socket(flood, flood.anonymous) as client:
                await client.ask("POST", "/x", body)

        while not flood.stopping.is_set():
            await together(flood, (work() for _ in range(number)))

    return run


def half_bodies(number: int = 200, size: int = MAX_BODY) -> Run:
    """Requests whose second half never comes, with and without credentials."""

    async def run(flood: Flood) -> None:
        async def work(index: int) -> None:
            address = flood.address if index % 2 else flood.anonymous
            async with Socket(flood, address) as client:
                path = CONFIG_MAPS if index % 4 < 2 else "/x"
                await client.send(client.head("POST", path, size) + b"{" * (size // 2))
                await client.read_all()
                flood.codes["hung up"] += 1

        await together(flood, (work(index) for index in range(number)))

    return run


def idle_connections(number: int = 400) -> Run:
    """Connections that send nothing, half of them not even a TLS handshake."""

    async def run(flood: Flood) -> None:
        async def work(index: int) -> None:
            if index % 2:
                reader, writer = await asyncio.open_connection(
                    flood.address.host, flood.address.port
                )
                try:
                    await reader.read()
                finally:
                    writer.transport.abort()
            else:
                async with Socket(flood) as client:
                    await client.read_all()
            flood.codes["hung up"] += 1

        await together(flood, (work(index) for index in range(number)))

    return run


def large_maps(number: int = 40) -> Run:
    """ConfigMaps of nearly a megabyte, listed and rendered as YAML and as a table."""

    async def run(flood: Flood) -> None:
        value = 'line: "x"\n' * 9000

        async def list_all(accept: str) -> None:
            async with Socket(flood) as client:
                while True:
                    await client.ask("GET", CONFIG_MAPS, accept=accept)

        async with Socket(flood) as client:
            for index in range(number):
                data = {f"k{key}": value for key in range(10)}
                await client.ask("POST", CONFIG_MAPS, encoded(config_map(f"large-{index}", data)))
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        await together(flood, (list_all(accept) for accept in (YAML, JSON, table)))

    return run


# --- monsters ---


def repeated(*requests: tuple[str, str, Callable[[], bytes], str]) -> Run:
    """(method, path, body, content type), again and again on one connection each."""

    async def run(flood: Flood) -> None:
        async def work(method: str, path: str, body: bytes, content_type: str) -> None:
            while True:
                async with Socket(flood) as client:
                    with contextlib.suppress(*GONE):
                        while True:
                            await client.ask(method, path, body, content_type)
                            await asyncio.sleep(0.05)
                flood.codes["hung up"] += 1
                await asyncio.sleep(0.1)

        await together(flood, (work(m, p, make(), t) for m, p, make, t in requests))

    return run


def unknown_fields(number: int = 20_000) -> bytes:
    """A merge patch with so many fields that do not exist."""
    return encoded({"spec": {f"unknown{index}": index for index in range(number)}})


def copies(steps: int = 40) -> bytes:
    """A JSON patch that doubles a list again and again."""
    start: list[Any] = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    doubled = [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/annotations{index}"}
        for index in range(steps)
    ]
    return encoded(start + doubled)


def many_operations(number: int = 9_000) -> bytes:
    return encoded(
        [{"op": "add", "path": f"/data/k{index}", "value": "v"} for index in range(number)]
    )


def strategic_lists(number: int = 5_000) -> bytes:
    """A strategic merge patch of a list whose elements are found by their key."""
    tolerations = [{"key": f"k{index}", "operator": "Exists"} for index in range(number)]
    containers = [{"name": f"c{index}", "image": "i"} for index in range(number)]
    return encoded({"spec": {"tolerations": tolerations, "containers": containers}})


def large_yaml(size: int = MAX_BODY) -> bytes:
    head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n"
    line = b"  key-%07d: {a: [1, 2, 3], b: 'text'}\n"
    lines = (line % number for number in count())
    return head + b"".join(islice(lines, size // len(line % 0)))


def deep_yaml(depth: int = 500_000) -> bytes:
    return b"a: " + b"[" * depth


def deep_json(depth: int = 500_000) -> bytes:
    return b'{"a":' + b"[" * depth + b"]" * depth + b"}"


def anchors(levels: int = 30) -> bytes:
    """Every level holds the one before it nine times."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)
    ]
    return "\n".join(lines).encode()


def bad_labels(number: int = 30_000) -> bytes:
    labels = {f"not/a/label/{index}": "no value!" for index in range(number)}
    return encoded({"metadata": {"name": "labels", "labels": labels}})


def many_annotations(number: int = 20_000) -> bytes:
    annotations = {f"example.com/a{index}": "x" for index in range(number)}
    return encoded({"metadata": {"name": "annotations", "annotations": annotations}})


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


def patch_monsters() -> Run:
    target, patched = f"{CONFIG_MAPS}/patched", f"{PODS}/patched"
    return repeated(
        ("POST", CONFIG_MAPS, lambda: encoded(config_map("patched", {"a": "b"})), JSON),
        ("POST", PODS, lambda: encoded(pod("patched", "no-such-claim")), JSON),
        ("PATCH", patched, unknown_fields, MERGE_PATCH),
        ("PATCH", target, copies, JSON_PATCH),
        ("PATCH", target, many_operations, JSON_PATCH),
        ("PATCH", patched, strategic_lists, STRATEGIC_PATCH),
    )


def yaml_monsters() -> Run:
    return repeated(
        *(("POST", CONFIG_MAPS, make, YAML) for make in (large_yaml, deep_yaml, anchors)),
        ("POST", CONFIG_MAPS, deep_json, JSON),
    )


def label_monsters() -> Run:
    return repeated(
        ("POST", CONFIG_MAPS, bad_labels, JSON),
        ("POST", CONFIG_MAPS, many_annotations, JSON),
        ("POST", CONFIG_MAPS, lambda: encoded(_many_keys()), JSON),
    )


def _many_keys(number: int = 60_000) -> Manifest:
    return config_map("keys", {f"not a key {index}": "v" for index in range(number)})


def hopeless_pods(number: int = 10_000) -> Run:
    return creating(bombs.hopeless_claims(number))
