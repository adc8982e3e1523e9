"""The API server in protobuf, as Go's clients speak to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import (
    MEDIA_TYPE,
    FrameReader,
    decode_document,
    encode_document,
    in_envelope,
)
from allot.api.protobuf.wire import delimited
from allot.apiserver.kinds.resources import RESOURCES
from allot.testing.servers import LocalServer, ServerResponse

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
DELETE_OPTIONS = GroupVersionKind("", "v1", "DeleteOptions")
METADATA = f"{MEDIA_TYPE};as=PartialObjectMetadata{{}};v=v1;g=meta.k8s.io"
GO = f"{MEDIA_TYPE}, */*"


def run(story: Callable[[LocalServer], Awaitable[None]]) -> None:
    async def with_server() -> None:
        async with LocalServer() as server:
            await story(server)

    asyncio.run(with_server())


def content_type(answer: ServerResponse) -> str:
    return dict(answer.headers)["content-type"]


async def ask(
    server: LocalServer,
    method: str,
    path: str,
    document: dict[str, Any] | bytes | None = None,
    gvk: GroupVersionKind = CONFIG_MAP,
    accept: str = MEDIA_TYPE,
    **rest: Any,
) -> ServerResponse:
    body = encode_document(document, gvk) if isinstance(document, dict) else document
    headers = {"accept": accept}
    return await server.ask(method, path, body, headers=headers, content_type=MEDIA_TYPE, **rest)


def shown(answer: ServerResponse) -> dict[str, Any]:
    assert content_type(answer) == MEDIA_TYPE, answer
    return decode_document(answer.content)


def config_map(name: str, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"b": "2", "a": "1"}, **rest}


def test_an_object_from_create_to_delete() -> None:
    async def story(server: LocalServer) -> None:
        created = await ask(server, "POST", CONFIG_MAPS, config_map("x"))
        assert created.code == 201
        assert shown(created)["data"] == {"a": "1", "b": "2"}
        read = await server.get(f"{CONFIG_MAPS}/x")
        assert read["data"] == {"a": "1", "b": "2"}

        found = shown(await ask(server, "GET", f"{CONFIG_MAPS}/x"))
        assert found["metadata"]["resourceVersion"] == read["metadata"]["resourceVersion"]
        assert found["metadata"]["uid"] == read["metadata"]["uid"]
        changed = await ask(server, "PUT", f"{CONFIG_MAPS}/x", found | {"data": {"c": "3"}})
        assert shown(changed)["data"] == {"c": "3"}

        options = {"preconditions": {"uid": "other"}}
        refused = await ask(server, "DELETE", f"{CONFIG_MAPS}/x", options, DELETE_OPTIONS)
        assert (refused.code, shown(refused)["reason"]) == (409, "Conflict")
        deleted = await ask(server, "DELETE", f"{CONFIG_MAPS}/x", {}, DELETE_OPTIONS)
        assert shown(deleted)["status"] == "Success"

    run(story)


def test_typed_kinds_keep_opaque_parameters_byte_for_byte() -> None:
    parameters = b'{ "z" : 1,\n"a": [ ] }'

    async def story(server: LocalServer) -> None:
        opaque = delimited(1, b"gpu.example.com") + delimited(2, delimited(1, parameters))
        config = delimited(3, delimited(2, delimited(1, opaque)))
        request = delimited(1, b"r") + delimited(2, delimited(1, b"gpu"))
        spec = delimited(1, delimited(1, request) + config)
        body = in_envelope(
            delimited(1, delimited(1, b"x")) + delimited(2, spec),
            "resource.k8s.io/v1",
            "ResourceClaim",
        )
        created = await ask(server, "POST", CLAIMS, body)
        assert created.code == 201, created
        assert parameters in created.content
        assert parameters in (await ask(server, "GET", f"{CLAIMS}/x")).content
        # In every version, and also when it is written back.
        beta = CLAIMS.replace("/v1/", "/v1beta1/")
        found = await ask(server, "GET", f"{beta}/x")
        assert parameters in found.content
        again = await ask(server, "PUT", f"{beta}/x", found.content)
        assert again.code == 200, again
        assert parameters in again.content

    run(story)


def test_defaults_are_filled_in_as_in_json() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}

    async def story(server: LocalServer) -> None:
        for plural, kind, document in (("pods", "Pod", pod), ("services", "Service", service)):
            path = f"/api/v1/namespaces/default/{plural}"
            gvk = GroupVersionKind("", "v1", kind)
            one = shown(await ask(server, "POST", path, document, gvk, query={"dryRun": "All"}))
            other = await server.ask("POST", path, document, query={"dryRun": "All"})
            assert _without_identity(one) == _without_identity(_as_read(other.json, gvk))

    run(story)


def _as_read(document: dict[str, Any], gvk: GroupVersionKind) -> dict[str, Any]:
    """What a client that speaks protobuf would make of a document."""
    return decode_document(encode_document(document, gvk))


def _without_identity(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document["metadata"]
    kept = {k: v for k, v in metadata.items() if k not in ("uid", "creationTimestamp")}
    # The requests may come in different seconds.
    kept["managedFields"] = [{**each, "time": ""} for each in metadata.get("managedFields", ())]
    spec = {k: v for k, v in document["spec"].items() if not k.startswith("clusterIP")}
    return {**document, "metadata": kept, "spec": spec}


def test_lists() -> None:
    async def story(server: LocalServer) -> None:
        empty = await ask(server, "GET", "/api/v1/namespaces/none/configmaps")
        assert shown(empty).keys() == {"kind", "apiVersion", "metadata"}
        for n in range(40):
            await server.post(CONFIG_MAPS, config_map(f"x-{n:02}", data={"a": "x" * 10_000}))
        whole = await ask(server, "GET", CONFIG_MAPS)  # in pieces
        listed = shown(whole)
        assert listed["kind"] == "ConfigMapList"
        assert [item["metadata"]["name"] for item in listed["items"]] == [
            f"x-{n:02}" for n in range(40)
        ]
        page = shown(await ask(server, "GET", CONFIG_MAPS, query={"limit": "3"}))
        assert len(page["items"]) == 3
        assert page["metadata"]["continue"]
        assert page["metadata"]["remainingItemCount"] == 37
        expected = await server.get(CONFIG_MAPS, limit="3")
        assert (
            _as_read(expected, CONFIG_MAP._replace(kind="ConfigMapList"))["items"] == page["items"]
        )
        gone = await ask(server, "DELETE", CONFIG_MAPS, {}, DELETE_OPTIONS)
        assert len(shown(gone)["items"]) == 40

    run(story)


def test_metadata() -> None:
    async def story(server: LocalServer) -> None:
        await server.post(CONFIG_MAPS, config_map("x"))
        one = shown(await ask(server, "GET", f"{CONFIG_MAPS}/x", accept=METADATA.format("")))
        assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert one["metadata"]["name"] == "x"
        assert "data" not in one
        several = shown(await ask(server, "GET", CONFIG_MAPS, accept=METADATA.format("List")))
        assert several["kind"] == "PartialObjectMetadataList"
        assert several["items"] == [{"metadata": one["metadata"]}]

    run(story)


def test_tables_are_json() -> None:
    table = f"{MEDIA_TYPE};as=Table;v=v1;g=meta.k8s.io"

    async def story(server: LocalServer) -> None:
        refused = await ask(server, "GET", CONFIG_MAPS, accept=table)
        assert (refused.code, content_type(refused)) == (406, "application/json")
        accept = f"{table},application/json;as=Table;v=v1;g=meta.k8s.io"
        answer = await ask(server, "GET", CONFIG_MAPS, accept=accept)
        assert answer.json["kind"] == "Table"

    run(story)


def test_errors_are_in_the_format_that_is_accepted() -> None:
    async def story(server: LocalServer) -> None:
        missing = await ask(server, "GET", f"{CONFIG_MAPS}/nope", accept=GO)
        assert shown(missing) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'configmaps "nope" not found',
            "reason": "NotFound",
            "details": {"name": "nope", "kind": "configmaps"},
            "code": 404,
        }
        form = METADATA.format("")
        missing = await ask(server, "GET", f"{CONFIG_MAPS}/nope", accept=form)
        assert content_type(missing) == "application/json"
        headers = {"accept": MEDIA_TYPE, "authorization": "Bearer wrong"}
        unknown = await server.ask("GET", CONFIG_MAPS, headers=headers)
        assert shown(unknown)["code"] == 401
        invalid = await ask(server, "POST", CONFIG_MAPS, config_map("NOT A NAME"))
        assert shown(invalid)["details"]["causes"][0]["field"] == "metadata.name"

    run(story)


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
HANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
WRONG_BODIES = {
    "json": (b"{}", f"{UNRECOGNIZED}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({{}})"),
    "cut off": (b"k8s\0\xff\xff", f"{UNRECOGNIZED}unexpected EOF (6b387300ffff)"),
    "nothing in it": (b"k8s\0", f"{UNRECOGNIZED}empty body (6b387300)"),
    "empty": (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
    "long": (b"k8s\0" + b"\xff" * 200, f"{UNRECOGNIZED}proto: integer overflow (6b387300{'ff' * 26} ...)"),
    "cut off inside": (in_envelope(b"\x0a\x7fabc", "v1", "ConfigMap"), f"{HANDLED}unexpected EOF"),
    "illegal tag": (in_envelope(b"\x00\x01", "v1", "ConfigMap"), f"{HANDLED}proto: illegal tag 0 (wire type 0)"),
    "wrong kind": (in_envelope(b"", "v1", "Pod"), 'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion'),
    "wrong version": (in_envelope(b"", "x/v1", "ConfigMap"), 'ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "x/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_BODIES)
def test_wrong_bodies(case: str) -> None:
    body, message = WRONG_BODIES[case]

    async def story(server: LocalServer) -> None:
        refused = await ask(server, "POST", CONFIG_MAPS, body)
        assert (refused.code, shown(refused)["message"]) == (400, message)

    run(story)


def test_bodies_need_not_say_what_they_are() -> None:
    async def story(server: LocalServer) -> None:
        body = in_envelope(delimited(1, delimited(1, b"x")), "", "")
        created = await ask(server, "POST", CONFIG_MAPS, body, query={"fieldValidation": "Strict"})
        assert created.code == 201

    run(story)


def test_patches_are_not_protobuf() -> None:
    async def story(server: LocalServer) -> None:
        await server.post(CONFIG_MAPS, config_map("x"))
        refused = await ask(server, "PATCH", f"{CONFIG_MAPS}/x", b"{}")
        assert shown(refused)["code"] == 415
        headers = {"accept": GO, "content-type": "application/merge-patch+json"}
        patched = await server.ask(
            "PATCH", f"{CONFIG_MAPS}/x", b'{"data":{"a":null}}', headers=headers
        )
        assert shown(patched)["data"] == {"b": "2"}

    run(story)


def test_kinds_without_messages_are_json() -> None:
    path = "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests"

    async def story(server: LocalServer) -> None:
        assert (await ask(server, "GET", path)).code == 406
        listed = await ask(server, "GET", path, accept=GO)
        assert (listed.code, content_type(listed)) == (200, "application/json")
        document = in_envelope(b"", "resource.k8s.io/v1alpha1", "ResourcePoolStatusRequest")
        refused = await ask(server, "POST", path, document, accept="application/json")
        assert refused.code == 415

    run(story)


async def frames(
    server: LocalServer, path: str, count: int, accept: str, **query: str
) -> list[Any]:
    reader = FrameReader()
    events: list[Any] = []
    async with server.watch(path, {"accept": accept}, **query) as stream:
        assert stream.headers["content-type"] == f"{MEDIA_TYPE};stream=watch"
        while len(events) < count:
            events += reader.feed(await stream.chunk())
    return [(event.type, decode_document(event.body)) for event in events]


def test_watches() -> None:
    async def story(server: LocalServer) -> None:
        await server.post(CONFIG_MAPS, config_map("x"))
        accept = f"{MEDIA_TYPE};stream=watch"
        query = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        added, bookmark = await frames(server, CONFIG_MAPS, 2, accept, **query)
        assert added == ("ADDED", shown(await ask(server, "GET", f"{CONFIG_MAPS}/x")))
        assert bookmark[0] == "BOOKMARK"
        metadata = bookmark[1]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}

        version = metadata["resourceVersion"]
        await server.ask("PUT", f"{CONFIG_MAPS}/x", config_map("x", data={"c": "3"}))
        await server.ask("DELETE", f"{CONFIG_MAPS}/x")
        modified, deleted = await frames(server, CONFIG_MAPS, 2, GO, resourceVersion=version)
        assert (modified[0], modified[1]["data"]) == ("MODIFIED", {"c": "3"})
        assert (deleted[0], deleted[1]["data"]) == ("DELETED", {"c": "3"})
        # The version of the deletion, not of the last change.
        assert int(deleted[1]["metadata"]["resourceVersion"]) > int(
            modified[1]["metadata"]["resourceVersion"]
        )
        form = METADATA.format("")
        modified, deleted = await frames(server, CONFIG_MAPS, 2, form, resourceVersion=version)
        assert modified[1]["kind"] == "PartialObjectMetadata"
        assert deleted[1]["metadata"]["name"] == "x"

    run(story)


def test_subresources() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}

    async def story(server: LocalServer) -> None:
        pods = "/api/v1/namespaces/default/pods"
        await server.post(pods, pod)
        gvk = GroupVersionKind("", "v1", "Binding")
        bound = await ask(server, "POST", f"{pods}/p/binding", binding, gvk)
        assert (bound.code, shown(bound)["status"]) == (201, "Success")
        gvk = GroupVersionKind("policy", "v1", "Eviction")
        evicted = await ask(server, "POST", f"{pods}/p/eviction", {"metadata": {"name": "p"}}, gvk)
        assert (evicted.code, shown(evicted)["status"]) == (201, "Success")

        deployments = "/apis/apps/v1/namespaces/default/deployments"
        await server.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
        scale = shown(await ask(server, "GET", f"{deployments}/d/scale"))
        assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
        gvk = GroupVersionKind("autoscaling", "v1", "Scale")
        scaled = await ask(
            server, "PUT", f"{deployments}/d/scale", scale | {"spec": {"replicas": 3}}, gvk
        )
        assert shown(scaled)["spec"] == {"replicas": 3}

        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await server.post(accounts, {"metadata": {"name": "sa"}})
        gvk = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
        asked = {"spec": {"audiences": [], "expirationSeconds": 3600}}
        token = await ask(server, "POST", f"{accounts}/sa/token", asked, gvk)
        assert token.code == 201
        assert shown(token)["status"]["token"]

    run(story)


def test_access_reviews() -> None:
    async def story(server: LocalServer) -> None:
        spec = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
        for plural, kind in (
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
            ("subjectaccessreviews", "SubjectAccessReview"),
        ):
            path = f"/apis/authorization.k8s.io/v1/{plural}"
            gvk = GroupVersionKind("authorization.k8s.io", "v1", kind)
            asked = spec if kind.startswith("Self") else {**spec, "user": "missing"}
            answer = await ask(server, "POST", path, {"spec": asked}, gvk)
            assert answer.code == 201, answer
            review = shown(answer)
            assert review["kind"] == kind
            assert review["status"]["allowed"] is kind.startswith("Self")

    run(story)


def test_statuses() -> None:
    async def story(server: LocalServer) -> None:
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        await server.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
        claim = shown(await ask(server, "GET", f"{CLAIMS}/c"))
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}
        claim["status"] = {"allocation": {"devices": {"results": [result]}}}
        written = await ask(server, "PUT", f"{CLAIMS}/c/status", claim, CLAIM)
        assert written.code == 200, shown(written)
        assert shown(written)["status"]["allocation"]["devices"]["results"][0]["device"] == "x"

    run(story)


def test_discovery() -> None:
    async def story(server: LocalServer) -> None:
        for path in ("/api", "/apis", "/api/v1", "/apis/apps", "/apis/resource.k8s.io/v1"):
            answer = await ask(server, "GET", path)
            document = shown(answer)
            expected = (await server.ask("GET", path)).json
            gvk = GroupVersionKind("", "v1", document["kind"])
            assert document | {"apiVersion": ""} == _as_read(expected, gvk) | {"apiVersion": ""}
        form = f"{MEDIA_TYPE};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        answer = await ask(server, "GET", "/apis", accept=form)
        assert content_type(answer) == form
        assert decode_document(answer.content)["items"]

    run(story)


def test_every_served_kind_can_be_listed_and_watched() -> None:
    async def story(server: LocalServer) -> None:
        for resource in RESOURCES:
            for version in resource.versions if "list" in resource.verbs else ():
                prefix = (
                    f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
                )
                answer = await ask(server, "GET", f"{prefix}/{resource.plural}", accept=GO)
                assert answer.code == 200, answer
                if (resource.group, version) == ("resource.k8s.io", "v1alpha1"):
                    continue  # KEP-5677's version, which Kubernetes has no messages for
                assert shown(answer)["kind"] == f"{resource.kind}List"

    run(story)


def test_a_dry_run_has_no_version() -> None:
    async def story(server: LocalServer) -> None:
        for path, document, gvk in (
            (CONFIG_MAPS, config_map("x"), CONFIG_MAP),
            (CLAIMS, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": []}}}, CLAIM),
        ):
            answer = await ask(server, "POST", path, document, gvk, query={"dryRun": "All"})
            assert "resourceVersion" not in shown(answer)["metadata"]

    run(story)


def test_forms_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from allot.apiserver.watch_cache.codecs import RawCodec

    made: list[str] = []
    encode = RawCodec.stored_to_protobuf

    def counted(self: RawCodec, body: bytes, resource_version: str) -> bytes:
        made.append(msgspec.json.decode(body)["metadata"]["name"])
        return encode(self, body, resource_version)

    monkeypatch.setattr(RawCodec, "stored_to_protobuf", counted)

    async def story(server: LocalServer) -> None:
        await server.post(CONFIG_MAPS, config_map("x"))
        for _ in range(3):
            await ask(server, "GET", f"{CONFIG_MAPS}/x")
            await ask(server, "GET", CONFIG_MAPS)
            await frames(server, CONFIG_MAPS, 1, MEDIA_TYPE)
        assert made == ["x"]

    run(story)


def test_json_is_what_it_was() -> None:
    async def story(server: LocalServer) -> None:
        await ask(server, "POST", CONFIG_MAPS, config_map("x"))
        body = (await server.ask("GET", f"{CONFIG_MAPS}/x")).content
        assert msgspec.json.decode(body)["data"] == {"a": "1", "b": "2"}

    run(story)
