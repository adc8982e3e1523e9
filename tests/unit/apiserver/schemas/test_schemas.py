from __future__ import annotations

import json
from typing import Any, Final

import pytest
from msgspec import Struct

from allot.api import meta
from allot.api.identities import GroupVersionKind
from allot.apiserver.kinds.definition import CONNECTIONS, PROXIES
from allot.apiserver.kinds.resources import RESOURCES
from allot.apiserver.schemas import structs, tables
from allot.apiserver.schemas.mismatches import first_mismatch
from allot.apiserver.schemas.strictness import type_errors, unknown_fields
from allot.apiserver.schemas.types import META_KINDS, reachable, type_named, type_of

POD: Final = GroupVersionKind("", "v1", "Pod")
SECRET: Final = GroupVersionKind("", "v1", "Secret")
LEASE: Final = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
SERVED: Final = sorted(
    {resource.gvk(version) for resource in RESOURCES for version in resource.versions}
    | {part.kind for resource in RESOURCES for part in resource.subresources if part.kind}
    - {part.kind for part in (*CONNECTIONS, *PROXIES)}
)
"""All but the options of connections, which are in the query."""


@pytest.mark.parametrize("gvk", SERVED, ids=str)
def test_every_served_kind_has_a_schema_and_all_that_is_in_it(gvk: GroupVersionKind) -> None:
    schema = type_of(gvk)

    assert schema is not None
    assert schema.kinds == (gvk,)
    assert {"apiVersion", "kind", "metadata"} <= schema.fields.keys()
    assert type_named(schema.name) is schema
    assert schema.name in reachable([schema.name])


def test_every_served_kind_has_a_list() -> None:
    kinds = [
        resource.gvk(version)
        for resource in RESOURCES
        for version in resource.versions
        if resource.is_stored
    ]
    without = [gvk for gvk in kinds if type_of(gvk._replace(kind=f"{gvk.kind}List")) is None]

    assert without == []


@pytest.mark.parametrize("kind", sorted(META_KINDS))
def test_kinds_of_every_group(kind: str) -> None:
    schema = type_of(GroupVersionKind("resource.k8s.io", "v1beta1", kind))

    assert schema is not None
    assert schema.name == f"{tables.META}.{kind}"


@pytest.mark.parametrize(
    "gvk",
    [
        GroupVersionKind("", "v1", "Nothing"),
        GroupVersionKind("", "v1", "PodSpec"),
        GroupVersionKind("", "v2", "Pod"),
        GroupVersionKind("apps", "v1", "Pod"),
        GroupVersionKind("apps.example.com", "v1", "Deployment"),
        GroupVersionKind("resource.k8s.io", "v1", "ResourcePoolStatusRequest"),
        GroupVersionKind("resource.k8s.io", "v1", "DeviceClaim"),
        GroupVersionKind("", "../v1", "Pod"),
        GroupVersionKind("resource.k8s.io", "v7", "ResourceClaim"),
    ],
    ids=str,
)
def test_unknown_kinds(gvk: GroupVersionKind) -> None:
    assert type_of(gvk) is None


def test_unknown_types() -> None:
    with pytest.raises(KeyError, match=r"io\.k8s\.api\.core\.v1\.Nothing"):
        type_named("io.k8s.api.core.v1.Nothing")
    with pytest.raises(KeyError, match="nothing"):
        type_named("nothing")


def test_what_patches_need_to_know() -> None:
    spec = type_named("io.k8s.api.core.v1.PodSpec").fields
    status = type_named("io.k8s.api.resource.v1.ResourceClaimStatus").fields
    metadata = type_named(f"{tables.META}.ObjectMeta").fields

    assert (spec["containers"].container, spec["containers"].merge_key) == ("list", "name")
    assert spec["containers"].type == "io.k8s.api.core.v1.Container"
    assert spec["volumes"].patch_strategy == "merge,retainKeys"
    assert spec["tolerations"].patch_strategy == ""
    assert (metadata["finalizers"].patch_strategy, metadata["finalizers"].merge_key) == (
        "merge",
        "",
    )
    assert status["reservedFor"].merge_key == "uid"
    assert status["devices"].list_map_keys == ("driver", "device", "pool", "shareID")
    assert type_named("io.k8s.api.storage.v1.CSINodeSpec").fields["drivers"].merge_key == "name"


