"""Server-side apply through the front door, where answers are ours: the rest is in tests/apply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authentication import User
from allot.apiserver.http.field_managers import field_manager_for, new_document
from allot.apiserver.http.routes import Target
from allot.apiserver.http.server_side_apply import Configuration, _applied_to_whole, apply_to
from allot.apiserver.managed_fields.field_manager import manager_name
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.testing.servers import LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"


NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
STATUS: Final = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}]}


def run(test: Callable[[LocalServer], Awaitable[None]], **settings: Any) -> None:
    async def with_server() -> None:
        async with LocalServer(**settings) as server:
            await test(server)

    asyncio.run(with_server())


def a_map(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **fields}


async def apply(server: LocalServer, body: Any, **query: str) -> Any:
    return await server.ask(
        "PATCH", f"{MAPS}/x", body, query={"fieldManager": "m", **query}, content_type=APPLY
    )


@pytest.mark.parametrize(("rules", "code"), [(RuleSet.SEEDS, 400), (RuleSet.V1_38, 500)])
def test_a_configuration_that_does_not_fit_is_the_clients_fault(rules: RuleSet, code: int) -> None:
    async def test(server: LocalServer) -> None:
        for body in (a_map(nonsense=1), a_map(data={"a": 1})):
            answer = await apply(server, body)
            assert answer.code == code
            assert answer.json["message"].startswith("failed to create typed patch object (/x; /v1")

    run(test, gates=DEFAULTS.with_rules(rules))


def test_nothing_is_stored_when_only_times_would_change() -> None:
    async def test(server: LocalServer) -> None:
        first = (await apply(server, a_map(data={"a": "1"}))).json
        again = (await apply(server, a_map(data={"a": "1"}))).json
        forced = (await apply(server, a_map(data={"a": "1"}), force="true")).json
        assert first == again == forced

    run(test)


def test_creating_by_apply_takes_the_right_to_create() -> None:
    async def test(server: LocalServer) -> None:
        answer = await server.ask(
            "PATCH",
            f"{MAPS}/x",
            a_map(),
            query={"fieldManager": "m"},
            content_type=APPLY,
            headers={"authorization": "Bearer unprivileged"},
        )
        assert answer.code == 403

    run(test, users={"unprivileged": User("unprivileged", groups=())})


def test_a_status_of_nothing_is_not_found() -> None:
    async def test(server: LocalServer) -> None:
        answer = await server.ask(
            "PATCH",
            "/api/v1/nodes/x/status",
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}},
            query={"fieldManager": "m"},
            content_type=APPLY,
        )
        assert answer.code == 404

    run(test)


def test_many_managers_at_once_lose_nothing() -> None:
    async def test(server: LocalServer) -> None:
        async def one(number: int) -> int:
            body = a_map(data={f"k{number}": "v"})
            return int((await apply(server, body, fieldManager=f"m{number}")).code)

        codes = await asyncio.gather(*(one(number) for number in range(30)))
        assert sorted(codes) == [200] * 29 + [201]
        stored = await server.get(f"{MAPS}/x")
        assert stored["data"] == {f"k{number}": "v" for number in range(30)}
        assert len(stored["metadata"]["managedFields"]) == 30

    run(test)


@pytest.mark.parametrize(
    ("field_manager", "agent", "name"),
    [
        ("m", "x/1", "m"),
        ("", "kubectl/v1.38 (linux)", "kubectl"),
        ("", "", ""),
        ("", "a\x07b/1", "ab"),
        ("", "x" * 200, "x" * 128),
        ("", "é" * 100, "é" * 64),
    ],
)
def test_the_manager_of_a_request(field_manager: str, agent: str, name: str) -> None:
    assert manager_name(field_manager, agent) == name


def test_empty_lists_and_maps_are_not_stored() -> None:
    async def test(server: LocalServer) -> None:
        sent = {
            "metadata": {"name": "p", "labels": {}, "finalizers": []},
            "spec": {
                "containers": [{"name": "c", "image": "i", "env": [], "args": []}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "nodeSelector": {},
            },
        }
        pod = await server.post("/api/v1/namespaces/default/pods", sent)
        assert not {"labels", "finalizers"} & pod["metadata"].keys()
        assert "nodeSelector" not in pod["spec"]
        assert not {"env", "args"} & pod["spec"]["containers"][0].keys()
        assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
        assert pod["spec"]["containers"][0]["resources"] == {}

    run(test)


def test_tolerations_added_by_admission_have_no_manager() -> None:
    async def test(server: LocalServer) -> None:
        sent = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        pod = await server.post("/api/v1/namespaces/default/pods", sent)
        assert len(pod["spec"]["tolerations"]) == 2
        (entry,) = pod["metadata"]["managedFields"]
        assert "f:tolerations" not in entry["fieldsV1"]["f:spec"]

    run(test)


@pytest.mark.parametrize("path", ["status", ""])
@pytest.mark.parametrize("labels", [{}, {"a": "b"}])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"status": STATUS}, id="a-list"),
        pytest.param({"status": {"message": "<x>", "startTime": None}}, id="null"),
        pytest.param({"status": {"conditions": []}}, id="empty-list"),
        pytest.param({"status": {"startTime": "today"}}, id="bad-time"),
        pytest.param({"status": {"phase": "Pending"}}, id="what-it-has"),
        pytest.param({"spec": {"nodeName": "n"}, "status": STATUS}, id="owned"),
    ],
)
def test_parts_are_applied_as_to_the_whole_object(
    path: str, labels: dict[str, str], parts: dict[str, Any]
) -> None:
    pods = resource_named("", "pods")
    target = Target(pods, "v1", "default", "p", pods.subresource(path) if path else None)
    codec = codec_for(pods)
    metadata = {"name": "p", "namespace": "default", "uid": "u", "labels": labels}
    spec = {"containers": [{"name": "m", "image": "i"}]}
    pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    old = codec.decode(msgspec.json.encode(pod), "v1", NOW)
    entries = field_manager_for(pods, "v1", "").created(new_document(old, target), (), "m", "2026")
    old = codec.with_metadata(
        old, msgspec.structs.replace(old.metadata, managed_fields=tuple(entries))
    )
    identity = {"name": "p", "uid": "u"}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": identity, **parts}
    configuration = Configuration(document, "applier", force=True)

    def outcome(apply: Callable[..., Any], *first: Any) -> Any:
        try:
            obj, managers = apply(*first, old, configuration, target, NOW)
        except ApiError as error:
            return error.code, error.message
        return codec.encode(obj, "v1"), obj.metadata, managers

    assert outcome(apply_to) == outcome(_applied_to_whole, codec)
