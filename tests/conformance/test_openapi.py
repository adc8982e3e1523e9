"""Our OpenAPI documents beside those of v1.38, recorded without descriptions.

Types and operations must be the same. What we leave out on purpose is listed here with its reason.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from allot.apiserver.http.openapi import documents
from allot.apiserver.http.openapi.operations import PATCH_TYPES
from allot.apiserver.schemas import tables
from allot.apiserver.schemas.fields import Field

DATA: Final = Path(__file__).parent / "data"
PATHS: Final = (
    "api/v1",
    "apis/apps/v1",
    "apis/resource.k8s.io/v1",
    "apis/resource.k8s.io/v1beta2",
    "apis/resource.k8s.io/v1beta1",
    "apis/resource.k8s.io/v1alpha3",
)
WITH_BODY: Final = ("get", "put", "post", "delete", "patch")

# --- what we leave out, and why ---

UNSERVED_URLS: Final = {
    "/watch/": "deprecated since 1.11: clients send watch=true to the list",
    "/proxy": "only refused: nodes and pods are simulated",
    "/attach": "as /proxy",
    "/exec": "as /proxy",
    "/log": "as /proxy",
    "/portforward": "as /proxy",
}
UNSERVED_PARAMETERS: Final = {
    "shardSelector": "lists are not cut into shards",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "nothing stored is encrypted, so all can be read",
}
UNSERVED_MEDIA_TYPES: Final[dict[str, str]] = {}
ADDED_FIELDS: Final = {
    "v1alpha3.PoolStatus": ("sliceCount",),
    "v1alpha3.ResourcePoolStatusRequestStatus": (
        "observationTime",
        "totalMatchingPools",
        "truncated",
        "validationErrors",
    ),
}
"""What v1.38 does not have: KEP-5677's status, for clients that see v1alpha3 only."""


@cache
def recorded() -> Any:
    return json.loads(gzip.decompress((DATA / "openapi-recorded.json.gz").read_bytes()))


@cache
def ours(path: str) -> Any:
    body = documents.document(path)
    assert body is not None
    return json.loads(body)


def comparable(value: Any) -> Any:
    """Without descriptions and what is on the lists above; parameters and required fields in order."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {
        name: comparable(item)
        for name, item in value.items()
        if not (name == "description" and isinstance(item, str))
        and name not in UNSERVED_MEDIA_TYPES
    }
    if isinstance(made.get("required"), list):
        made["required"].sort()
    if isinstance(made.get("parameters"), list):
        kept = [one for one in made.pop("parameters") if one["name"] not in UNSERVED_PARAMETERS]
        if kept:
            made["parameters"] = sorted(kept, key=lambda one: str(one["name"]))
    return made


@pytest.mark.parametrize("path", PATHS)
def test_the_same_urls_methods_and_parameters(path: str) -> None:
    theirs = {
        url: comparable(item)
        for url, item in recorded()[path]["paths"].items()
        if not any(part in url for part in UNSERVED_URLS)
    }
    assert {url: comparable(item) for url, item in ours(path)["paths"].items()} == theirs


@pytest.mark.parametrize("path", PATHS)
def test_the_same_types(path: str) -> None:
    theirs = {
        name: comparable(schema)
        for name, schema in recorded()[path]["components"]["schemas"].items()
    }
    mine = {
        name: comparable(schema) for name, schema in ours(path)["components"]["schemas"].items()
    }
    for type_, fields in ADDED_FIELDS.items():
        properties = mine.get(f"io.k8s.api.resource.{type_}", {}).get("properties")
        for field in fields if properties else ():
            del properties[field]
    for schema in mine.values():
        # KEP-6080: merged by name, while v1.38 replaces the whole list.
        derived = schema.get("properties", {}).get("derivedAttributes")
        if derived is not None:
            assert derived.pop("x-kubernetes-list-type") == "map"
            assert derived.pop("x-kubernetes-list-map-keys") == ["name"]
            derived["x-kubernetes-list-type"] = "atomic"
    assert mine.keys() == theirs.keys()
    assert mine == theirs


def test_what_is_left_out_was_there() -> None:
    """A list of differences must not outlive them."""
    everything = json.dumps(recorded())
    gone = [
        name
        for name in (
            *UNSERVED_URLS,
            *UNSERVED_PARAMETERS,
            *UNSERVED_MEDIA_TYPES,
        )
        if name not in everything or name in PATCH_TYPES
    ]
    assert gone == []


@pytest.mark.parametrize("path", sorted(documents.paths()))
def test_documents_are_whole(path: str) -> None:
    """Every reference leads to a schema, every operation has a name of its own, all answers are described."""
    document = ours(path)
    names = {reference.rpartition("/")[2] for reference in references(document)}
    operations = [
        operation
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in WITH_BODY
    ]
    ids = [operation["operationId"] for operation in operations]

    assert names <= document["components"]["schemas"].keys()
    assert len(ids) == len(set(ids))
    assert all(
        answer["description"]
        for operation in operations
        for answer in operation["responses"].values()
    )


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*map(references, value.values()))


# --- types whose documents were not recorded: at least their fields are known from protobuf ---

PROTOBUF_TYPES: Final = {
    "bool": "boolean",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
GROUPS: Final = (
    "batch.v1", "coordination.v1", "core.v1", "discovery.v1", "events.v1", "node.v1", "policy.v1", "rbac.v1",
    "scheduling.v1", "scheduling.v1alpha3", "storage.v1",
)  # fmt: skip


def wire_type(field: Field) -> str:
    inner = field.format if field.type == "integer" else field.type
    return {"list": "[]", "map": "map of "}.get(field.container, "") + inner


def from_protobuf(text: str) -> str:
    if text.startswith("map<"):
        return f"map of {from_protobuf(text[4:-1].split(',', 1)[1])}"
    if text.startswith("[]"):
        return f"[]{from_protobuf(text[2:])}"
    if text in PROTOBUF_TYPES:
        return PROTOBUF_TYPES[text]
    return text.replace("k8s.io.", "io.k8s.", 1)


@pytest.mark.parametrize("group", GROUPS)
def test_fields_and_types_are_those_of_protobuf(group: str) -> None:
    recorded_fields = json.loads(
        gzip.decompress((DATA / "openapi-protobuf-fields.json.gz").read_bytes())
    )
    compared = {
        name for document in recorded().values() for name in document["components"]["schemas"]
    }
    wrong = []
    for name, schema in tables.types_in(f"io.k8s.api.{group}").items():
        if name.endswith("List") or schema.name in compared:
            continue
        theirs = {
            field: from_protobuf(text) for field, text in recorded_fields[f"{group}.{name}"].items()
        }
        mine = {
            field: wire_type(description)
            for field, description in schema.fields.items()
            if not (schema.kinds and field in ("apiVersion", "kind"))
        }
        wrong += [
            (name, field, mine.get(field), theirs.get(field))
            for field in sorted(mine.keys() | theirs.keys())
            if mine.get(field) != theirs.get(field)
        ]
    assert wrong == []