# --- DRA types and their structs ---


@pytest.mark.parametrize("version", structs.versions())
def test_every_field_of_a_struct_is_in_its_schema(version: str) -> None:
    for name, cls in structs.structs_in(version).items():
        fields = structs.types_in(version)[name].fields
        assert set(cls.__struct_encode_fields__) == fields.keys() - {"apiVersion", "kind"}, name


@pytest.mark.parametrize(
    "cls",
    [
        meta.ObjectMeta,
        meta.OwnerReference,
        meta.Condition,
        meta.NodeSelector,
        meta.NodeSelectorTerm,
        meta.NodeSelectorRequirement,
    ],
)
def test_shared_structs_have_the_fields_of_the_tables(cls: type[Struct]) -> None:
    package = "io.k8s.api.core.v1" if cls.__name__.startswith("NodeSelector") else tables.META

    assert (
        set(cls.__struct_encode_fields__) == type_named(f"{package}.{cls.__name__}").fields.keys()
    )


@pytest.mark.parametrize(
    "facts",
    [structs.LIST_TYPES, structs.MERGED, structs.REQUIRED, structs.OPTIONAL, structs.DEFAULTS],
)
def test_facts_are_about_fields_that_exist(facts: Any) -> None:
    places = {
        f"{name}.{field}"
        for version in structs.versions()
        for name, cls in structs.structs_in(version).items()
        for field in cls.__struct_encode_fields__
    }
    assert set(facts) - places == set()


# --- JSON types of raw kinds ---


