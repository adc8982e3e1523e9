"""create, update, patch and delete over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot.testing.servers import LocalServer, ServerResponse

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"


def served(test: Callable[[LocalServer], Awaitable[None]]) -> Callable[[], None]:
    """Runs the test with a server of its own."""

    def run() -> None:
        async def with_server() -> None:
            async with LocalServer() as server:
                await test(server)

        asyncio.run(with_server())

    run.__name__ = test.__name__
    return run


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


A_POD: dict[str, Any] = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}


@served
async def test_a_new_object_gets_what_only_the_server_gives(server: LocalServer) -> None:
    sent = a_map("a", k="v")
    sent["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    created = await server.post(MAPS, sent)
    metadata = created["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2020"
    assert int(metadata["resourceVersion"]) > 0
    assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")
    assert await server.get(f"{MAPS}/a") == created


@served
async def test_unknown_fields_are_dropped_with_a_warning(server: LocalServer) -> None:
    answer = await server.ask("POST", MAPS, a_map("a") | {"future": {"x": [1, 2.5, None]}})
    assert answer.code == 201
    assert answer.header("warning") == ['299 - "unknown field \\"future\\""']
    assert "future" not in await server.get(f"{MAPS}/a")


@pytest.mark.parametrize("validation", ["Ignore", "Warn"])
def test_unknown_fields_are_dropped_at_every_depth(validation: str) -> None:
    async def story(server: LocalServer) -> None:
        query = {"fieldValidation": validation}
        written = {
            "metadata": {"name": "p", "odd": 1},
            "spec": {"odd": 1, "containers": [{"name": "main", "image": "i", "comand": ["x"]}]},
        }
        created = (await server.ask("POST", PODS, written, query=query)).json
        assert "odd" not in created["metadata"]
        assert "odd" not in created["spec"]
        assert "comand" not in created["spec"]["containers"][0]
        for form in ("merge-patch", "strategic-merge-patch"):
            patched = await server.ask(
                "PATCH",
                f"{PODS}/p",
                {"metadata": {"labels": {"by": form}}, "spec": {"odd": 1}, "more": 1},
                query=query,
                content_type=f"application/{form}+json",
            )
            assert patched.json["metadata"]["labels"] == {"by": form}
            assert patched.json["spec"] == created["spec"]
            assert "more" not in patched.json
        written["metadata"]["annotations"] = {"a": "b"}
        written["spec"] = created["spec"] | {"odd": 1}
        updated = await server.ask("PUT", f"{PODS}/p", written, query=query)
        assert updated.json["metadata"]["annotations"] == {"a": "b"}
        assert updated.json["spec"] == created["spec"]

    served(story)()


@served
async def test_a_patch_answers_only_for_what_it_adds(server: LocalServer) -> None:
    await server.ask("POST", MAPS, a_map("a") | {"future": 1})

    async def patch(sent: dict[str, Any]) -> ServerResponse:
        strict = {"fieldValidation": "Strict"}
        return await server.ask("PATCH", f"{MAPS}/a", sent, query=strict, content_type=MERGE)

    assert (await patch({"data": {"k": "v"}})).code == 200
    refused = await patch({"data": {"k": "w"}, "nonsense": 1})
    wrong = await patch({"data": {"k": 1}})
    assert (refused.code, wrong.code) == (422, 422)
    assert refused.json["message"].startswith(' "" is invalid: patch: Invalid value: ')
    assert refused.json["message"].endswith('strict decoding error: unknown field "nonsense"')
    assert [cause["field"] for cause in wrong.json["details"]["causes"]] == ["patch"]
    assert (await server.get(f"{MAPS}/a"))["data"] == {"k": "v"}


@served
async def test_a_store_that_does_not_answer_is_503(server: LocalServer) -> None:
    await server.post(MAPS, a_map("a"))
    await server.store.close()
    unanswered = (
        ("POST", MAPS, a_map("b"), "application/json"),
        ("PUT", f"{MAPS}/a", a_map("a", k="v"), "application/json"),
        ("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, MERGE),
        ("DELETE", f"{MAPS}/a", None, "application/json"),
    )
    for method, path, body, content_type in unanswered:
        answer = await server.ask(method, path, body, content_type=content_type)
        assert (answer.code, answer.json["reason"]) == (503, "ServiceUnavailable"), method


@served
async def test_a_stale_update_is_a_conflict(server: LocalServer) -> None:
    created = await server.post(MAPS, a_map("a", k="1"))
    assert (await server.ask("PUT", f"{MAPS}/a", created | {"data": {"k": "2"}})).code == 200
    stale = await server.ask("PUT", f"{MAPS}/a", created | {"data": {"k": "3"}})
    assert (stale.code, stale.json["reason"]) == (409, "Conflict")
    assert stale.json["details"] == {"name": "a", "kind": "configmaps"}
    assert (await server.get(f"{MAPS}/a"))["data"] == {"k": "2"}


@served
async def test_an_update_that_changes_nothing_writes_nothing(server: LocalServer) -> None:
    created = await server.post(MAPS, a_map("a", k="1"))
    before = await server.store.revision()
    answer = await server.ask("PUT", f"{MAPS}/a", created)
    assert answer.json == created
    assert await server.store.revision() == before


@served
async def test_concurrent_patches_all_take_effect(server: LocalServer) -> None:
    await server.post(MAPS, a_map("a"))
    answers = await asyncio.gather(
        *(
            server.ask("PATCH", f"{MAPS}/a", {"data": {f"k{n}": "v"}}, content_type=MERGE)
            for n in range(50)
        )
    )
    assert {answer.code for answer in answers} == {200}
    assert len((await server.get(f"{MAPS}/a"))["data"]) == 50


@served
async def test_patches_leave_opaque_parameters_as_they_were(server: LocalServer) -> None:
    opaque = {"driver": "d.example.com", "parameters": {"b": 1, "a": "<", "n": 1.0}}
    claim = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [], "config": [{"opaque": opaque}]}},
    }
    await server.post(CLAIMS, claim)
    for content_type in (MERGE, "application/strategic-merge-patch+json"):
        patch = {"metadata": {"labels": {"l": content_type.partition("/")[0]}}}
        answer = await server.ask("PATCH", f"{CLAIMS}/c", patch, content_type=content_type)
        assert answer.code == 200, answer.json
        assert b'"parameters":{"b":1,"a":"<","n":1.0}' in answer.content


@served
async def test_create_needs_an_existing_namespace(server: LocalServer) -> None:
    missing = await server.ask("POST", "/api/v1/namespaces/nowhere/configmaps", a_map("a"))
    assert missing.code == 404
    assert missing.json["message"] == 'namespaces "nowhere" not found'
    await server.post("/api/v1/namespaces", {"metadata": {"name": "dying"}})
    await server.ask("DELETE", "/api/v1/namespaces/dying")
    namespace = await server.get("/api/v1/namespaces/dying")
    assert namespace["status"]["phase"] == "Terminating"
    refused = await server.ask("POST", "/api/v1/namespaces/dying/configmaps", a_map("a"))
    assert refused.code == 403
    assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    namespace["spec"]["finalizers"] = []
    await server.ask("PUT", "/api/v1/namespaces/dying/finalize", namespace)
    assert (await server.ask("GET", "/api/v1/namespaces/dying")).code == 404


@served
async def test_no_object_slips_into_a_namespace_that_is_deleted_meanwhile(
    server: LocalServer,
) -> None:
    """Creates and the namespace's deletion race; whatever was created came before it."""
    await server.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    maps = "/api/v1/namespaces/x/configmaps"
    creates = [server.ask("POST", maps, a_map(f"m{number}")) for number in range(20)]
    *answers, deleted = await asyncio.gather(*creates, server.ask("DELETE", "/api/v1/namespaces/x"))
    revision = int(deleted.json["metadata"]["resourceVersion"])
    for answer in answers:
        if answer.code == 201:
            assert int(answer.json["metadata"]["resourceVersion"]) < revision
        else:
            assert answer.code == 403


