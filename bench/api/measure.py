"""How fast the vocabulary is, as ratios to the official Python client measured in the same run.

Run it with `./scripts/bench api`. Figures are written down in bench/RESULTS.md.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable
from importlib import import_module
from typing import Any

from allot import features
from allot.api.decoding import strict_issues
from allot.api.identities import GroupVersionKind
from allot.api.quantity import Quantity, _parse
from allot.api.resource import GROUP
from allot.api.scheme import decode_object, encode_object
from allot.api.slices import ResourceSlice
from allot.cli.vectors import NOW
from allot.validation.context import Context
from allot.validation.resource_slice import validate_slice

SLICE = GroupVersionKind(GROUP, "v1", "ResourceSlice")
REPEATS = 5


def best(work: Callable[[], Any], number: int) -> float:
    """Seconds per call: the best of several runs, which disturbances make longer but never shorter."""
    return min(timeit.repeat(work, number=number, repeat=REPEATS)) / number


def a_slice(devices: int = 128) -> bytes:
    """A slice as GPU drivers publish it: eight attributes and three capacities per device."""
    return json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "server-1-gpu.example.com-x2x4z"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "server-1",
                "pool": {"name": "server-1", "generation": 7, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"gpu-{index}",
                        "attributes": {
                            "uuid": {"string": f"GPU-{index:032x}"},
                            "index": {"int": index},
                            "model": {"string": "hopper"},
                            "architecture": {"string": "h100"},
                            "driverVersion": {"version": "560.35.3"},
                            "numa": {"int": index // 4},
                            "mig": {"bool": False},
                            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
                        },
                        "capacity": {
                            "memory": {"value": "80Gi"},
                            "multiprocessors": {"value": "132"},
                            "encoders": {"value": "7"},
                        },
                    }
                    for index in range(devices)
                ],
            },
        },
        separators=(",", ":"),
    ).encode()


def report(what: str, ours: float, theirs: float, wanted: float | None) -> None:
    target = f"   (wanted: {wanted:.0f}x)" if wanted else ""
    print(f"{what:58} {ours * 1e6:10.2f} us {theirs * 1e6:12.2f} us {theirs / ours:8.1f}x{target}")


def main() -> None:
    try:
        official: Any = import_module("kubernetes.client")
        parse_quantity: Any = import_module("kubernetes.utils.quantity").parse_quantity
    except ImportError:
        sys.exit("this compares with the official Python client: pip install kubernetes")

    body = a_slice()
    texts = ["80Gi", "132", "7", "500m", "1536Mi", "10Gi", "1e3", "40960Mi", "1.5", "100"]
    distinct = [f"{number}{suffix}" for number in range(2000) for suffix in ("Gi", "m", "", "k")]
    decoded: ResourceSlice = decode_object(body, SLICE, NOW)
    context = Context(features.DEFAULTS)

    client = official.ApiClient()
    text = body.decode()

    def official_decode() -> Any:
        return client.deserialize(text, "V1ResourceSlice", "application/json")

    assert official_decode().spec.devices[127].name == "gpu-127"
    assert decoded.spec.devices is not None
    assert not list(validate_slice(decoded, context))

    client_decode = best(official_decode, 1)
    print(f"{'':58} {'allot':>13} {'official client':>15} {'ratio':>9}")
    report(
        "parse a quantity (texts that repeat, as in slices)",
        best(lambda: [Quantity.parse(text) for text in texts], 2000) / len(texts),
        best(lambda: [parse_quantity(text) for text in texts], 500) / len(texts),
        5,
    )
    report(
        "parse a quantity (never seen before)",
        best(lambda: [_parse(text) for text in distinct], 3) / len(distinct),
        best(lambda: [parse_quantity(text) for text in distinct], 3) / len(distinct),
        None,
    )
    report(
        f"decode a slice with 128 devices ({len(body) // 1024} KiB)",
        best(lambda: decode_object(body, SLICE, NOW), 20),
        client_decode,
        20,
    )
    report(
        "validate it (theirs: only decoding)",
        best(lambda: list(validate_slice(decoded, context)), 20),
        client_decode,
        1,
    )
    report(
        "list its unknown and duplicate fields (theirs: decoding)",
        best(lambda: strict_issues(body, ResourceSlice), 10),
        client_decode,
        None,
    )
    client_slice = official_decode()
    report(
        "encode it",
        best(lambda: encode_object(decoded, SLICE), 20),
        best(lambda: json.dumps(client.sanitize_for_serialization(client_slice)), 1),
        None,
    )


if __name__ == "__main__":
    main()
