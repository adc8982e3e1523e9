"""How long the event loop stands still while the API server answers monstrous requests.

    python -m bench.apiserver.monsters [NAME ...]

Prints for each request its code, how long it took, and the longest gap between two turns of the event loop
meanwhile, as clients of small requests do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Self

from allot.cli.components import component_runner
from allot.testing.servers import LocalServer

MAPS: Final = "/api/v1/namespaces/default/configmaps"
PODS: Final = "/api/v1/namespaces/default/pods"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
OPERATIONS: Final = "application/json-patch+json"
YAML: Final = "application/yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
MANY: Final = 100_000


class Monster(NamedTuple):
    name: str
    method: str
    path: str
    body: Any = b""
    content_type: str = "application/json"
    query: dict[str, str] | None = None
    accept: str = "application/json"


def monsters() -> Iterator[Monster]:
    named = {"metadata": {"name": "m"}}
    yield Monster("nothing special", "GET", f"{MAPS}/small")
    yield Monster("3 MB of text", "POST", MAPS, {**named, "zz": "x" * 2_900_000})
    yield Monster("230,000 labels", "POST", MAPS, labelled({f"k{i}": "v" for i in range(200_000)}))
    yield Monster(
        "30,000 bad labels", "POST", MAPS, labelled({f"a b{i}": "v" for i in range(30_000)})
    )
    yield Monster(
        "200,000 unknown fields",
        "POST",
        MAPS,
        {**named, **{f"u{i}": 1 for i in range(200_000)}},
        query={"dryRun": "All"},
    )
    yield Monster(
        "unknown fields of a claim",
        "POST",
        CLAIMS,
        {**named, **{f"u{i}": 1 for i in range(200_000)}},
    )
    yield Monster(
        "900,000 empty lists",
        "POST",
        MAPS,
        b'{"metadata":{"name":"m"},"zz":[' + b"[]," * 900_000 + b"[]]}",
    )
    yield Monster(
        "1,400,000 numbers",
        "POST",
        MAPS,
        b'{"metadata":{"name":"m"},"zz":[' + b"1," * 1_400_000 + b"1]}",
    )
    yield Monster(
        "nested 199 deep, often",
        "POST",
        MAPS,
        b'{"metadata":{"name":"m"},"zz":[' + (b"[" * 190 + b"]" * 190 + b",") * 7_000 + b"1]}",
    )
    yield Monster(
        "brackets in texts",
        "POST",
        MAPS,
        b'{"metadata":{"name":"m"},"zz":[' + b'"[{",' * 500_000 + b"1]}",
    )
    yield Monster(
        "3 MB of YAML", "POST", MAPS, b"metadata: {name: m}\nzz:\n" + b"- a: b\n" * 400_000, YAML
    )
    yield Monster(
        "YAML text", "POST", MAPS, b"metadata: {name: m}\nzz: |\n" + b"  abcdefgh\n" * 250_000, YAML
    )
    yield Monster("3 MB in a DRA kind", "POST", SLICES, a_slice(6_000))
    yield Monster("300 long expressions", "POST", CLAIMS, a_claim(30, 10, 9_000))
    yield Monster("2 expressions in 15 KB", "POST", CLAIMS, a_claim(1, 2, 7_000))
    yield Monster("1 expression in 1.5 KB", "POST", CLAIMS, a_claim(1, 1, 1_400))
    yield Monster(
        "pod of 20,000 containers",
        "POST",
        PODS,
        {
            **named,
            "spec": {
                "containers": [
                    {"name": f"c{i}", "image": "i", "resources": {"requests": {"cpu": f"{i}m"}}}
                    for i in range(20_000)
                ]
            },
        },
    )
    yield Monster(
        "20,000 owners",
        "POST",
        MAPS,
        {
            "metadata": {
                "name": "m",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": f"p{i}",
                        "uid": f"u{i}",
                        "controller": True,
                    }
                    for i in range(20_000)
                ],
            }
        },
    )
    yield Monster(
        "200,000 quantities",
        "POST",
        "/api/v1/namespaces/default/resourcequotas",
        {**named, "spec": {"hard": {f"requests.example.com/x{i}": f"{i}m" for i in range(60_000)}}},
    )
    yield Monster(
        "PATCH, 20,000 unknown",
        "PATCH",
        f"{MAPS}/small",
        {f"u{i}": i for i in range(20_000)},
        MERGE,
    )
    yield Monster(
        "PATCH it again", "PATCH", f"{MAPS}/small", {f"u{i}": i + 1 for i in range(200_000)}, MERGE
    )
    yield Monster(
        "PATCH them away", "PATCH", f"{MAPS}/small", {f"u{i}": None for i in range(200_000)}, MERGE
    )
    yield Monster(
        "10,000 operations",
        "PATCH",
        f"{MAPS}/small",
        [{"op": "add", "path": f"/data/k{i}", "value": "x" * 100} for i in range(10_000)],
        OPERATIONS,
        {"dryRun": "All"},
    )
    yield Monster(
        "10,000 inserts in front",
        "PATCH",
        f"{MAPS}/small",
        [{"op": "add", "path": "/zz", "value": [0] * 500_000}]
        + [{"op": "add", "path": "/zz/0", "value": i} for i in range(9_999)],
        OPERATIONS,
        {"dryRun": "All"},
    )
    yield Monster(
        "copies of copies",
        "PATCH",
        f"{MAPS}/small",
        [{"op": "add", "path": "/zz", "value": [0, 0]}]
        + [{"op": "copy", "from": "/zz", "path": f"/zz/{i % 2}"} for i in range(9_999)],
        OPERATIONS,
    )
    yield Monster(
        "strategic, 30,000 items",
        "PATCH",
        f"{PODS}/p",
        {
            "spec": {
                "containers": [{"name": f"c{i}", "image": "i"} for i in range(30_000)],
                "$setElementOrder/containers": [{"name": f"c{i}"} for i in range(30_000)],
            }
        },
        STRATEGIC,
    )
    yield Monster("bad patch of a large one", "PATCH", f"{MAPS}/large", {"data": 1}, MERGE)
    yield Monster("GET 3 MB", "GET", f"{MAPS}/large")
    yield Monster("GET 3 MB as YAML", "GET", f"{MAPS}/large", accept=YAML)
    yield Monster("GET 3 MB, pretty", "GET", f"{MAPS}/large", query={"pretty": "true"})
    yield Monster("PUT 3 MB", "PUT", f"{MAPS}/large", a_large_map())
    for form, accept in (("JSON", "application/json"), ("YAML", YAML), ("a table", TABLE)):
        yield Monster(f"list of {MANY:,} as {form}", "GET", "/api/v1/configmaps", accept=accept)
    yield Monster("list, labels", "GET", "/api/v1/configmaps", query={"labelSelector": "a=b"})
    yield Monster(
        "list, 2,000 terms",
        "GET",
        "/api/v1/configmaps",
        query={"labelSelector": ",".join(f"k{i} notin (a,b,c)" for i in range(2_000))},
    )
    yield Monster(
        "list, one set of 20,000",
        "GET",
        "/api/v1/configmaps",
        query={"labelSelector": f"a in ({','.join(f'v{i}' for i in range(20_000))})"},
    )
    yield Monster(
        "list, fields", "GET", "/api/v1/configmaps", query={"fieldSelector": "metadata.name=c7"}
    )
    yield Monster(
        "watch from the start",
        "WATCH",
        "/api/v1/configmaps",
        query={"watch": "1", "timeoutSeconds": "1"},
    )
    yield Monster("delete them all", "DELETE", MAPS, query={"labelSelector": "much=more"})
    yield Monster("OpenAPI, index", "GET", "/openapi/v3")
    yield Monster("metrics", "GET", "/metrics")


def labelled(labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "m", "labels": labels}}


def a_large_map() -> dict[str, Any]:
    return {"metadata": {"name": "large"}, "zz": {f"key-{i}": f"value {i}" for i in range(90_000)}}


def a_slice(devices: int) -> dict[str, Any]:
    attributes = {f"a{i}": {"string": "x" * 8} for i in range(14)}
    return {
        "metadata": {"name": "m"},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{i}", "attributes": attributes} for i in range(devices)],
        },
    }


def a_claim(requests: int, selectors: int, length: int) -> dict[str, Any]:
    part = "device.attributes['d.example.com'].a == '{}' && "

    def expression(number: int) -> str:
        return part.format(number) * (length // len(part)) + "true"

    return {
        "metadata": {"name": "m"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": f"r{each}",
                        "exactly": {
                            "deviceClassName": "c",
                            "selectors": [
                                {"cel": {"expression": expression(each * 1000 + number)}}
                                for number in range(selectors)
                            ],
                        },
                    }
                    for each in range(requests)
                ]
            }
        },
    }


class Watchdog:
    """Measures the longest time between two turns of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.005)
        self.longest = 0.0
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.005)
        assert self._task is not None
        self._task.cancel()

    async def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last)
            last = now


