"""Whatever a client sends, the server answers it, and what it has stored can still be read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api.protobuf.envelope import MEDIA_TYPE
from allot.apiserver.kinds.resources import RESOURCES, Resource
from allot.apiserver.schemas.fields import Field
from allot.apiserver.schemas.types import type_named, type_of
from tests.clients.in_process import TOKEN, Answer, InProcessServer

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PATCHES: Final = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

# --- what is sent ---

odd_integers = st.integers() | st.sampled_from([-1, 0, 2**31, 2**63 - 1, -(2**63), 2**63, 2**64])
odd_texts = st.text(max_size=12) | st.sampled_from(
    ["", "x", "..", "a/b", "\0", "1", "-1", "0001-01-01T00:00:00+23:59", "9" * 30, "a" * 300, "{}"]
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | odd_integers | st.floats(allow_nan=False) | odd_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["a", "default", "no-such", "a.b", "0"])
times = st.sampled_from(
    ["2026-01-02T03:04:05Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z"]
)
quantities = st.sampled_from(["1", "10Gi", "-1", "1e3", "0.5", 5, "9" * 40, "1n", "1E"])
plain_texts = names | st.sampled_from(
    ["Node", "Always", "gpu.example.com", "gpu.example.com/x", "true", "app in (a)", "10.0.0.1"]
)
_SCALARS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "string": plain_texts,
    "boolean": st.booleans(),
    "number": st.floats(-1e6, 1e6),
    "bytes": st.sampled_from(["", "YQ==", "%%"]),
    "any": json_values,
    "strings": st.lists(plain_texts, max_size=2),
    "int-or-string": st.integers(-5, 5) | st.sampled_from(["50%", "x"]),
    "quantity": quantities,
    "time": times,
    "microtime": st.sampled_from(["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05Z"]),
    "integer": st.integers(-2, 3) | odd_integers.filter(lambda number: abs(number) < 2**31),
}


@st.composite
def field_values(draw: st.DrawFn, field: Field, depth: int) -> Any:
    """Mostly what the schema asks for; now and then something else."""
    if draw(st.integers(0, 24)) == 0:
        return draw(json_values)
    if field.is_type:
        item: st.SearchStrategy[Any] = typed_values(field.type, depth + 1)
    elif field.enum:
        item = st.sampled_from(field.enum)
    else:
        item = _SCALARS[field.type]
    match field.container:
        case "list":
            return draw(st.lists(item, max_size=2))
        case "map":
            return draw(st.dictionaries(plain_texts, item, max_size=2))
    return draw(item)


@st.composite
def typed_values(draw: st.DrawFn, type_name: str, depth: int = 0) -> dict[str, Any]:
    fields = type_named(type_name).fields
    chosen = {name for name, field in fields.items() if field.required}
    if depth < 6:
        chosen |= (
            set(draw(st.lists(st.sampled_from(sorted(fields)), max_size=3))) if fields else set()
        )
    return {
        name: draw(field_values(fields[name], depth))
        for name in sorted(chosen)
        if name not in ("kind", "apiVersion", "metadata", "managedFields")
    }


@st.composite
def documents(draw: st.DrawFn, resource: Resource, version: str) -> dict[str, Any]:
    schema = type_of(resource.gvk(version))
    assert schema is not None
    document = draw(typed_values(schema.name))
    metadata: dict[str, Any] = {"name": "a"}
    if draw(st.booleans()):
        metadata |= draw(typed_values("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", 5))
        metadata["name"] = draw(st.just("a") | odd_texts)
        metadata.pop("resourceVersion", None)
    return {**document, "metadata": metadata}


served = st.sampled_from(
    [(resource, version) for resource in RESOURCES for version in resource.versions]
)


def collection_path(resource: Resource, version: str) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    place = "/namespaces/default" if resource.namespaced else ""
    return f"{root}/{version}{place}/{resource.plural}"


json_patches = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "zz"]),
            "path": st.sampled_from(
                ["", "/", "/spec", "/metadata/labels", "/metadata", "/status/x", "/spec/-", "/~2"]
            ),
        },
        optional={"value": json_values, "from": st.sampled_from(["/spec", "/metadata/name", "x"])},
    ),
    max_size=3,
)

delete_options = st.fixed_dictionaries(
    {},
    optional={
        "gracePeriodSeconds": odd_integers,
        "propagationPolicy": odd_texts | st.sampled_from(["Orphan", "Foreground", "Background"]),
        "preconditions": json_values,
        "kind": st.sampled_from(["DeleteOptions", "Pod"]),
    },
)
DEFAULT: Final = "/api/v1/namespaces/default"
A_POD: Final = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
TOUCHED: Final = [
    resource
    for resource in RESOURCES
    if resource.plural
    in ("pods", "events", "serviceaccounts", "namespaces", "resourceclaims", "nodes")
]

# --- what must hold ---


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No error is logged."""
    yield
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def check_answer(answer: Answer) -> None:
    """Done, or a 4xx that names the problem. Only a version from the future is a 504."""
    content_type = answer.headers["content-type"]
    if answer.code == 504:
        assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        return
    assert answer.code < 500, answer
    if answer.code >= 400 and answer.body and content_type == "application/json":
        status = answer.json
        assert (status["kind"], status["status"]) == ("Status", "Failure")
        assert status["code"] == answer.code
        assert status["message"]


