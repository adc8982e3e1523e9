from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any, Final

import msgspec
import pytest

from allot.api.identities import GroupVersion
from allot.apiserver.http.openapi import documents
from allot.apiserver.http.openapi.descriptions import field_description, texts_of, type_description
from allot.apiserver.http.openapi.operations import PATCH_TYPES
from allot.apiserver.kinds.resources import RESOURCES
from allot.apiserver.schemas import structs, tables
from allot.apiserver.schemas.fields import Type
from allot.apiserver.schemas.types import type_named

CLAIM: Final = "io.k8s.api.resource.v1.ResourceClaim"


@cache
def a_document(path: str) -> Any:
    body = documents.document(path)
    assert body is not None
    return json.loads(body)


def test_the_index_names_every_document_with_its_hash() -> None:
    index = json.loads(documents.index())["paths"]

    assert index.keys() == documents.paths().keys()
    assert {"api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1alpha1"} <= index.keys()
    for path, entry in index.items():
        body = documents.document(path)
        assert body is not None
        digest = hashlib.sha512(body).hexdigest().upper()
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        assert documents.document_hash(path) == digest


def test_there_is_no_document_for_other_paths() -> None:
    assert documents.document("apis/example.com/v1") is None
    assert documents.document_hash("apis/example.com/v1") is None


def test_documents_are_the_same_every_time() -> None:
    again = documents.build_document(documents.paths()["apis/resource.k8s.io/v1"])

    assert again == a_document("apis/resource.k8s.io/v1")


def test_the_head_of_a_document() -> None:
    document = a_document("apis/resource.k8s.io/v1alpha1")

    assert (document["openapi"], document["info"]["title"]) == ("3.0.0", "Kubernetes")
    assert list(document["paths"]) == [
        "/apis/resource.k8s.io/v1alpha1/",
        "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests",
        "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests/{name}",
        "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests/{name}/status",
    ]


@pytest.mark.parametrize(
    "resource",
    [resource for resource in RESOURCES if resource.is_stored],
    ids=lambda resource: resource.qualified_name,
)
def test_kubectl_finds_out_that_the_server_validates_fields(resource: Any) -> None:
    """It looks for a PATCH of the kind, and there for a parameter of its own called fieldValidation."""
    for version in resource.versions:
        root = f"apis/{resource.group}/{version}" if resource.group else f"api/{version}"
        patches = [
            item["patch"]
            for item in a_document(root)["paths"].values()
            if "patch" in item
            and item["patch"]["x-kubernetes-group-version-kind"] == resource.gvk(version)._asdict()
        ]
        assert patches
        for patch in patches:
            assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
            assert tuple(patch["requestBody"]["content"]) == PATCH_TYPES


def test_a_kind_is_found_by_its_group_version_and_kind() -> None:
    schemas = a_document("apis/resource.k8s.io/v1")["components"]["schemas"]

    assert schemas[CLAIM]["x-kubernetes-group-version-kind"] == [
        {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    ]
    assert schemas[CLAIM]["properties"]["spec"] == {
        "allOf": [{"$ref": f"#/components/schemas/{CLAIM}Spec"}],
        "default": {},
        "description": field_description(type_named(CLAIM), "spec"),
    }


# --- descriptions ---


def missing(types: dict[str, Type]) -> list[str]:
    """Types and fields that have no description."""
    return [name for name, schema in types.items() if not type_description(schema.name)] + [
        f"{name}.{field}"
        for name, schema in types.items()
        for field in schema.fields
        if not field_description(schema, field)
    ]


@pytest.mark.parametrize("version", structs.versions())
def test_everything_of_dra_is_described(version: str) -> None:
    assert missing(structs.types_in(version)) == []


def test_everything_of_metadata_is_described() -> None:
    assert missing(tables.types_in(tables.META)) == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.qualified_name)
def test_every_kind_is_described(resource: Any) -> None:
    for version in resource.versions:
        root = f"apis/{resource.group}/{version}" if resource.group else f"api/{version}"
        schemas = a_document(root)["components"]["schemas"]
        (schema,) = [
            schema
            for schema in schemas.values()
            if resource.gvk(version)._asdict() in schema.get("x-kubernetes-group-version-kind", ())
        ]
        assert schema["description"]


@pytest.mark.parametrize(
    ("type_name", "field"),
    [
        ("PodSpec", "resourceClaims"),
        ("PodResourceClaim", "resourceClaimTemplateName"),
        ("ResourceRequirements", "claims"),
        ("ResourceClaim", "request"),
        ("PodStatus", "resourceClaimStatuses"),
        ("PodStatus", "extendedResourceClaimStatus"),
        ("ResourceHealth", "health"),
        ("NodeSelectorTerm", "matchFields"),
    ],
)
def test_what_pods_have_to_do_with_dra_is_described(type_name: str, field: str) -> None:
    assert field_description(type_named(f"io.k8s.api.core.v1.{type_name}"), field)


def test_descriptions_are_about_types_and_fields_that_exist() -> None:
    packages = {
        "resource": [f"io.k8s.api.resource.{version}" for version in structs.versions()],
        "meta": [tables.META],
        "scheduling": ["io.k8s.api.scheduling.v1"],
        "autoscaling": ["io.k8s.api.autoscaling.v1", "io.k8s.api.autoscaling.v2"],
    }
    unknown = []
    for group in (
        "apps", "authentication", "autoscaling", "batch", "coordination", "core", "discovery", "events", "meta",
        "node", "policy", "rbac", "resource", "scheduling", "storage", "networking", "certificates", "flowcontrol",
        "apiregistration", "storagemigration",
    ):  # fmt: skip
        names = packages.get(group, [f"io.k8s.api.{group}.v1"])
        unknown += [
            key for key in described(group) if not any(exists(name, *key) for name in names)
        ]
    assert unknown == []


def described(group: str) -> list[tuple[str, ...]]:
    keys = [tuple(key) for key in texts_of(group)]
    assert keys
    return keys


def exists(package: str, version: str, type_name: str, field: str) -> bool:
    if version and not package.endswith(f".{version}"):
        return False
    try:
        schema = type_named(f"{package}.{type_name}")
    except KeyError:
        return False
    return not field or field in schema.fields


def test_a_text_for_one_version_comes_before_the_common_one() -> None:
    flat = type_named("io.k8s.api.resource.v1beta1.DeviceRequest")
    nested = type_named("io.k8s.api.resource.v1.DeviceRequest")

    assert type_description(flat.name) != type_description(nested.name)
    assert field_description(flat, "count") == field_description(
        type_named("io.k8s.api.resource.v1.ExactDeviceRequest"), "count"
    )


def test_a_document_is_encoded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    document = documents.build_document(GroupVersion("apps", "v1"))
    whole = msgspec.json.encode(document)
    pieces: list[int] = []

    def counting(value: Any) -> bytes:
        if not (
            isinstance(value, dict) and any(isinstance(v, msgspec.Raw) for v in value.values())
        ):
            pieces.append(len(whole_encode(value)))
        return whole_encode(value)

    whole_encode = msgspec.json.encode
    monkeypatch.setattr(msgspec.json, "encode", counting)
    assert documents.encode_in_pieces(document) == whole
    assert max(pieces) < len(whole) / 20
