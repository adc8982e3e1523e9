"""Entries of managedFields, as clients send them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from allot.apiserver.managed_fields.managers import InvalidEntryError, decode
from allot.testing.servers import LocalServer

CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SPEC: Final = {
    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}
}
ENTRY: Final = {
    "manager": "m",
    "operation": "Update",
    "apiVersion": "resource.k8s.io/v1",
    "time": "2026-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {}},
}
WRONG: Final[list[dict[str, Any]]] = [
    {"manager": {"a": None}},
    {"manager": True},
    {"operation": 1},
    {"apiVersion": True},
    {"apiVersion": [""]},
    {"time": ["a"]},
    {"time": 1.0},
    {"time": "yesterday"},
    {"fieldsType": []},
    {"fieldsV1": 3},
    {"subresource": {}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_values_of_another_type(wrong: dict[str, Any]) -> None:
    assert decode([ENTRY])
    with pytest.raises(InvalidEntryError):
        decode([{**ENTRY, **wrong}])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_they_are_not_stored(method: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(CLAIMS, {"metadata": {"name": "c"}, "spec": SPEC})
            for number, wrong in enumerate(WRONG):
                name = f"c{number}" if method == "POST" else "c"
                metadata = {"name": name, "managedFields": [{**ENTRY, **wrong}]}
                patch = {"metadata": {"managedFields": metadata["managedFields"]}}
                answer = await server.ask(
                    method,
                    CLAIMS if method == "POST" else f"{CLAIMS}/{name}",
                    patch if method == "PATCH" else {"metadata": metadata, "spec": SPEC},
                    content_type=f"application/{'merge-patch+' if method == 'PATCH' else ''}json",
                )
                assert answer.code in (200, 201), answer.content
                stored = (await server.get(f"{CLAIMS}/{name}"))["metadata"]["managedFields"]
                assert [entry["manager"] for entry in stored] == ["unknown"] * len(stored)

    asyncio.run(run())
