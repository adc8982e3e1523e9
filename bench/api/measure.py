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
from allot.api.identities import GroupVersionKind
from allot.api.quantity import Quantity, _parse
from allot.api.resource import GROUP
from allot.api.scheme import decode_object, encode_object
from allot.api.slices import ResourceSlice
from allot.api.strictness import strict_issues
from allot.cli.vectors import NOW
from allot.validation.context import Context
from allot.validation.resource_slice import validate_slice

SLICE = GroupVersionKind(GROUP, "v1", "ResourceSlice")
ROUNDS = 40


def best_of_turns(
    ours: Callable[[], Any], theirs: Callable[[], Any], number: int
) -> tuple[float, float]:
    """Seconds per call of both, taking turns: the best of all rounds.

    Disturbances make a round longer and never shorter, and they hit both alike.
    """
    best_ours = best_theirs = float("inf")
    for _ in range(ROUNDS):
        best_ours = min(best_ours, timeit.timeit(ours, number=number) / number)
        best_theirs = min(best_theirs, timeit.timeit(theirs, number=1))
    return best_ours, best_theirs


def a_slice(capacities: dict[str, str], devices: int = 128) -> bytes:
    """A slice as drivers of whole GPUs publish it: ten attributes, and these capacities."""
    capacity = {name: {"value": amount} for name, amount in capacities.items()}
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
                            "type": {"string": "gpu"},
                            "uuid": {"string": f"GPU-{index:032x}"},
                            "index": {"int": index},
                            "productName": {"string": "H100 80GB HBM3"},
                            "architecture": {"string": "Hopper"},
                            "computeCapability": {"version": "9.0.0"},
                            "driverVersion": {"version": "560.35.3"},
                            "numa": {"int": index // 4},
                            "mig": {"bool": False},
                            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
                        },
                        "capacity": capacity,
                    }
                    for index in range(devices)
                ],
            },
        },
        separators=(",", ":"),
    ).encode()


def report(
    what: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    wanted: float | None = None,
    items: int = 1,
) -> None:
    """One line; `items` is how many things a call works on."""
    mine, other = (seconds / items for seconds in best_of_turns(ours, theirs, number=5))
    target = f"   (wanted: {wanted:.0f}x)" if wanted else ""
    print(f"{what:58} {mine * 1e6:10.2f} us {other * 1e6:12.2f} us {other / mine:8.1f}x{target}")


def main() -> None:
    try:
        official: Any = import_module("kubernetes.client")
        parse_quantity: Any = import_module("kubernetes.utils.quantity").parse_quantity
    except ImportError:
        sys.exit("this compares with the official Python client: pip install kubernetes")

    body = a_slice({"memory": "80Gi"})
    heavier = a_slice({"memory": "80Gi", "multiprocessors": "132", "copyEngines": "7"})
    texts = ["80Gi", "132", "7", "500m", "1536Mi", "10Gi", "1e3", "40960Mi", "1.5", "100"]
    repeating = texts * 100
    distinct = [f"{number}{suffix}" for number in range(500) for suffix in ("Gi", "m", "", "k")]
    decoded: ResourceSlice = decode_object(body, SLICE, NOW)
    context = Context(features.DEFAULTS)

    client = official.ApiClient()
    heavier_text = heavier.decode()

    def official_decode(text: str = body.decode()) -> Any:
        return client.deserialize(text, "V1ResourceSlice", "application/json")

    assert official_decode().spec.devices[127].name == "gpu-127"
    assert decoded.spec.devices is not None
    assert not list(validate_slice(decoded, context))

    print(f"{'':58} {'allot':>13} {'official client':>15} {'ratio':>9}")
    report(
        "parse a quantity (texts that repeat, as in slices)",
        lambda: [Quantity.parse(text) for text in repeating],
        lambda: [parse_quantity(text) for text in repeating],
        wanted=5,
        items=len(repeating),
    )
    report(
        "parse a quantity (never seen before)",
        lambda: [_parse(text) for text in distinct],
        lambda: [parse_quantity(text) for text in distinct],
        items=len(distinct),
    )
    report(
        f"decode a slice with 128 devices ({len(body) // 1024} KiB)",
        lambda: decode_object(body, SLICE, NOW),
        official_decode,
        wanted=20,
    )
    report(
        f"decode one with three capacities per device ({len(heavier) // 1024} KiB)",
        lambda: decode_object(heavier, SLICE, NOW),
        lambda: official_decode(heavier_text),
        wanted=20,
    )
    report(
        "validate the first (theirs: only decoding)",
        lambda: list(validate_slice(decoded, context)),
        official_decode,
        wanted=1,
    )
    report(
        "list its unknown and duplicate fields (theirs: decoding)",
        lambda: strict_issues(body, ResourceSlice),
        official_decode,
    )
    client_slice = official_decode()
    report(
        "encode it",
        lambda: encode_object(decoded, SLICE),
        lambda: json.dumps(client.sanitize_for_serialization(client_slice)),
    )


if __name__ == "__main__":
    main()
