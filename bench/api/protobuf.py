"""Protobuf against JSON: pods, a claim, and a slice with 128 devices, alone and as the API server reads them.

    ./scripts/bench api/protobuf

"first" is an object of which no part was seen before, "again" one that was changed in its metadata and status, or
in one device. Times are medians of CPU time, in turns. Opcodes are those of Python in one call, the same in every run.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time_ns
from types import FrameType
from typing import Any

import msgspec

from allot.api import scheme
from allot.api.decoding import decode
from allot.api.identities import GroupVersionKind
from allot.api.protobuf import memory
from allot.api.protobuf.envelope import open_envelope, target_of
from allot.api.protobuf.reading import read
from allot.api.protobuf.targets import Target
from allot.api.protobuf.writing import write
from allot.apiserver.kinds.resources import find_kind
from allot.apiserver.watch_cache.codecs import codec_for

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/conformance/data/protobuf.jsonl.gz"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 300
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/claim"
SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")

Work = Callable[[Any], Any]


def forget() -> None:
    memory.READ.forget()
    memory.WRITTEN.forget()


def nothing(_: Any) -> None:
    """What is measured besides the work."""


def nanoseconds(work: Work, value: Any) -> int:
    started = process_time_ns()
    work(value)
    return process_time_ns() - started


def opcodes(work: Work, value: Any) -> int:
    """How many instructions of Python the work takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work(value)
    finally:
        sys.settrace(None)
    return count


def compare(
    name: str, in_json: tuple[Work, list[Any]], in_protobuf: tuple[Work, list[Any]], *, first: bool
) -> None:
    """Both ways in turns, each time with another version of the object."""
    times: dict[Work, list[int]] = {nothing: [], in_json[0]: [], in_protobuf[0]: []}
    for work, values in (in_json, in_protobuf):
        for value in (values[0], *values[:3]):
            work(value)
    for round_ in range(ROUNDS):
        for work, values in ((nothing, [None]), in_json, in_protobuf):
            if first:
                forget()
            times[work].append(nanoseconds(work, values[round_ % len(values)]))
    if first:
        forget()
    count = opcodes(in_protobuf[0], in_protobuf[1][3])
    besides, json_time, protobuf_time = (median(found) / 1000 for found in times.values())
    json_time, protobuf_time = json_time - besides, protobuf_time - besides
    ratio = protobuf_time / json_time
    print(f"{name:38}{json_time:10.1f} µs{protobuf_time:10.1f} µs{ratio:8.1f}{count:10}")


def recorded(path: str) -> dict[str, Any]:
    for text in gzip.decompress(RECORDED.read_bytes()).splitlines():
        entry: dict[str, Any] = json.loads(text)
        if entry["path"] == path:
            assert open_envelope(base64.b64decode(entry["protobuf"]))
            document: dict[str, Any] = entry["json"]
            return document
    raise LookupError(path)


def a_slice() -> dict[str, Any]:
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
    return {"metadata": {"name": "n-gpu"}, "spec": spec}


def versions_of(document: dict[str, Any], count: int = 100) -> list[bytes]:
    """The object as it changes: its version and one condition, or one device."""
    versions = []
    for n in range(count):
        changed = json.loads(json.dumps(document))
        changed["metadata"]["resourceVersion"] = str(1000 + n)
        if "devices" in changed["spec"] and "driver" in changed["spec"]:
            changed["spec"]["devices"][n]["attributes"]["index"] = {"int": 1000 + n}
        elif "reservedFor" in changed["status"]:
            changed["status"]["reservedFor"][0]["uid"] = f"uid-{n}"
        else:
            condition = {"type": "Ready", "status": "True", "message": f"change {n}"}
            times = {"lastProbeTime": None, "lastTransitionTime": f"2026-01-01T00:00:{n % 60:02}Z"}
            changed["status"].setdefault("conditions", []).append(condition | times)
        versions.append(msgspec.json.encode(changed))
    return versions


def measure(name: str, document: dict[str, Any], gvk: GroupVersionKind) -> None:
    bodies = versions_of(document)
    resource = find_kind(gvk)
    assert resource is not None
    codec, version = codec_for(resource), gvk.version
    cls = scheme.lookup(gvk)[1].cls if resource.info.is_typed else None
    target: Target = target_of(gvk, cls)

    def from_json(body: bytes) -> Any:
        return decode(body, cls, version) if cls is not None else msgspec.json.decode(body)

    def to_json(obj: Any) -> bytes:
        return scheme.encode_object(obj, gvk) if cls is not None else msgspec.json.encode(obj)

    def request_in_json(body: bytes) -> None:
        codec.decode_strictly(body, version, NOW)

    objects = [from_json(body) for body in bodies]
    contents = [write(obj, target) for obj in objects]
    for word in ("first", "again"):
        first = word == "first"
        compare(
            f"{name}: decode, {word}",
            (from_json, bodies),
            (lambda content: read(content, target), contents),
            first=first,
        )
        compare(
            f"{name}: encode, {word}",
            (to_json, objects),
            (lambda obj: write(obj, target), objects),
            first=first,
        )
        compare(
            f"{name}: as a request, {word}",
            (request_in_json, bodies),
            (lambda content: codec.decode_protobuf(content, version, NOW), contents),
            first=first,
        )


def main() -> None:
    print(f"{'':38}{'JSON':>13}{'protobuf':>13}{'ratio':>8}{'opcodes':>10}")
    pod = GroupVersionKind("", "v1", "Pod")
    measure("small pod", recorded("/api/v1/namespaces/default/pods/small"), pod)
    measure("large pod", recorded("/api/v1/namespaces/default/pods/rich"), pod)
    measure("claim", recorded(CLAIM), SLICE._replace(kind="ResourceClaim"))
    measure("slice of 128 devices", a_slice(), SLICE)


if __name__ == "__main__":
    main()
