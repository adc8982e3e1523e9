"""An update of an object and its status in one request: as two updates, but both or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from allot.apiserver.auth.authentication import User
from allot.client.transport import WITH_STATUS
from allot.testing.servers import LocalServer, ServerResponse

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"
CLAIM: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}},
}
RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
AGENT = {"user-agent": "scheduler/1"}


def run(story: Callable[[LocalServer], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with LocalServer(**options) as server:
            await story(server)

    asyncio.run(main())


def allocated(claim: dict[str, Any], **result: str) -> dict[str, Any]:
    """The claim with the scheduler's finalizer and allocation."""
    wanted = deepcopy(claim)
    wanted["metadata"]["finalizers"] = [FINALIZER]
    wanted["status"] = {
        "allocation": {"devices": {"results": [{**RESULT, **result}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    }
    return wanted


async def put(server: LocalServer, obj: dict[str, Any], **headers: str) -> ServerResponse:
    given = {**AGENT, WITH_STATUS: "true", **headers}
    return await server.ask("PUT", f"{CLAIMS}/{obj['metadata']['name']}", obj, headers=given)


def without_identity(obj: dict[str, Any]) -> dict[str, Any]:
    """What two objects that were written alike have in common."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("name", "uid", "resourceVersion", "creationTimestamp")
    }
    for entry in metadata["managedFields"]:
        del entry["time"]
    return {**obj, "metadata": metadata}


def test_it_is_what_two_updates_make() -> None:
    async def story(server: LocalServer) -> None:
        one = await server.post(CLAIMS, CLAIM, headers=AGENT)
        at_once = (await put(server, allocated(one))).json
        assert at_once["status"]["reservedFor"]

        other = deepcopy(CLAIM)
        other["metadata"]["name"] = "other"
        created = await server.post(CLAIMS, other, headers=AGENT)
        protected = await server.ask(
            "PUT", f"{CLAIMS}/other", allocated(created, device="e"), headers=AGENT
        )
        assert protected.json["status"] == {}, "an update of the object leaves its status alone"
        wanted = allocated(protected.json, device="e")
        in_turn = await server.ask("PUT", f"{CLAIMS}/other/status", wanted, headers=AGENT)
        expected = in_turn.json
        expected["status"]["allocation"]["devices"]["results"][0]["device"] = "d"
        assert without_identity(at_once) == without_identity(expected)
        managers = [entry.get("subresource", "") for entry in at_once["metadata"]["managedFields"]]
        assert sorted(managers) == ["", "status"]

    run(story)


def test_watchers_see_one_change() -> None:
    async def story(server: LocalServer) -> None:
        created = await server.post(CLAIMS, CLAIM)
        version = created["metadata"]["resourceVersion"]
        async with server.watch(CLAIMS, resourceVersion=version) as stream:
            answer = await put(server, allocated(created))
            (event,) = await stream.take(1)

        assert (event["type"], event["object"]) == ("MODIFIED", answer.json)

    run(story)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"metadata": {"finalizers": ["?"]}}, 422, id="invalid-object"),
        pytest.param({"status": {"reservedFor": [{"name": "?"}]}}, 422, id="invalid-status"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, 409, id="outdated"),
        pytest.param({"metadata": {"uid": "another"}}, 409, id="another-object"),
    ],
)
def test_both_are_written_or_none(change: dict[str, Any], code: int) -> None:
    async def story(server: LocalServer) -> None:
        created = await server.post(CLAIMS, CLAIM)
        wanted = allocated(created)
        for part, fields in change.items():
            wanted[part] = {**wanted[part], **fields}

        assert (await put(server, wanted)).code == code
        assert await server.get(f"{CLAIMS}/c") == created

    run(story)


def test_a_device_is_not_given_away_twice() -> None:
    async def story(server: LocalServer) -> None:
        one = await server.post(CLAIMS, CLAIM)
        assert (await put(server, allocated(one))).code == 200
        other = deepcopy(CLAIM)
        other["metadata"]["name"] = "other"
        created = await server.post(CLAIMS, other)

        refused = await put(server, allocated(created))
        assert refused.code in (409, 422)
        assert await server.get(f"{CLAIMS}/other") == created

    run(story)


def test_it_needs_both_permissions() -> None:
    async def story(server: LocalServer) -> None:
        rules = [{"apiGroups": ["resource.k8s.io"], "verbs": ["update"], "resources": []}]
        role = {"metadata": {"name": "r"}, "rules": rules}
        subject = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
        ref = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "r"}, "subjects": [subject], "roleRef": ref}
        rules[0]["resources"] = ["resourceclaims"]
        await server.post(f"{RBAC}/clusterroles", role)
        await server.post(f"{RBAC}/clusterrolebindings", binding)
        created = await server.post(CLAIMS, CLAIM)
        token = {"authorization": "Bearer user"}

        refused = await put(server, allocated(created), **token)
        assert refused.code == 403
        assert "resourceclaims/status" in refused.json["message"]

        parts = ("", "/status", "/binding")
        rules[0]["resources"] = [f"resourceclaims{part}" for part in parts]
        await server.ask("PUT", f"{RBAC}/clusterroles/r", role)
        assert (await put(server, allocated(created), **token)).code == 200

    run(story, users={"user": User("u")})


def test_kinds_without_status_have_none_to_update() -> None:
    async def story(server: LocalServer) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        created = await server.post(path, {"metadata": {"name": "m"}})
        answer = await server.ask("PUT", f"{path}/m", created, headers={WITH_STATUS: "true"})
        assert answer.code == 404

    run(story)


def test_times_of_other_zones_are_those_that_are_stored() -> None:
    async def story(server: LocalServer) -> None:
        created = await server.post(CLAIMS, CLAIM)
        time = datetime.fromisoformat(created["metadata"]["creationTimestamp"])
        wanted = allocated(created)
        wanted["metadata"]["creationTimestamp"] = time.astimezone(
            timezone(timedelta(hours=1))
        ).isoformat()

        written = (await put(server, wanted)).json

        assert written["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]

    run(story)
