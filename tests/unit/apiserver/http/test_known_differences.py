"""What is remembered about managedFields: by the names of fields, and by the text of short differences."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from allot.apiserver.managed_fields.comparison import Comparison, compare, everything, field_set
from allot.apiserver.managed_fields.kind_schemas import value_type
from allot.apiserver.managed_fields.updated_objects import (
    MAX_KNOWN,
    MAX_KNOWN_BYTES,
    Differences,
)
from allot.apiserver.managed_fields.value_types import MAX_KNOWN_NAMES
from allot.apiserver.schemas.types import type_named
from allot.testing.servers import LocalServer

POD: Final = value_type(type_named("io.k8s.api.core.v1.Pod").name)
MAPS: Final = "/api/v1/namespaces/default/configmaps"


def test_objects_with_the_same_names_have_fields_of_their_own() -> None:
    """Names alone decide only about fields without parts."""
    first = {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeName": "n", "containers": []}}
    second = {"metadata": {"labels": {"b": "1"}}, "spec": {"nodeName": "m", "containers": None}}

    found = [everything(POD, each) for each in (first, second, first)]
    applied = [field_set(POD, each) for each in (first, second, first)]

    assert found[0] == found[2] != found[1]
    assert "f:b" in found[1]["f:metadata"]["f:labels"]
    assert "f:containers" not in applied[0]["f:spec"]  # an empty list with keys has no owner
    assert "f:containers" in applied[1]["f:spec"]
    assert applied[0] == applied[2]


def test_names_that_are_not_in_the_schema_are_not_remembered() -> None:
    part = POD.map
    assert part is not None

    assert part.names["metadata", "other"] is None
    assert ("metadata", "other") not in part.names
    assert everything(POD, {"metadata": {"name": "a"}, "other": 1}) == {
        ".": {},
        "f:metadata": {".": {}, "f:name": {}},
    }


def test_few_sets_of_names_are_remembered() -> None:
    part = value_type.__wrapped__("io.k8s.api.core.v1.PodSpec").map
    assert part is not None
    names = list(part.fields)

    for index in range(2 * MAX_KNOWN_NAMES):
        assert part.names[names[index % len(names)], names[index // len(names)]] is not None

    assert len(part.names) <= MAX_KNOWN_NAMES


def test_short_differences_are_compared_once() -> None:
    compared = 0

    def counted(live: dict[str, Any], new: dict[str, Any]) -> Comparison:
        nonlocal compared
        compared += 1
        return compare(POD, live, new)

    differences = Differences(counted, frozenset(), lambda: POD)

    def of(label: str) -> Comparison:
        text = msgspec.json.encode([{"metadata": {}}, {"metadata": {"labels": {label: "1"}}}])
        return differences.of_text(text)

    assert of("a") == of("a") != of("b")
    assert compared == 2
    of("a" * MAX_KNOWN_BYTES)
    of("a" * MAX_KNOWN_BYTES)
    assert compared == 4
    for number in range(MAX_KNOWN):  # the first are forgotten
        of(f"c{number}")
    of("a")
    assert compared == 5 + MAX_KNOWN


def test_entries_of_a_client_are_stored_in_order() -> None:
    fields: dict[str, Any] = {
        "f:metadata": {"f:labels": {"f:b": {}, "f:a": {}, ".": {}}},
        "f:data": {},
    }
    sent = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }

    async def run() -> str:
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
            body = {"metadata": {"managedFields": [sent]}}
            answer = await server.ask(
                "PATCH", f"{MAPS}/a", body, content_type="application/merge-patch+json"
            )
            assert answer.code == 200
            return answer.content.decode()

    ordered = '{"f:data":{},"f:metadata":{"f:labels":{".":{},"f:a":{},"f:b":{}}}}'
    assert ordered in asyncio.run(run())
