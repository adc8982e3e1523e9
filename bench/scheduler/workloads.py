"""The workloads: what nodes have, and what pods ask for."""

from __future__ import annotations

from typing import Any

DRIVER = "bench.example.com"


def attribute(name: str) -> str:
    return f"device.attributes['{DRIVER}'].{name}"


def device(variant: str, node: int, index: int) -> dict[str, Any]:
    """One of ten devices of a node."""
    match variant:
        case "cel2" | "cel3" | "cel4":
            return {
                "name": f"d{index}",
                "attributes": {
                    "kind": {"string": ("gpu", "nic")[index % 2]},
                    "numa": {"int": index // 5},
                    "gen": {"int": index % 3},
                },
                "capacity": {"memory": {"value": "80Gi"}},
            }
        case "prio":
            tier = 0 if node % 10 < 2 else 1 if node % 10 < 5 else 2
            return {"name": f"d{index}", "attributes": {"tier": {"int": tier}}}
        case "shares":
            policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
            return {
                "name": f"d{index}",
                "allowMultipleAllocations": True,
                "capacity": {"units": {"value": "10", "requestPolicy": policy}},
            }
        case "derived" if index < 5:
            place = {"string": f"numa{index % 2}-pcie{index}"}
            return {
                "name": f"gpu{index}",
                "attributes": {"kind": {"string": "gpu"}, "topology": place},
            }
        case "derived":
            root = {"string": f"pcie{9 - index}"}
            return {
                "name": f"nic{index - 5}",
                "attributes": {"kind": {"string": "nic"}, "pcieRoot": root},
            }
    return {"name": f"d{index}", "attributes": {"model": {"string": "a"}}}


def classes(variant: str) -> dict[str, dict[str, Any]]:
    base = f"device.driver == '{DRIVER}'"
    if variant == "prio":
        return {
            f"tier-{tier}": _selectors(base, f"{attribute('tier')} == {tier}") for tier in range(3)
        }
    return {"bench": _selectors(base)}


def claim_spec(variant: str) -> dict[str, Any]:
    match variant:
        case "cel2" | "cel3" | "cel4":
            requests = [
                _request(
                    f"r{index}",
                    f"{attribute('kind')} == '{('gpu', 'nic')[index % 2]}' && {attribute('gen')} >= 0",
                    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0",
                )
                for index in range(int(variant[3:]))
            ]
            names = [request["name"] for request in requests]
            same = {"requests": names, "matchAttribute": f"{DRIVER}/numa"}
            return {"devices": {"requests": requests, "constraints": [same]}}
        case "prio":
            alternatives = [
                {"name": f"t{tier}", "deviceClassName": f"tier-{tier}"} for tier in range(3)
            ]
            return {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}}
        case "shares":
            request = _request("r")
            request["exactly"]["capacity"] = {"requests": {"units": "1"}}
            return {"devices": {"requests": [request]}}
        case "derived":
            gpu = _request("gpu", f"{attribute('kind')} == 'gpu'")
            nic = _request("nic", f"{attribute('kind')} == 'nic'")
            gpu["exactly"]["derivedAttributes"] = [
                {"name": "bench.dev/pcie", "expression": f"{attribute('topology')}.split('-')[1]"}
            ]
            nic["exactly"]["derivedAttributes"] = [
                {"name": "bench.dev/pcie", "expression": attribute("pcieRoot")}
            ]
            same = {"requests": ["gpu", "nic"], "matchAttribute": "bench.dev/pcie"}
            return {"devices": {"requests": [gpu, nic], "constraints": [same]}}
    return {"devices": {"requests": [_request("r", f"{attribute('model')} == 'a'")]}}


def pods_per_node(variant: str) -> int:
    """How many such pods fit on a node."""
    return {"shares": 100, "derived": 5, "cel2": 4, "cel3": 2, "cel4": 2}.get(variant, 10)


def _request(name: str, *expressions: str) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "bench", **_selectors(*expressions)}}


def _selectors(*expressions: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": text}} for text in expressions]}