def check_everything_reads(server: InProcessServer, *resources: Resource) -> None:
    """What is stored of these resources is shown in each version and form."""
    for resource in resources:
        if not resource.is_stored:
            continue
        for version in resource.versions:
            path = collection_path(resource, version)
            for accept in ("application/json", TABLE, PARTIAL):
                answer = server.request("GET", path, headers={"accept": accept})
                assert answer.code == 200, (path, accept, answer)
                assert answer.json["kind"].endswith("List" if accept != TABLE else "Table")


unhurried = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


@settings(unhurried, max_examples=80)
@given(st.data())
def test_any_object_can_be_sent(data: st.DataObject) -> None:
    """An object of any kind with anything in it is stored or refused, and so is every change of it."""
    resource, version = data.draw(served)
    path = collection_path(resource, version)
    with InProcessServer() as server:
        document = data.draw(documents(resource, version))
        created = server.request("POST", path, document)
        check_answer(created)
        if created.code != 201:
            # Something to change: the least that is accepted, if our guess is.
            server.request("POST", path, {"metadata": {"name": "a"}, "spec": {}})
        name = quote(str(document["metadata"]["name"]), safe="")
        for part in ("", *(f"/{part.name}" for part in resource.subresources)):
            place = f"{path}/{name}{part}"
            changed = data.draw(documents(resource, version))
            check_answer(server.request("PUT", place, changed))
            check_answer(server.request("PATCH", place, changed, PATCHES["merge"]))
            check_answer(server.request("PATCH", place, changed, PATCHES["strategic"]))
            check_answer(server.request("PATCH", place, data.draw(json_patches), PATCHES["json"]))
            check_answer(server.request("POST", place, changed))
        check_everything_reads(server, resource)
        check_answer(server.request("GET", f"{path}/{name}"))
        check_answer(server.request("DELETE", f"{path}/{name}", data.draw(delete_options)))
        check_everything_reads(server, resource)


queries = st.dictionaries(
    st.sampled_from(
        [
            "watch",
            "limit",
            "continue",
            "resourceVersionMatch",
            "labelSelector",
            "fieldSelector",
            "timeoutSeconds",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "dryRun",
            "fieldValidation",
            "fieldManager",
            "pretty",
            "gracePeriodSeconds",
            "propagationPolicy",
            "orphanDependents",
            "includeObject",
        ]
    ),
    odd_texts
    | st.sampled_from(["true", "0", "All", "NotOlderThan", "metadata.name=a", "a in (b", "Strict"]),
    max_size=4,
)
SEGMENTS: Final = """
    api apis v1 v3 namespaces default pods a status binding scale eviction token openapi healthz
    resource.k8s.io resourceclaims nodes events.k8s.io events version metrics .. %2e%2e %2F %00 %
"""
segments = st.just("") | st.sampled_from(SEGMENTS.split())
real_paths = st.sampled_from(
    [
        DEFAULT,
        f"{DEFAULT}/status",
        f"{DEFAULT}/finalize",
        f"{DEFAULT}/pods",
        *(f"{DEFAULT}/pods/a{part}" for part in ("", "/status", "/binding", "/eviction")),
        f"{DEFAULT}/serviceaccounts/a/token",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/events.k8s.io/v1/namespaces/default/events",
    ]
)
paths = real_paths | st.lists(segments, max_size=8).map(lambda parts: "/" + "/".join(parts))
methods = st.sampled_from(
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "", "get"]
)
media_types = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "text/plain",
        "",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        *PATCHES.values(),
    ]
)
accepts = st.sampled_from(
    ["*/*", TABLE, PARTIAL, "application/yaml", "text/html", ";;", "a/b;q=x,", MEDIA_TYPE]
)
bodies = (
    st.binary(max_size=40)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.binary(max_size=40).map(lambda data: b"k8s\0" + data)
)


@settings(unhurried, max_examples=150)
@given(st.data())
def test_any_request_is_answered(data: st.DataObject) -> None:
    """Arbitrary methods, paths, queries, headers and bodies harm neither the server nor its objects."""
    with InProcessServer() as server:
        server.request("POST", f"{DEFAULT}/pods", A_POD)
        server.request("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "a"}})
        before = server.stored()
        for _ in range(data.draw(st.integers(1, 4))):
            query = "&".join(
                f"{name}={quote(value)}" for name, value in data.draw(queries).items()
            ).encode() + data.draw(st.just(b"") | st.binary(max_size=8))
            path = data.draw(paths)
            headers = [
                (b"authorization", f"Bearer {TOKEN}".encode()),
                (b"content-type", data.draw(media_types).encode()),
                (b"accept", data.draw(accepts).encode()),
            ]
            method = data.draw(methods)
            chunks = data.draw(st.lists(bodies, max_size=2))
            check_answer(server.request_raw(method, path.encode(), query, chunks, headers))
        after = server.stored()
        check_everything_reads(server, *TOUCHED)
        gone = before.keys() - after.keys()
        assert gone <= {"registry/pods/default/a", "registry/serviceaccounts/default/a"}
