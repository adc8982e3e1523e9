"""Objects of kinds that the server stores, with kube-apiserver v1.38's answers to them.

Good objects with their defaults and table rows, and bad ones with the causes of the refusal.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import defaultdict
from typing import Any

import pytest

from allot.testing.servers import LocalServer
from tests.conformance.kind_recording import CHANGED, GOOD

VECTORS = (GOOD, CHANGED)
"""`kind_recording.py` records the second."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SKIPPED = (
    "spec of 'exempt'",  # the message shows a value as a Go struct
    "minAvailable and maxUnavailable cannot be both set",
    "must specify at least one Policy",  # an empty list is read as no list
    "scheduling.tolerations[1]: Duplicate value",
)
OTHER_ROWS = ("apiservices", "flowschemas", "storageversionmigrations", "ipaddresses")
"""Rows with conditions that controllers of Kubernetes add, or with a cell that has no column."""
ADDRESSES = ("clusterIP", "clusterIPs")
Vector = dict[str, Any]


def vectors() -> dict[str, list[Vector]]:
    by_resource: dict[str, list[Vector]] = defaultdict(list)
    for path in VECTORS:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                vector = json.loads(line)
                by_resource[vector["resource"]].append(vector)
    return by_resource


ALL = vectors()


def causes(status: dict[str, Any]) -> list[list[str]]:
    found = status.get("details", {}).get("causes") or []
    return sorted([cause.get("field", ""), cause["message"]] for cause in found)


def difference(vector: Vector, code: int, answer: dict[str, Any]) -> str:
    if vector["code"] != code:
        return f"{code} instead of {vector['code']}: {answer.get('message', '')} {vector.get('message', '')}"
    if code < 300:
        expected = {name: _without_zeros(value) for name, value in vector["answer"].items()}
        actual = {name: _without_zeros(answer.get(name)) for name in expected}
        return "" if actual == expected else f"{actual} instead of {expected}"
    if vector["causes"] is None:
        same = str(answer["message"]).startswith(vector["message"])  # ours names the field, too
        return "" if same else f"{answer['message']} instead of {vector['message']}"
    wanted = sorted(vector["causes"])
    return "" if causes(answer) == wanted else f"{causes(answer)} instead of {wanted}"


async def differences(resource: str) -> list[str]:
    found: list[str] = []
    async with LocalServer() as server:
        for vector in ALL[resource]:
            if any(text in vector.get("message", "") for text in SKIPPED):
                continue
            path, body = vector["path"], vector["body"]
            query = "" if vector.get("good") else "?dryRun=All&fieldValidation=Strict"
            response = await server.ask("POST", path + query, body)
            problem = difference(vector, response.code, response.json)
            if problem:
                found.append(f"{json.dumps(body.get('spec', body))[:200]}: {problem}")
            if vector.get("good") and vector["cells"]:
                name = body["metadata"]["name"]
                table = await server.ask("GET", f"{path}/{name}", headers={"accept": TABLE})
                columns = [column["name"] for column in table.json["columnDefinitions"]]
                assert columns == vector["columns"]
                if resource in ("ipaddresses", "apiservices", "servicecidrs"):
                    await server.ask("DELETE", f"{path}/{name}")
                cells = table.json["rows"][0]["cells"]
                same = _timeless(cells) == _timeless(vector["cells"])
                if not same and resource not in OTHER_ROWS:
                    found.append(f"row {cells} instead of {vector['cells']}")
    return found


def _without_zeros(value: Any) -> Any:
    """JSON without values that Go leaves out or not, depending on the type; without the user's uid and addresses."""
    if isinstance(value, dict):
        cleaned = {
            name: _without_zeros(item)
            for name, item in value.items()
            if name not in ("uid", *ADDRESSES)
        }
        return {
            name: item
            for name, item in cleaned.items()
            if item not in (None, "", False, 0) and item not in ({}, [])
        }
    if isinstance(value, list):
        return [_without_zeros(item) for item in value]
    return value


def _timeless(cells: list[Any]) -> list[Any]:
    return [
        "" if isinstance(cell, str) and (cell[:2] == "20" or cell.endswith("s")) else cell
        for cell in cells
    ]


@pytest.mark.parametrize("resource", sorted(ALL))
def test_answers(resource: str) -> None:
    assert asyncio.run(differences(resource)) == []