@served
async def test_status_and_spec_are_written_apart(server: LocalServer) -> None:
    pod = await server.post(PODS, A_POD | {"status": {"phase": "Running"}})
    assert pod["status"]["phase"] == "Pending"
    changed = pod | {
        "status": {"phase": "Running"},
        "metadata": pod["metadata"] | {"labels": {"a": "b"}},
    }
    written = (await server.ask("PUT", f"{PODS}/p/status", changed)).json
    assert written["status"]["phase"] == "Running"
    again = (await server.ask("PUT", f"{PODS}/p", written | {"status": {}})).json
    assert again["status"]["phase"] == "Running"


@served
async def test_binding_a_pod_happens_once(server: LocalServer) -> None:
    await server.post(PODS, A_POD)
    binding = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "p"}}
    answer = await server.ask("POST", f"{PODS}/p/binding", binding)
    assert (answer.code, answer.json["status"]) == (201, "Success")
    pod = await server.get(f"{PODS}/p")
    assert pod["spec"]["nodeName"] == "n1"
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]} == {"PodScheduled": "True"}
    again = await server.ask("POST", f"{PODS}/p/binding", binding)
    assert again.code == 409
    assert 'already assigned to node "n1"' in again.json["message"]


@served
async def test_a_bound_pod_is_deleted_in_two_steps(server: LocalServer) -> None:
    await server.post(PODS, A_POD)
    await server.ask(
        "POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n1"}}
    )
    first = await server.ask("DELETE", f"{PODS}/p")
    assert first.json["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await server.ask("GET", f"{PODS}/p")).code == 200
    await server.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await server.ask("GET", f"{PODS}/p")).code == 404


