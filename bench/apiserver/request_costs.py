"""CPU time and function calls of get, create and patch, with RBAC, managedFields and the audit log on.

Run it with `./scripts/bench apiserver/request_costs [--against CHECKOUT] [--rounds N]`. The API server runs without a
socket, in a process for each checkout. The processes measure in turns, so that what else the machine does
slows all of them. Checkouts that know no RBAC, managedFields or audit log are measured without.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
REQUESTS: Final = 300
FLUSHED_SECONDS: Final = 0.1
"""After so long the audit log is written, which counts too."""
TOKEN: Final = "bench"  # noqa: S105 - of a server that lives as long as the benchmark
MAPS: Final = "/api/v1/namespaces/default/configmaps"
PODS: Final = "/api/v1/namespaces/default/pods"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
JSON: Final = b"application/json"
MERGE: Final = b"application/merge-patch+json"
STRATEGIC: Final = b"application/strategic-merge-patch+json"
BINDING: Final = {
    "metadata": {"name": "bench"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bench"}],
}
CONFIG_MAP: Final = {"metadata": {"generateName": "bench-"}, "data": {"key": "value" * 20}}
EXPRESSION: Final = 'device.attributes["gpu.example.com"].model == "a"'
CLAIM: Final = {
    "metadata": {"generateName": "bench-", "labels": {"app": "bench"}},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.example.com",
                        "selectors": [{"cel": {"expression": EXPRESSION}}],
                    },
                }
            ]
        }
    },
}
POD: Final = {
    "metadata": {"generateName": "bench-", "labels": {"app": "bench"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/bench:1",
                "command": ["sleep", "60"],
                "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
}


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: bytes = JSON

    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "headers": [
                (b"authorization", f"Bearer {TOKEN}".encode()),
                (b"user-agent", b"bench/1.0"),
                (b"accept", b"application/json"),
                (b"content-type", self.content_type),
            ],
            "extensions": {"allot.body": self.body},
        }


Maker = Callable[[int], Request]


def posting(path: str, document: Any) -> Maker:
    body = json.dumps(document).encode()
    return lambda _: Request("POST", path, body)


def patching(path: str) -> Maker:
    def patch(number: int) -> Request:
        body = json.dumps({"metadata": {"annotations": {"number": str(number)}}}).encode()
        return Request("PATCH", path, body, MERGE)

    return patch


RESULT: Final = {"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "d"}


def claim_update(number: int) -> Request:
    metadata = {"name": "first", "finalizers": [f"example.com/{number}"]}
    body = {"metadata": metadata, "spec": CLAIM["spec"]}
    return Request("PUT", f"{CLAIMS}/first", json.dumps(body).encode())


def claim_status_update(number: int) -> Request:
    status = {
        "allocation": {"devices": {"results": [RESULT]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": str(number)}],
    }
    body = {"metadata": {"name": "first"}, "spec": CLAIM["spec"], "status": status}
    return Request("PUT", f"{CLAIMS}/first/status", json.dumps(body).encode())


def pod_status_patch(number: int) -> Request:
    condition = {"type": "PodScheduled", "status": "False", "message": str(number)}
    body = json.dumps({"status": {"conditions": [condition]}}).encode()
    return Request("PATCH", f"{PODS}/first/status", body, STRATEGIC)


def event(number: int) -> Request:
    body = {
        "metadata": {"name": f"first.{number}", "namespace": "default"},
        "type": "Normal",
        "reason": "Scheduled",
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "action": "Binding",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "first"},
        "note": "Successfully assigned default/first to n",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-vm",
    }
    return Request("POST", EVENTS, json.dumps(body).encode())


WORK: Final[dict[str, Maker]] = {
    "get a ConfigMap": lambda _: Request("GET", f"{MAPS}/first"),
    "get a claim": lambda _: Request("GET", f"{CLAIMS}/first"),
    "create a ConfigMap": posting(MAPS, CONFIG_MAP),
    "create a claim": posting(CLAIMS, CLAIM),
    "create a pod": posting(PODS, POD),
    "merge patch of a ConfigMap": patching(f"{MAPS}/first"),
    "merge patch of a claim": patching(f"{CLAIMS}/first"),
    "merge patch of a pod": patching(f"{PODS}/first"),
    "update of a claim": claim_update,
    "status update of a claim": claim_status_update,
    "status patch of a pod": pod_status_patch,
    "create an event": event,
}


class Cost(NamedTuple):
    """Of one request: microseconds of CPU time, and calls of functions, Python's own included."""

    microseconds: float
    calls: float


# --- in the process of one checkout ---