async def measure(chosen: Callable[[str], bool]) -> None:
    async with LocalServer() as server:
        await server.ask("POST", MAPS, {"metadata": {"name": "small"}, "data": {"k": "v"}})
        await server.ask("POST", MAPS, a_large_map())
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await server.ask("POST", PODS, pod)
        filled = False
        for monster in monsters():
            if not chosen(monster.name):
                continue
            if "list" in monster.name and not filled and "empty" not in monster.name:
                filled = True
                for number in range(MANY):
                    labels = {
                        "a": f"v{number % 10}",
                        "much": "more" if number % 20 == 0 else "less",
                    }
                    document = {
                        "metadata": {"name": f"c{number}", "labels": labels},
                        "data": {"k": "v" * 200},
                    }
                    await server.ask("POST", MAPS, document)
            body = (
                monster.body
                if isinstance(monster.body, bytes)
                else json.dumps(monster.body).encode()
            )
            gc.collect()
            started = time.perf_counter()
            async with Watchdog() as watchdog:
                if monster.method == "WATCH":
                    async with server.watch(monster.path) as stream:
                        await stream.take(MANY)
                    code, size = 200, 0
                else:
                    answer = await server.ask(
                        monster.method,
                        monster.path,
                        body,
                        query=monster.query or {},
                        content_type=monster.content_type,
                        headers={"accept": monster.accept},
                    )
                    code, size = answer.code, len(answer.content)
            seconds = time.perf_counter() - started
            print(
                f"{monster.name:28} {len(body):>9,} in {size:>11,} out {code} {seconds:7.2f} s   longest gap {watchdog.longest * 1000:6.0f} ms",
                flush=True,
            )


def main() -> None:
    wanted = sys.argv[1:]
    with component_runner() as runner:
        runner.run(measure(lambda name: not wanted or any(word in name for word in wanted)))


if __name__ == "__main__":
    main()