@served
async def test_eviction_respects_budgets(server: LocalServer) -> None:
    pod = A_POD | {"metadata": {"name": "p", "labels": {"app": "x"}}}
    created = await server.post(PODS, pod)
    await server.ask(
        "POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n1"}}
    )
    running = (await server.get(f"{PODS}/p")) | {
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    }
    await server.ask("PUT", f"{PODS}/p/status", running)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = await server.post(
        budgets,
        {
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        },
    )
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    status = {
        "disruptionsAllowed": 0,
        "observedGeneration": 1,
        "expectedPods": 1,
        "currentHealthy": 1,
        "desiredHealthy": 1,
    }
    budget = (await server.ask("PUT", f"{budgets}/b/status", budget | {"status": status})).json
    refused = await server.ask("POST", f"{PODS}/p/eviction", eviction)
    assert (refused.code, refused.json["reason"]) == (429, "TooManyRequests")
    assert refused.json["details"]["causes"][0]["reason"] == "DisruptionBudget"
    await server.ask(
        "PUT", f"{budgets}/b/status", budget | {"status": status | {"disruptionsAllowed": 1}}
    )
    assert (await server.ask("POST", f"{PODS}/p/eviction", eviction)).code == 201
    assert (await server.get(f"{budgets}/b"))["status"]["disruptionsAllowed"] == 0
    assert "deletionTimestamp" in (await server.get(f"{PODS}/p"))["metadata"]
    assert created["metadata"]["uid"]


@served
async def test_scale_changes_replicas_only(server: LocalServer) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await server.post(path, {"metadata": {"name": "d"}, "spec": spec})
    scale = await server.get(f"{path}/d/scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == (
        "Scale",
        {"replicas": 1},
        "a=b",
    )
    answer = await server.ask(
        "PATCH", f"{path}/d/scale", {"spec": {"replicas": 4}}, content_type=MERGE
    )
    assert answer.json["spec"] == {"replicas": 4}
    deployment = await server.get(f"{path}/d")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (4, 2)


@served
async def test_tokens_of_service_accounts_are_known_but_may_nothing(server: LocalServer) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await server.post(accounts, {"metadata": {"name": "sa"}})
    issued = await server.ask("POST", f"{accounts}/sa/token", {"spec": {"expirationSeconds": 600}})
    assert issued.code == 201
    token = issued.json["status"]["token"]
    answer = await server.ask("GET", MAPS, headers={"authorization": f"Bearer {token}"})
    assert answer.code == 403
    assert 'User "system:serviceaccount:default:sa" cannot list resource' in answer.json["message"]
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    answer = await server.ask("GET", MAPS, headers={"authorization": f"Bearer {forged}"})
    assert answer.code == 401