@contextlib.contextmanager
def auditing(directory: Path) -> Iterator[dict[str, Any]]:
    """Arguments for the server: an audit log of all metadata, if the checkout has one."""
    try:
        from allot.apiserver.audit.auditor import Auditor
        from allot.apiserver.audit.log_file import LogFile, Rotation
        from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
    except ImportError:
        yield {}
        return

    def now() -> datetime:
        return datetime.now(UTC)

    log = LogFile(directory / "audit.log", Rotation(), now)
    auditor = Auditor(AuditPolicy((AuditRule(Level.METADATA),)), log, now)
    yield {"auditor": auditor}
    auditor.close()


def user() -> Any:
    """Allowed everything: by a role, if the checkout has them."""
    try:
        from allot.apiserver.auth.authentication import User
    except ImportError:
        from allot.apiserver.authentication import User  # type: ignore[import-untyped, no-redef]
    try:
        import allot.apiserver.auth.rbac  # noqa: F401
    except ImportError:
        return User("bench", groups=("system:masters",))
    return User("bench", groups=("system:authenticated",))


async def ask(app: Any, request: Request) -> bytes:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    await app(request.scope(), None, send)
    assert messages[0]["status"] < 300, messages[1]["body"]
    content: bytes = messages[1]["body"]
    return content


async def cost_of(app: Any, make: Maker, numbers: Iterator[int]) -> Cost:
    requests = [make(next(numbers)) for _ in range(REQUESTS)]
    await ask(app, requests.pop())
    gc.collect()
    gc.disable()
    started = time.process_time()
    for request in requests:
        await ask(app, request)
    await asyncio.sleep(FLUSHED_SECONDS)
    seconds = time.process_time() - started
    gc.enable()
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    counted = [make(next(numbers)) for _ in range(10)]
    sys.setprofile(count)
    for request in counted:
        await ask(app, request)
    sys.setprofile(None)
    return Cost(seconds / len(requests) * 1e6, calls / len(counted))


async def serve_rounds(directory: Path) -> None:
    """Measures a round for every line that comes in."""
    from allot.testing.servers import LocalServer

    with auditing(directory) as arguments:
        async with LocalServer(users={TOKEN: user()}, **arguments) as server:
            await server.ask(
                "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING
            )
            for path, document in ((MAPS, CONFIG_MAP), (CLAIMS, CLAIM), (PODS, POD)):
                metadata = {"name": "first", "labels": {"app": "bench"}}
                await server.post(path, {**document, "metadata": metadata})
            numbers = iter(range(10**9))
            for line in sys.stdin:
                names = json.loads(line)
                costs = {
                    name: await cost_of(server.server.app, WORK[name], numbers) for name in names
                }
                print(json.dumps(costs), flush=True)


# --- all checkouts in turns ---


class Checkout:
    """The process that measures one checkout."""

    def __init__(self, path: Path, directory: Path) -> None:
        directory.mkdir()
        self._process = subprocess.Popen(  # noqa: S603 - itself
            [sys.executable, __file__, "--serve", directory],
            env={**os.environ, "PYTHONPATH": str(path / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.costs: dict[str, list[Cost]] = {}

    def measure(self, names: list[str]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(names) + "\n")
        self._process.stdin.flush()
        for name, cost in json.loads(self._process.stdout.readline()).items():
            self.costs.setdefault(name, []).append(Cost(*cost))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="measure what has this in its name")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_rounds(options.serve))
        return
    names = [name for name in WORK if options.only in name]
    paths = [ROOT, *([options.against.resolve()] if options.against else [])]
    with tempfile.TemporaryDirectory() as place:
        checkouts = [Checkout(path, Path(place) / str(index)) for index, path in enumerate(paths)]
        for number in range(options.rounds + 1):
            for name in names:
                for checkout in checkouts if number % 2 else reversed(checkouts):
                    checkout.measure([name])
        for checkout in checkouts:
            checkout.end()
    for name in names:
        # The first round fills caches.
        here, *others = [checkout.costs[name][1:] for checkout in checkouts]
        print(f"{name:<28}{shown(here)}", *(compared(here, other) for other in others), sep="")


def shown(costs: list[Cost]) -> str:
    times = [cost.microseconds for cost in costs]
    return (
        f"{statistics.median(times):6.0f} µs (best {min(times):4.0f}), {costs[-1].calls:5.0f} calls"
    )


def compared(here: list[Cost], other: list[Cost]) -> str:
    ratios = [one.microseconds / two.microseconds for one, two in zip(here, other, strict=True)]
    calls = here[-1].calls / other[-1].calls
    low, high = min(ratios), max(ratios)
    return (
        f"   other: {shown(other)}   time {statistics.median(ratios):.2f}x"
        f" ({low:.2f}-{high:.2f}), calls {calls:.2f}x"
    )


if __name__ == "__main__":
    main()