def a_rich_pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "pod",
            "labels": {"app": "x", "empty": None},
            "creationTimestamp": None,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "busybox",
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                    "ports": [{"containerPort": 80}],
                    "resources": {
                        "claims": [{"name": "gpu"}],
                        "limits": {"cpu": "1", "memory": 1.5},
                    },
                    "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 5},
                }
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
        },
        "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    """A pod with another value at a path such as spec.containers.0.image."""
    pod = a_rich_pod()
    *parents, last = path.split(".")
    part: Any = pod
    for name in parents:
        part = part[int(name) if name.isdigit() else name]
    part[int(last) if last.isdigit() else last] = value
    return pod


def test_a_pod_without_mistakes() -> None:
    assert type_errors(a_rich_pod(), POD) is None
    assert unknown_fields(json.dumps(a_rich_pod()).encode(), POD) == []


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec", [], "array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            "spec.containers",
            "x",
            "string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "spec.containers.0",
            1,
            "number into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            "spec.containers.0.image",
            3,
            "number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            "spec.restartPolicy",
            True,
            "bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            "spec.hostNetwork",
            "true",
            "string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            "spec.hostNetwork",
            1,
            "number into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            "spec.containers.0.ports.0.containerPort",
            2**31,
            "number 2147483648 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "spec.activeDeadlineSeconds",
            1.5,
            "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            "spec.activeDeadlineSeconds",
            True,
            "bool into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            "metadata.labels",
            [],
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            "metadata.labels.app",
            1,
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "spec.containers.0.resources.limits",
            "x",
            "string into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            "spec.containers.0.readinessProbe.httpGet.port",
            True,
            "bool into Go value of type int32",
        ),
        ("status.startTime", 5, "number into Go value of type string"),
    ],
)
def test_wrong_types(path: str, value: Any, problem: str) -> None:
    assert str(type_errors(changed(path, value), POD)) == f"json: cannot unmarshal {problem}"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.containers.0.resources.limits.cpu", "1x", "quantities must match"),
        (
            "status.startTime",
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        ("status.startTime", "2026-13-01T00:00:00Z", "month out of range"),
    ],
)
def test_values_that_cannot_be_read(path: str, value: Any, problem: str) -> None:
    assert problem in str(type_errors(changed(path, value), POD))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("YQ==", None),
        ("Y\r\nQ==\n", None),
        ("YQ", "illegal base64 data at input byte 0"),
        ("YWJj!A==", "illegal base64 data at input byte 4"),
        (3, "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"),
    ],
)
def test_bytes(text: Any, problem: str | None) -> None:
    found = type_errors({"data": {"key": text}}, SECRET)

    assert (found and str(found)) == problem
    assert found is None or found.located == f"{problem} (data[key]: (not shown))"


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        ("2026-01-01T00:00:00.000001Z", None),
        ("2026-01-01T00:00:00.000001+01:00", None),
        ("2026-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"'),
        ("2026-01-01T00:00:00.001Z", 'cannot parse ".001Z" as ".000000"'),
        (
            "now",
            'parsing time "now" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "now" as "2006"',
        ),
    ],
)
def test_times_with_microseconds(time: str, problem: str | None) -> None:
    found = type_errors({"spec": {"renewTime": time}}, LEASE)

    assert found is None if problem is None else problem in str(found)


def test_a_document_of_an_unknown_kind_is_not_judged() -> None:
    unknown = GroupVersionKind("example.com", "v1", "Thing")

    assert type_errors({"spec": 1}, unknown) is None
    assert unknown_fields(b'{"spec": 1}', unknown) == []


def test_the_fast_check_lets_nothing_pass_that_the_slow_one_refuses() -> None:
    """Whatever value is put in whatever place."""
    values: tuple[Any, ...] = ("x", "1", 1, -1, 2**40, 1.5, True, None, [], {}, [None], {"a": None})
    schema = type_of(POD)
    assert schema is not None
    pods = [changed(path, value) for path in leaves(a_rich_pod()) for value in values]

    assert [
        pod for pod in pods if str(type_errors(pod, POD)) != str(first_mismatch(pod, schema))
    ] == []


def leaves(value: Any, path: str = "") -> list[str]:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = [path] if path else []
    for name, item in items:
        found += leaves(item, f"{path}.{name}" if path else str(name))
    return found


# --- unknown and duplicate fields ---


@pytest.mark.parametrize(
    ("body", "issues"),
    [
        ('{"spec": {"x": 1}}', ['unknown field "spec.x"']),
        ('{"spec": {"x": 1, "x": 2}}', ['unknown field "spec.x"']),
        (
            '{"spec": {"containers": [{"name": "a"}, {"foo": {}}]}}',
            ['unknown field "spec.containers[1].foo"'],
        ),
        ('{"metadata": {}, "metadata": {"y": 1}}', [
            'duplicate field "metadata"',
            'unknown field "metadata.y"',
        ]),
        ('{"metadata": {"labels": {"a": "b", "a": "c"}}}', ['duplicate field "metadata.labels.a"']),
        (
            '{"spec": {"volumes": [{"name": "v", "csi": {"volumeAttributes": {"free": "text"}}}]}}',
            [],
        ),
        ('{"metadata": {"managedFields": [{"fieldsV1": {"f:x": {}, "f:x": {}}}]}}', []),
        ('{"kind": "Pod", "bar": 1, "apiVersion": "v1"}', ['unknown field "bar"']),
        ('{"spec": "text", "metadata": [], "status": null}', []),
    ],
)  # fmt: skip
def test_unknown_and_duplicate_fields(body: str, issues: list[str]) -> None:
    assert [str(issue) for issue in unknown_fields(body.encode(), POD)] == issues


def test_an_unknown_field_comes_with_those_there_are() -> None:
    (issue,) = unknown_fields(b'{"dat": {}}', SECRET)

    assert "data" in issue.known