@served
async def test_events_of_both_groups_are_one(server: LocalServer) -> None:
    old = "/api/v1/namespaces/default/events"
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Scheduled",
        "note": "assigned",
        "action": "Binding",
        "type": "Normal",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-0",
    }
    await server.post(new, event)
    stored = await server.get(f"{old}/e")
    assert (stored["kind"], stored["apiVersion"]) == ("Event", "v1")
    assert (stored["message"], stored["involvedObject"]["name"]) == ("assigned", "p")
    shown = await server.get(f"{new}/e")
    assert (shown["apiVersion"], shown["note"], shown["regarding"]["name"]) == (
        "events.k8s.io/v1",
        "assigned",
        "p",
    )
    found = await server.get(old, fieldSelector="involvedObject.name=p,reason=Scheduled")
    assert len(found["items"]) == 1
    assert len((await server.get(new, fieldSelector="regarding.name=p"))["items"]) == 1


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_dry_run_answers_but_writes_nothing(verb: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            if verb != "POST":
                await server.post(MAPS, a_map("a", k="1"))
            before = await server.store.revision()
            path = MAPS if verb == "POST" else f"{MAPS}/a"
            body = None if verb == "DELETE" else a_map("a", k="2")
            kind = MERGE if verb == "PATCH" else "application/json"
            answer = await server.ask(verb, path, body, query={"dryRun": "All"}, content_type=kind)
            assert answer.code in (200, 201)
            if verb != "DELETE":
                assert answer.json["data"] == {"k": "2"}
            assert await server.store.revision() == before

    asyncio.run(run())


@served
async def test_an_unacceptable_accept_header_is_refused_before_the_write(
    server: LocalServer,
) -> None:
    answer = await server.ask("POST", MAPS, a_map("a"), headers={"accept": "image/png"})
    assert (answer.code, answer.json["reason"]) == (406, "NotAcceptable")
    assert (await server.ask("GET", f"{MAPS}/a")).code == 404


@served
async def test_yaml_goes_in_and_out(server: LocalServer) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: 'yes'\n"
    answer = await server.ask(
        "POST", MAPS, body, content_type="application/yaml", headers={"accept": "application/yaml"}
    )
    assert answer.code == 201
    assert b'k: "yes"' in answer.content
    assert answer.header("content-type") == ["application/yaml"]


@served
async def test_services_get_addresses_of_their_own(server: LocalServer) -> None:
    path = "/api/v1/namespaces/default/services"
    bodies = [
        {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}}
        for number in range(20)
    ]
    created = await asyncio.gather(*(server.post(path, body) for body in bodies))
    addresses = {service["spec"]["clusterIP"] for service in created}
    assert len(addresses) == 20
    again = await server.ask(
        "PATCH", f"{path}/s0", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE
    )
    assert again.json["spec"]["clusterIP"] == created[0]["spec"]["clusterIP"]


@served
async def test_priorities_come_from_classes(server: LocalServer) -> None:
    await server.post(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000}
    )
    pod = {**A_POD, "spec": A_POD["spec"] | {"priorityClassName": "high"}}
    assert (await server.post(PODS, pod))["spec"]["priority"] == 1000
    unknown = {"metadata": {"name": "q"}, "spec": A_POD["spec"] | {"priorityClassName": "none"}}
    refused = await server.ask("POST", PODS, unknown)
    assert refused.code == 403
    assert "no PriorityClass with name none was found" in refused.json["message"]


@served
async def test_namespaces_that_every_cluster_has_stay(server: LocalServer) -> None:
    for name in ("default", "kube-system", "kube-public"):
        refused = await server.ask("DELETE", f"/api/v1/namespaces/{name}")
        assert refused.code == 403
        assert refused.json["message"] == (
            f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        )


@served
async def test_a_dry_run_said_twice_is_one(server: LocalServer) -> None:
    scope_query = "dryRun=&dryRun=All"
    answer = await server.ask("POST", f"{MAPS}?{scope_query}", a_map("a"))
    assert answer.code == 201
    assert (await server.ask("GET", f"{MAPS}/a")).code == 404


