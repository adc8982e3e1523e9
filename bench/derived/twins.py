"""Literal twins: the same claim with derived attributes, and with the same values published by the devices.

Devices publish both: what expressions read, and the values that these come to. So both claims meet the
same devices, get the same answers, and differ in nothing but where their attributes come from.
"""

from __future__ import annotations

from typing import Any, Final

DRIVER: Final = "bench.example.com"
ATTRIBUTES: Final = (1, 8)
DERIVED, LITERAL = "derived", "literal"
EXPRESSIONS: Final = (
    f"device.attributes['{DRIVER}'].topology.split('-')[1]",
    f"device.attributes['{DRIVER}'].topology.split('-')[0]",
    f"device.attributes['{DRIVER}'].index / 2",
    f"device.attributes['{DRIVER}'].index / 4",
    f"device.attributes['{DRIVER}'].index < 4",
    f"device.attributes['{DRIVER}'].model.lowerAscii()",
    f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('40Gi'))",
    f"device.attributes['{DRIVER}'].model.startsWith('H') ? 'hopper' : 'other'",
)
"""Two devices side by side agree in all of them."""


def device(index: int) -> dict[str, Any]:
    """A device of a slice as JSON, with the values that the expressions come to on it."""
    literal: list[dict[str, Any]] = [
        {"string": f"pcie{index // 2}"},
        {"string": f"numa{index // 8}"},
        {"int": index // 2},
        {"int": index // 4},
        {"bool": index < 4},
        {"string": "h100"},
        {"bool": True},
        {"string": "hopper"},
    ]
    attributes: dict[str, Any] = {
        "topology": {"string": f"numa{index // 8}-pcie{index // 2}"},
        "index": {"int": index},
        "model": {"string": "H100"},
    }
    attributes |= {f"literal.example.com/a{number}": value for number, value in enumerate(literal)}
    return {
        "name": f"gpu-{index:04}",
        "attributes": attributes,
        "capacity": {"memory": {"value": "80Gi"}},
    }


def claim_spec(twin: str, attributes: int) -> dict[str, Any]:
    """Two devices that agree in so many attributes."""
    exactly: dict[str, Any] = {"deviceClassName": "bench", "count": 2}
    if twin == DERIVED:
        exactly["derivedAttributes"] = [
            {"name": f"derived.example.com/a{number}", "expression": EXPRESSIONS[number]}
            for number in range(attributes)
        ]
    same = [{"matchAttribute": f"{twin}.example.com/a{number}"} for number in range(attributes)]
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}], "constraints": same}}


DEVICE_CLASS: Final[dict[str, Any]] = {
    "metadata": {"name": "bench"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}


def resource_slice(node: str, devices: int) -> dict[str, Any]:
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [device(index) for index in range(devices)],
    }
    return {"metadata": {"name": f"{node}-gpus"}, "spec": spec}
