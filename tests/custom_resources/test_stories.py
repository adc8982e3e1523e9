"""What happens to custom resources over time: restarts, watches, changed and deleted definitions."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from allot.api.protobuf.envelope import MEDIA_TYPE
from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.apiserver.kinds.custom_versions import CustomKind
from allot.controllers.garbage_collector import GarbageCollector
from allot.controllers.namespaces import NamespaceController
from allot.controllers.resource_quota import ResourceQuotaController
from allot.storage.memory import MemoryStore
from allot.storage.opening import open_store
from allot.testing.servers import LocalServer
from tests.custom_resources.manifests import CLUSTER_QUEUES, COMPUTE_DOMAINS
from tests.custom_resources.steps import CRDS, MERGE, crd, obj, schema_of
from tests.integration.housekeeping_cluster import Cluster

WAIT_SECONDS = 60.0
GROUP = "x.example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
STRING = {"type": "string"}


def widgets(schema: Any = None, **more: Any) -> dict[str, Any]:
    """A CRD of Widgets in this group."""
    made: dict[str, Any] = json.loads(json.dumps(crd(schema, **more)).replace("GRP", GROUP))
    return made


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


async def until(what: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await what()):
            await asyncio.sleep(0.01)
    return found


async def is_served(server: LocalServer, path: str) -> bool:
    return (await server.ask("GET", path)).code == 200


async def define(
    server: LocalServer, definition: dict[str, Any], path: str = WIDGETS
) -> dict[str, Any]:
    """Create a CRD and wait until it is served."""
    made = await server.post(CRDS, definition)
    await until(lambda: is_served(server, path))
    return made


async def patch(server: LocalServer, path: str, body: Any) -> Any:
    answer = await server.ask("PATCH", path, body, content_type=MERGE)
    assert answer.code == 200, answer
    return answer.json


@asynccontextmanager
async def a_server() -> AsyncIterator[LocalServer]:
    async with LocalServer(MemoryStore()) as server:
        yield server


def play(story: Callable[[LocalServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with a_server() as server:
            await story(server)

    asyncio.run(run())


def test_a_restart_keeps_definitions_and_objects(tmp_path: Path) -> None:
    async def run() -> None:
        schema = schema_of({"x": STRING, "y": {"type": "string", "default": "d"}})
        async with LocalServer(await open_store("sqlite", tmp_path)) as server:
            await define(server, widgets(schema))
            made = await server.post(WIDGETS, widget(x="1"))
        async with LocalServer(await open_store("sqlite", tmp_path)) as server:
            # Without waiting: what was defined is served from the start.
            found = await server.get(f"{WIDGETS}/w")
            listed = await server.get(WIDGETS)
            version = made["metadata"]["resourceVersion"]
            changed = await patch(server, f"{WIDGETS}/w", {"spec": {"x": "2"}})
            async with server.watch(WIDGETS, resourceVersion=version) as events:
                event = await events.next()

        assert found == made
        assert [item["metadata"]["name"] for item in listed["items"]] == ["w"]
        assert event is not None
        assert (event["type"], event["object"]) == ("MODIFIED", changed)

    asyncio.run(run())


def test_watches_end_when_the_definition_changes_and_go_on_from_where_they_were() -> None:
    async def story(server: LocalServer) -> None:
        await define(server, widgets(schema_of({"x": STRING})))
        async with server.watch(WIDGETS) as events:
            await server.post(WIDGETS, widget("first", x="1"))
            added = await events.next()
            schema = schema_of({"x": STRING, "y": {"type": "string", "default": "new"}})
            versions = widgets(schema)["spec"]["versions"]
            await patch(server, f"{CRDS}/widgets.{GROUP}", {"spec": {"versions": versions}})
            end = await events.next()
        assert added is not None
        seen = added["object"]["metadata"]["resourceVersion"]
        await server.post(WIDGETS, widget("second", x="2"))
        async with server.watch(WIDGETS, resourceVersion=seen) as events:
            again = await events.next()

        assert end is None
        assert again is not None
        assert again["object"]["metadata"]["name"] == "second"
        assert again["object"]["spec"] == {"x": "2", "y": "new"}

    play(story)


def test_deleting_a_definition_deletes_its_objects_and_ends_watches() -> None:
    async def story(server: LocalServer) -> None:
        await define(server, widgets(schema_of({"x": STRING})))
        for name in ("a", "b"):
            await server.post(WIDGETS, widget(name, x="1"))
        async with server.watch(WIDGETS) as events:
            await events.take(2)
            await server.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
            gone = []
            while (event := await events.next()) is not None:
                gone.append((event["type"], event["object"]["metadata"]["name"]))

        async def is_gone() -> bool:
            return (await server.ask("GET", f"{CRDS}/widgets.{GROUP}")).code == 404

        await until(is_gone)
        await define(server, widgets(schema_of({"x": STRING})))

        assert gone == [("DELETED", "a"), ("DELETED", "b")]
        assert (await server.get(WIDGETS))["items"] == []

    play(story)


def test_a_table_watch_and_metadata_only() -> None:
    async def story(server: LocalServer) -> None:
        await define(server, widgets(schema_of({"x": STRING})))
        await server.post(WIDGETS, widget(x="1"))
        headers = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        listed = (await server.ask("GET", WIDGETS, headers=headers)).json
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with server.watch(WIDGETS, headers=table) as events:
            event = await events.next()

        assert listed["kind"] == "PartialObjectMetadataList"
        assert listed["items"][0]["metadata"]["name"] == "w"
        assert event is not None
        assert event["object"]["rows"][0]["cells"][0] == "w"

    play(story)


def test_protobuf_is_for_definitions_only() -> None:
    async def story(server: LocalServer) -> None:
        await define(server, widgets(schema_of({"x": {"type": "string", "enum": ["a", "b"]}})))
        asked = {"accept": MEDIA_TYPE}
        encoded = await server.ask("GET", f"{CRDS}/widgets.{GROUP}", headers=asked)
        refused = await server.ask("GET", WIDGETS, headers=asked)
        posted = await server.ask("POST", WIDGETS, b"k8s\x00", content_type=MEDIA_TYPE)
        # What comes back is what it was made of: an update with it changes nothing.
        same = await server.ask(
            "PUT", f"{CRDS}/widgets.{GROUP}", encoded.content, content_type=MEDIA_TYPE
        )
        found = await server.get(f"{CRDS}/widgets.{GROUP}")

        assert encoded.content.startswith(b"k8s\x00")
        assert encoded.header("content-type") == [MEDIA_TYPE]
        assert refused.code == 406
        assert posted.code == 415
        assert same.json == found
        assert same.json["metadata"]["generation"] == 1

    play(story)


def test_roles_grant_custom_resources() -> None:
    async def run() -> None:
        users = {"alice-token": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(MemoryStore(), users=users) as server:
            await define(server, widgets(schema_of({"x": STRING})))
            alice = {"authorization": "Bearer alice-token"}
            before = await server.ask("GET", WIDGETS, headers=alice)
            role = {
                "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["list"]}],
            }
            api = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
            await server.post(f"{api}/roles", role)
            binding = {
                "metadata": {"name": "alice"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": "reader",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
                ],
            }
            await server.post(f"{api}/rolebindings", binding)
            after = await server.ask("GET", WIDGETS, headers=alice)
            written = await server.ask("POST", WIDGETS, widget(), headers=alice)

        assert before.code == 403
        assert f'cannot list resource "widgets" in API group "{GROUP}"' in before.json["message"]
        assert after.code == 200
        assert written.code == 403

    asyncio.run(run())


def test_definitions_that_come_and_go_leave_nothing_behind() -> None:
    async def story(server: LocalServer) -> None:
        await define(server, widgets(schema_of({"x": STRING})))
        await server.post(WIDGETS, widget(x="1"))
        for number in range(10):
            schema = schema_of({"x": {"type": "string", "default": f"churn-{number}"}})
            versions = widgets(schema)["spec"]["versions"]
            await patch(server, f"{CRDS}/widgets.{GROUP}", {"spec": {"versions": versions}})

            async def is_new(number: int = number) -> bool:
                answer = await server.ask("POST", WIDGETS, widget("probe"), query={"dryRun": "All"})
                return bool(answer.json["spec"].get("x") == f"churn-{number}")

            await until(is_new)
            await server.get(WIDGETS)
        gc.collect()
        names = [
            each.definition.get("spec", "versions")
            for each in gc.get_objects()
            if isinstance(each, CustomKind) and each.definition.group == GROUP
        ]
        of_this_test = [name for name in names if "churn" in json.dumps(name)]

        assert len(of_this_test) == 1

    play(story)


@pytest.mark.parametrize("definition", [COMPUTE_DOMAINS, CLUSTER_QUEUES])
def test_definitions_of_drivers_and_queues_are_served(definition: dict[str, Any]) -> None:
    async def story(server: LocalServer) -> None:
        spec = definition["spec"]
        version = spec["versions"][0]["name"]
        place = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
        path = f"/apis/{spec['group']}/{version}/{place}{spec['names']['plural']}"
        await define(server, definition, path)
        documents = await server.get("/openapi/v3")
        listed = await server.get(f"/openapi/v3/apis/{spec['group']}/{version}")

        assert f"apis/{spec['group']}/{version}" in documents["paths"]
        assert any(name.endswith(spec["names"]["kind"]) for name in listed["components"]["schemas"])

    play(story)


def test_a_compute_domain_is_immutable_and_defaulted() -> None:
    async def story(server: LocalServer) -> None:
        path = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
        await define(server, COMPUTE_DOMAINS, path)
        channel = {"resourceClaimTemplate": {"name": "channel"}}
        body = {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomain",
            "metadata": {"name": "cd"},
            "spec": {"numNodes": 2, "channel": channel},
        }
        made = await server.post(path, body)
        changed = await server.ask(
            "PATCH", f"{path}/cd", {"spec": {"numNodes": 3}}, content_type=MERGE
        )
        node = {"name": "n", "cliqueID": "c", "ipAddress": "10.0.0.1"}
        status = await server.ask(
            "PATCH", f"{path}/cd/status", {"status": {"nodes": [node]}}, content_type=MERGE
        )

        assert made["spec"]["channel"]["allocationMode"] == "Single"
        assert changed.code == 422
        assert "A computeDomain.spec is immutable" in changed.json["message"]
        assert status.json["status"] == {"status": "NotReady", "nodes": [node]}

    play(story)


def test_a_cluster_queue_follows_its_rules() -> None:
    async def story(server: LocalServer) -> None:
        path = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
        await define(server, CLUSTER_QUEUES, path)

        def queue(name: str, quota: Any, covered: list[str]) -> dict[str, Any]:
            resources = [{"name": "cpu", "nominalQuota": quota}]
            group = {
                "coveredResources": covered,
                "flavors": [{"name": "f", "resources": resources}],
            }
            return {
                "apiVersion": "kueue.x-k8s.io/v1beta1",
                "kind": "ClusterQueue",
                "metadata": {"name": name},
                "spec": {"resourceGroups": [group]},
            }

        made = await server.post(path, queue("a", "10", ["cpu"]))
        number = await server.post(path, queue("b", 10, ["cpu"]))
        refused = await server.ask("POST", path, queue("c", "ten", ["cpu"]))
        uneven = await server.ask("POST", path, queue("d", "10", ["cpu", "memory"]))

        assert made["spec"]["flavorFungibility"] == {"whenCanBorrow": "Borrow"}
        assert made["spec"]["preemption"] == {"reclaimWithinCohort": "Never"}
        assert number["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0] == {
            "name": "cpu",
            "nominalQuota": 10,
        }
        assert "should match" in refused.json["message"]
        assert "the same number of resources" in uneven.json["message"]

    play(story)


def test_controllers_know_custom_resources() -> None:
    async def run() -> None:
        async with LocalServer(MemoryStore()) as server:
            cluster = Cluster(server)
            async with cluster.running(
                GarbageCollector, NamespaceController, ResourceQuotaController
            ):
                await define(server, widgets(schema_of({"x": STRING})))
                await owned_objects_go(server)
                await quotas_count(server)
                await namespaces_are_emptied(server)

    asyncio.run(run())


async def owned_objects_go(server: LocalServer) -> None:
    owner = await server.post(WIDGETS, widget("owner", x="1"))
    reference = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    maps = "/api/v1/namespaces/default/configmaps"
    await server.post(maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    await server.ask("DELETE", f"{WIDGETS}/owner")

    async def is_gone() -> bool:
        return (await server.ask("GET", f"{maps}/owned")).code == 404

    await until(is_gone)


async def quotas_count(server: LocalServer) -> None:
    await server.post(WIDGETS, widget("counted"))
    name = f"count/widgets.{GROUP}"
    quotas = "/api/v1/namespaces/default/resourcequotas"
    await server.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {name: "1"}}})

    async def is_counted() -> bool:
        found = await server.get(f"{quotas}/q")
        return bool(found.get("status", {}).get("used", {}).get(name) == "1")

    await until(is_counted)
    refused = await server.ask("POST", WIDGETS, widget("second"))
    assert refused.code == 403
    assert "exceeded quota: q" in refused.json["message"]


async def namespaces_are_emptied(server: LocalServer) -> None:
    await server.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
    await server.post(WIDGETS.replace("/default/", "/going/"), widget())
    await server.ask("DELETE", "/api/v1/namespaces/going")

    async def is_gone() -> bool:
        return (await server.ask("GET", "/api/v1/namespaces/going")).code == 404

    await until(is_gone)


def test_hostile_definitions_do_not_stall_the_server() -> None:
    """Deep and large schemas, patterns and rules: others are answered meanwhile."""

    async def story(server: LocalServer) -> None:
        deep: dict[str, Any] = {"type": "string"}
        for _ in range(40):
            deep = obj({"a": deep})
        many = obj({f"field{number}": STRING for number in range(5_000)})
        pattern = {"type": "string", "pattern": "(a+)+$", "maxLength": 100_000}
        rule = "self.all(x, self.all(y, self.all(z, x != y || y != z)))"
        costly = {
            "type": "array",
            "maxItems": 60,
            "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": rule}],
        }
        schema = schema_of({"deep": deep, "many": many, "pattern": pattern, "costly": costly})
        await define(server, widgets(schema))
        deep_value: Any = "x"
        for _ in range(40):
            deep_value = {"a": deep_value}
        body = widget(
            deep=deep_value,
            many={f"field{number}": "x" for number in range(5_000)},
            pattern="a" * 50_000 + "b",
            costly=list(range(60)),
        )
        writing = asyncio.create_task(server.ask("POST", WIDGETS, body))
        answered = 0
        while not writing.done():
            await server.get("/version")
            answered += 1
            await asyncio.sleep(0)
        refused = await writing

        fields = {cause["field"] for cause in refused.json["details"]["causes"]}
        assert answered > 0
        assert refused.code == 422
        assert fields == {"spec.pattern", "spec.costly"}

    play(story)
