"""Protobuf against JSON: a pod, a claim, and a slice with 128 devices, alone and as the API server reads them.

    ./scripts/bench api/protobuf

"first" is a slice whose devices were never seen, "again" one that was changed in one device.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from allot.api import scheme
from allot.api.decoding import decode
from allot.api.identities import GroupVersionKind
from allot.api.protobuf import memory, reading, writing
from allot.api.protobuf.envelope import open_envelope, target_of
from allot.apiserver.kinds.resources import find_kind
from allot.apiserver.watch_cache.codecs import codec_for

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/conformance/data/protobuf.jsonl.gz"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REPEATS = 200
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/claim"
SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")


def microseconds(work: Callable[[], Any], before: Callable[[], None] = lambda: None) -> float:
    """The shortest of many times."""
    best = float("inf")
    for _ in range(REPEATS):
        before()
        started = perf_counter()
        work()
        best = min(best, perf_counter() - started)
    return best * 1e6


def forget() -> None:
    memory.READ.forget()
    memory.WRITTEN.forget()


def line(name: str, in_json: float, in_protobuf: float) -> None:
    print(f"{name:34}{in_json:10.0f} µs{in_protobuf:10.0f} µs{in_protobuf / in_json:8.1f}")


def recorded(path: str) -> tuple[bytes, bytes]:
    for text in gzip.decompress(RECORDED.read_bytes()).splitlines():
        entry = json.loads(text)
        if entry["path"] == path:
            content = open_envelope(base64.b64decode(entry["protobuf"])).content
            return msgspec.json.encode(entry["json"]), content
    raise LookupError(path)


def a_slice() -> bytes:
    devices = [
        {
            "name": f"gpu-{n}",
            "attributes": {
                "model": {"string": "A100"},
                "uuid": {"string": f"gpu-1234-{n:04}"},
                "index": {"int": n},
                "driverVersion": {"version": "1.2.3"},
                "ecc": {"bool": True},
                "pcie": {"string": f"0000:{n:02x}:00.0"},
            },
            "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "108"}},
        }
        for n in range(128)
    ]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": devices}
    return msgspec.json.encode({"metadata": {"name": "n-gpu"}, "spec": spec})


def raw_kind(name: str, path: str, gvk: GroupVersionKind) -> None:
    body, content = recorded(path)
    target = target_of(gvk)
    document = reading.read(content, target)
    line(
        f"{name}: decode",
        microseconds(lambda: msgspec.json.decode(body)),
        microseconds(lambda: reading.read(content, target)),
    )
    line(
        f"{name}: encode",
        microseconds(lambda: msgspec.json.encode(document)),
        microseconds(lambda: writing.write(document, target)),
    )
    request(name, body, content, gvk)


def request(name: str, body: bytes, content: bytes, gvk: GroupVersionKind) -> None:
    """What the API server does with a body: decode, check, fill in defaults."""
    resource = find_kind(gvk)
    assert resource is not None
    codec, version = codec_for(resource), gvk.version

    def from_json() -> None:
        codec.decode(body, version, NOW)
        codec.strict_issues(body, version)

    line(
        f"{name}: as a request",
        microseconds(from_json),
        microseconds(lambda: codec.decode_protobuf(content, version, NOW)),
    )


def typed_kind(name: str, body: bytes, gvk: GroupVersionKind) -> None:
    cls = scheme.lookup(gvk)[1].cls
    target = target_of(gvk, cls)
    obj = decode(body, cls, gvk.version)
    content = writing.write(obj, target)
    for word, before in (("first", forget), ("again", lambda: None)):
        line(
            f"{name}: decode, {word}",
            microseconds(lambda: decode(body, cls, gvk.version)),
            microseconds(lambda: reading.read(content, target), before),
        )
        line(
            f"{name}: encode, {word}",
            microseconds(lambda: scheme.encode_object(obj, gvk)),
            microseconds(lambda: writing.write(obj, target), before),
        )
    request(name, body, content, gvk)


def main() -> None:
    print(f"{'':34}{'JSON':>13}{'protobuf':>13}{'ratio':>8}")
    pod = GroupVersionKind("", "v1", "Pod")
    raw_kind("small pod", "/api/v1/namespaces/default/pods/small", pod)
    raw_kind("large pod", "/api/v1/namespaces/default/pods/rich", pod)
    typed_kind("claim", recorded(CLAIM)[0], SLICE._replace(kind="ResourceClaim"))
    typed_kind("slice of 128 devices", a_slice(), SLICE)


if __name__ == "__main__":
    main()