@served
async def test_services_cannot_ask_for_what_others_have(server: LocalServer) -> None:
    path = "/api/v1/namespaces/default/services"
    ports = [{"port": 80, "nodePort": 30001}]
    spec = {"type": "NodePort", "clusterIP": "10.0.7.7", "ports": ports}
    await server.post(path, {"metadata": {"name": "a"}, "spec": spec})
    refused = await server.ask("POST", path, {"metadata": {"name": "b"}, "spec": spec})
    assert refused.code == 422
    fields = [cause["field"] for cause in refused.json["details"]["causes"]]
    assert fields == ["spec.clusterIPs", "spec.ports[0].nodePort"]
    again = await server.ask(
        "PATCH", f"{path}/a", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE
    )
    assert again.code == 200, "a service may keep what it has"


@served
async def test_services_lose_what_their_new_type_has_not(server: LocalServer) -> None:
    path = "/api/v1/namespaces/default/services"
    created = await server.post(
        path, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    )
    address = created["spec"]["clusterIP"]

    async def patched(**spec: Any) -> ServerResponse:
        return await server.ask("PATCH", f"{path}/a", {"spec": spec}, content_type=MERGE)

    for changed in ("10.0.7.7", "None"):
        refused = await patched(clusterIP=changed)
        rule = f'spec.clusterIPs[0]: Invalid value: ["{changed}"]: may not change once set'
        assert refused.json["message"] == f'Service "a" is invalid: {rule}'
    same = await patched(clusterIP="")
    assert same.json["spec"] == created["spec"], "an address that is not given stays"
    assert "nodePort" in (await patched(type="NodePort")).json["spec"]["ports"][0]
    again = await patched(type="ClusterIP")
    assert again.json["spec"] == created["spec"]
    external = (await patched(type="ExternalName", externalName="a.example.com")).json["spec"]
    assert sorted(external) == ["externalName", "ports", "sessionAffinity", "type"]
    assert (await patched(type="ClusterIP", externalName=None)).json["spec"]["clusterIP"] == address


async def _names(server: LocalServer) -> list[str]:
    return [item["metadata"]["name"] for item in (await server.get(MAPS))["items"]]


@served
async def test_a_collection_is_deleted_in_pages(server: LocalServer) -> None:
    for number in range(5):
        await server.post(MAPS, a_map(f"m{number}"))
    token, pages = "", []
    while True:
        query = {"limit": "2"} | ({"continue": token} if token else {})
        answer = await server.ask("DELETE", MAPS, query=query)
        assert answer.code == 200
        metadata = answer.json["metadata"]
        shown = [item["metadata"]["name"] for item in answer.json["items"]]
        pages.append((shown, metadata.get("remainingItemCount"), await _names(server)))
        token = metadata.get("continue", "")
        if not token:
            break
    assert pages == [
        (["m0", "m1"], 3, ["m2", "m3", "m4"]),
        (["m2", "m3"], 1, ["m4"]),
        (["m4"], None, []),
    ]


@served
async def test_deleting_a_collection_answers_with_the_list_that_was_deleted(
    server: LocalServer,
) -> None:
    held = a_map("held")
    held["metadata"]["finalizers"] = ["example.com/kept"]
    await server.post(MAPS, held)
    await server.post(MAPS, a_map("free"))
    before = await server.get(MAPS)
    assert (await server.ask("DELETE", MAPS)).json == before
    left = (await server.get(MAPS))["items"]
    assert [item["metadata"]["name"] for item in left] == ["held"]
    assert left[0]["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    ("query", "code", "problem"),
    [
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"continue": "abc"}, 400, "continue key is not valid"),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
    ],
)
def test_nothing_of_a_collection_is_deleted_with_wrong_options(
    query: dict[str, str], code: int, problem: str
) -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, a_map("a"))
            answer = await server.ask("DELETE", MAPS, query=query)
            assert answer.code == code
            assert problem in answer.json["message"]
            assert await _names(server) == ["a"]

    asyncio.run(story())
