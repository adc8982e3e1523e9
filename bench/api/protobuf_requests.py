"""Requests and answers of the API server in protobuf against the same in JSON, in one process without a socket.

    ./scripts/bench api/protobuf_requests

Times are medians of CPU time, in turns. "first" is an object of which no part was seen before, "changed" one that
was changed since, so that the answer is made anew, "kept" one whose answer is kept.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time_ns
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import MEDIA_TYPE, encode_document
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.api.protobuf import CLAIM, SLICE, a_slice, forget, recorded

JSON: Final = "application/json"
ROUNDS: Final = 80
LISTED: Final = 500
SERVER_FIELDS: Final = (
    "uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName", "generation",
    "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences",
)  # fmt: skip


class Request(NamedTuple):
    method: str
    path: str
    format: str
    body: bytes | None = None


class Client:
    """What clients do with objects of one kind."""

    def __init__(
        self, name: str, document: dict[str, Any], path: str, gvk: GroupVersionKind
    ) -> None:
        self._name = name
        self._document: dict[str, Any] = {name: document[name] for name in ("metadata", "spec")}
        for field in SERVER_FIELDS:
            self._document["metadata"].pop(field, None)
        self._path = path
        self._gvk = gvk
        self._store = MemoryStore()
        self._server = LocalServer(self._store)
        self._numbers = count()

    async def measure(self) -> None:
        async with self._server:
            await self._compare("create, first", self._new, seen=False)
            await self._compare("create", self._new)
            await self._ask(self._send("POST", self._path, JSON, "one"))
            await self._compare("update", self._changed)
            await self._compare("get, first", self._get_changed, seen=False)
            await self._compare("get, changed", self._get_changed)
            await self._compare("get, kept", self._get)
            await self._compare("update and watch event", self._changed, watched=True)

    async def measure_list(self) -> None:
        async with self._server:
            for n in range(LISTED):
                await self._ask(self._send("POST", self._path, JSON, f"listed-{n}"))
            await self._compare(f"list of {LISTED}, first", self._restart, seen=False, rounds=5)
            await self._compare(f"list of {LISTED}, restarted", self._restart, rounds=5)
            await self._compare(f"list of {LISTED}, kept", self._list, rounds=20)

    async def _compare(
        self,
        name: str,
        prepare: Callable[[str], Awaitable[Request]],
        *,
        seen: bool = True,
        watched: bool = False,
        rounds: int = ROUNDS,
    ) -> None:
        times: dict[str, list[int]] = {JSON: [], MEDIA_TYPE: []}
        for _ in range(rounds):
            for format_, found in times.items():
                request = await prepare(format_)
                if not seen:
                    forget()
                measured = self._ask_and_watch if watched else self._ask
                found.append(await measured(request))
        in_json, in_protobuf = (median(found) / 1000 for found in times.values())
        shown = f"{self._name}: {name}"
        ratio = in_protobuf / in_json
        print(f"{shown:46}{in_json:10.0f} µs{in_protobuf:10.0f} µs{ratio:8.1f}", flush=True)

    # --- requests ---

    async def _new(self, format_: str) -> Request:
        return self._send("POST", self._path, format_, f"new-{next(self._numbers)}")

    async def _changed(self, format_: str) -> Request:
        labels = {"number": str(next(self._numbers))}
        return self._send("PUT", f"{self._path}/one", format_, "one", labels)

    async def _get_changed(self, format_: str) -> Request:
        await self._ask(await self._changed(JSON))
        return await self._get(format_)

    async def _get(self, format_: str) -> Request:
        return Request("GET", f"{self._path}/one", format_)

    async def _list(self, format_: str) -> Request:
        return Request("GET", self._path, format_)

    async def _restart(self, format_: str) -> Request:
        """A list from a server that was just started, for clients that saw the objects before."""
        self._server = LocalServer(self._store)
        await self._server.__aenter__()
        await self._ask(Request("GET", f"{self._path}/listed-0", JSON))
        return await self._list(format_)

    def _send(
        self,
        method: str,
        path: str,
        format_: str,
        name: str,
        labels: dict[str, str] | None = None,
    ) -> Request:
        metadata = {**self._document["metadata"], "name": name, "labels": labels or {}}
        document = {**self._document, "metadata": metadata}
        if format_ == JSON:
            types = {"kind": self._gvk.kind, "apiVersion": str(self._gvk.group_version)}
            body = json.dumps(types | document, separators=(",", ":")).encode()
        else:
            body = encode_document(document, self._gvk)
        return Request(method, path, format_, body)

    async def _ask(self, request: Request) -> int:
        """Nanoseconds until the answer is there."""
        started = process_time_ns()
        answer = await self._server.ask(
            request.method,
            request.path,
            request.body,
            headers={"accept": request.format},
            content_type=request.format,
        )
        taken = process_time_ns() - started
        assert answer.code in (200, 201), answer
        return taken

    async def _ask_and_watch(self, request: Request) -> int:
        query = {"fieldSelector": "metadata.name=one"}
        headers = {"accept": request.format}
        async with self._server.watch(self._path, headers, **query) as stream:
            await stream.chunk()  # the object as it is
            taken = await self._ask(request)
            started = process_time_ns()
            await stream.chunk()
            return taken + process_time_ns() - started


async def main() -> None:
    print(f"{'':46}{'JSON':>13}{'protobuf':>13}{'ratio':>8}")
    pod = GroupVersionKind("", "v1", "Pod")
    pods = "/api/v1/namespaces/default/pods"
    claims, slices = (f"/apis/resource.k8s.io/v1/{path}" for path in ("namespaces/default/resourceclaims", "resourceslices"))  # fmt: skip
    kinds = (
        ("small pod", recorded(f"{pods}/small"), pods, pod),
        ("large pod", recorded(f"{pods}/rich"), pods, pod),
        ("claim", recorded(CLAIM), claims, SLICE._replace(kind="ResourceClaim")),
        ("slice of 128 devices", a_slice(), slices, SLICE),
    )
    for kind in kinds:
        await Client(*kind).measure()
    for kind in kinds[:3]:
        await Client(*kind).measure_list()


if __name__ == "__main__":
    asyncio.run(main())
