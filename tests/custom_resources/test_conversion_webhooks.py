"""Definitions with a conversion webhook: several versions of an object, and what happens if the webhook fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from allot.apiserver.http.flow_control import FlowLimits
from allot.testing.servers import LocalServer
from tests.custom_resources.conversion_webhook import (
    STEPS,
    ConversionServer,
    conversion_server,
    definition,
    in_v1,
    in_v2,
    widgets,
)
from tests.custom_resources.steps import CRDS, MERGE
from tests.custom_resources.test_stories import is_served, until

GROUP = "x.example.com"
CRD = f"{CRDS}/widgets.{GROUP}"
LIMIT_SECONDS = 120.0


def here(value: Any) -> Any:
    """What is sent, in this group and the default namespace."""
    text = json.dumps(value).replace("GRP", GROUP).replace("/NS/", "/default/")
    return json.loads(text)


V1, V2 = here(widgets("v1")), here(widgets("v2"))
Story = Callable[[LocalServer, ConversionServer], Awaitable[None]]


def play(story: Story, path: str = "/convert", **limits: Any) -> None:
    """Run a story with a definition whose webhook answers by `path`."""

    async def run() -> None:
        async with LocalServer(**limits) as server:
            defined = here(definition({}))
            defined["spec"]["conversion"] = hook.conversion(path)
            await server.post(CRDS, defined)
            await until(lambda: is_served(server, V1))
            await story(server, hook)

    with conversion_server() as hook:
        asyncio.run(asyncio.wait_for(run(), LIMIT_SECONDS))


async def ask(server: LocalServer, name: str) -> Any:
    step = STEPS[name]
    return await server.ask(step.method, here(step.path), here(step.body), content_type=step.type)


# --- conversion ---


def test_an_object_is_read_and_written_in_both_versions() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        made = await server.post(V2, here(in_v2()))
        stored = await server.get(f"{V1}/w")
        changed = await server.ask(
            "PATCH", f"{V1}/w", {"spec": {"address": "far:90"}}, content_type=MERGE
        )
        read = await server.get(f"{V2}/w")
        replaced = await server.ask("PUT", f"{V2}/w", read | {"spec": {"host": "h", "port": 1}})

        assert (made["apiVersion"], made["spec"]) == (f"{GROUP}/v2", in_v2()["spec"])
        assert (stored["apiVersion"], stored["spec"]) == (f"{GROUP}/v1", in_v1()["spec"])
        assert stored["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert changed.code == 200
        assert read["spec"] == {"host": "far", "port": 90}
        assert read["metadata"]["generation"] == 2
        assert replaced.code == 200, replaced
        assert (await server.get(f"{V1}/w"))["spec"] == {"address": "h:1"}

    play(story)


def test_what_is_in_the_wanted_version_is_not_sent() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        await server.get(f"{V1}/w")
        await server.get(V1)

        assert hook.reviews == []

    play(story)


def test_a_list_is_one_call() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        for number in range(5):
            await server.post(V1, here(in_v1(f"w{number}")))
        listed = await server.get(V2)
        (asked,) = hook.reviews
        again = await server.get(V2)
        page = await server.get(V2, limit="2")
        await server.post(V1, here(in_v1("w5")))
        selected = await server.get(V2, fieldSelector="metadata.name=w5")

        assert [item["spec"] for item in listed["items"]] == [in_v2()["spec"]] * 5
        assert {item["apiVersion"] for item in listed["items"]} == {f"{GROUP}/v2"}
        assert len(asked["review"]["request"]["objects"]) == 5
        assert again == listed
        assert page["items"] == listed["items"][:2]
        assert len(selected["items"]) == 1
        assert len(hook.reviews) == 2  # what was converted is kept

    play(story)


def test_watches_show_objects_in_their_version() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1("first")))
        async with server.watch(V2) as events, server.watch(V1) as others:
            await server.post(V1, here(in_v1("second")))
            await server.ask("PATCH", f"{V2}/first", {"spec": {"port": 81}}, content_type=MERGE)
            await server.ask("DELETE", f"{V2}/second")
            seen = await events.take(4)
            stored = await others.take(4)
        version = seen[0]["object"]["metadata"]["resourceVersion"]
        async with server.watch(V2, resourceVersion=version) as events:
            again = await events.take(3)

        assert [(each["type"], each["object"]["spec"]) for each in seen] == [
            ("ADDED", {"host": "localhost", "port": 80}),
            ("ADDED", {"host": "localhost", "port": 80}),
            ("MODIFIED", {"host": "localhost", "port": 81}),
            ("DELETED", {"host": "localhost", "port": 80}),
        ]
        assert {each["object"]["apiVersion"] for each in seen} == {f"{GROUP}/v2"}
        assert [each["object"]["spec"] for each in stored] == [
            {"address": "localhost:80"},
            {"address": "localhost:80"},
            {"address": "localhost:81"},
            {"address": "localhost:80"},
        ]
        assert again == seen[1:]

    play(story)


def test_a_new_storage_version_converts_what_was_stored_before() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        versions = here(definition({}))["spec"]["versions"]
        for version in versions:
            version["storage"] = version["name"] == "v2"
        changed = await server.ask(
            "PATCH", CRD, {"spec": {"versions": versions}}, content_type=MERGE
        )
        assert changed.code == 200

        async def is_converted() -> bool:
            hook.reviews.clear()
            await server.get(f"{V2}/w")
            return bool(hook.reviews)

        await until(is_converted)
        read = await server.get(f"{V2}/w")
        # A write that changes nothing stores the object in the new version.
        written = await server.ask("PUT", f"{V2}/w", read)
        hook.reviews.clear()
        after = await server.get(f"{V2}/w")

        assert read["spec"] == in_v2()["spec"]
        assert written.code == 200
        assert hook.reviews == []
        assert after["metadata"]["resourceVersion"] != read["metadata"]["resourceVersion"]
        assert (await server.get(f"{V1}/w"))["spec"] == in_v1()["spec"]

    play(story)


def test_an_object_with_a_finalizer_is_marked_as_deleted() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        held = here(in_v2())
        held["metadata"]["finalizers"] = ["x.example.com/hold"]
        await server.post(V2, held)
        deleted = await server.ask("DELETE", f"{V2}/w")
        stored = await server.get(f"{V1}/w")
        freed = await server.ask(
            "PATCH", f"{V2}/w", {"metadata": {"finalizers": None}}, content_type=MERGE
        )

        assert deleted.json["spec"] == in_v2()["spec"]
        assert stored["metadata"]["deletionTimestamp"]
        assert stored["spec"] == in_v1()["spec"]
        assert freed.code == 200
        assert (await server.ask("GET", f"{V1}/w")).code == 404

    play(story)


def test_apply_and_dry_runs() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        query = {"fieldManager": "me"}
        kind = "application/apply-patch+yaml"
        tried = await server.ask("POST", V2, here(in_v2()), query={"dryRun": "All"})
        missing = await server.ask("GET", f"{V1}/w")
        applied = [
            await server.ask("PATCH", f"{V2}/w", body, content_type=kind, query=query)
            for body in (
                here(in_v2()),
                here(in_v2()) | {"spec": {"host": "h", "port": 2}},
            )
        ]

        assert (tried.code, tried.json["spec"]) == (201, in_v2()["spec"])
        assert missing.code == 404
        assert [answer.code for answer in applied] == [201, 200]
        assert applied[1].json["spec"] == {"host": "h", "port": 2}
        assert (await server.get(f"{V1}/w"))["spec"] == {"address": "h:2"}

    play(story)


def test_policies_see_the_version_that_they_match() -> None:
    registration = "/apis/admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["widgets"],
    }
    validation = {"expression": "object.spec.address != 'forbidden:1'"}
    patch = (
        """[JSONPatch{op: "replace", path: "/spec/address", value: object.spec.address + "1"}]"""
    )
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    policies: dict[str, dict[str, Any]] = {
        "validating": {"validations": [validation]},
        "mutating": {"mutations": [mutation], "reinvocationPolicy": "Never"},
    }

    async def story(server: LocalServer, hook: ConversionServer) -> None:
        for kind, spec in policies.items():
            constraints = {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Fail"}
            path = f"{registration}/{kind}admissionpolicies"
            metadata = {"metadata": {"name": "p"}}
            await server.post(path, metadata | {"spec": constraints | spec})
            binding: dict[str, Any] = {"policyName": "p"}
            if kind == "validating":
                binding["validationActions"] = ["Deny"]
            await server.post(f"{path[:-8]}policybindings", metadata | {"spec": binding})
        made = await server.ask("POST", V2, here(in_v2()))
        changed = await server.ask(
            "PUT", f"{V2}/w", made.json | {"spec": {"host": "far", "port": 9}}
        )

        assert (made.code, made.json["spec"]) == (201, {"host": "localhost", "port": 801})
        assert (changed.code, changed.json["spec"]) == (200, {"host": "far", "port": 91})
        assert (await server.get(f"{V1}/w"))["spec"] == {"address": "far:91"}
        await server.ask("DELETE", f"{registration}/mutatingadmissionpolicybindings/p")
        denied = await server.ask(
            "PUT", f"{V2}/w", changed.json | {"spec": {"host": "forbidden", "port": 1}}
        )
        assert denied.code == 422
        assert "forbidden:1" in denied.json["message"]

    play(story)


# --- failures ---


def test_others_do_not_wait_for_a_webhook_that_hangs() -> None:
    """With one seat: a request that waits for a webhook has none."""

    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        async with server.watch(V2):
            requests = [
                asyncio.create_task(server.ask("GET", f"{V2}/w")),
                asyncio.create_task(server.ask("GET", V2)),
                asyncio.create_task(ask(server, "create")),
                asyncio.create_task(ask(server, "update")),
                asyncio.create_task(ask(server, "delete")),
            ]
            await until(lambda: _count_of(hook, 6))
            written = await server.ask(
                "PATCH", f"{V1}/w", {"spec": {"address": "a:1"}}, content_type=MERGE
            )
            await server.post(V1, here(in_v1("another")))
            listed = await server.get(V1)
            maps = "/api/v1/namespaces/default/configmaps"
            await server.post(maps, {"metadata": {"name": "m"}})

            assert written.code == 200
            assert len(listed["items"]) == 2
            assert not any(request.done() for request in requests)
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)

    limits = FlowLimits(max_mutating_requests_inflight=1, max_requests_inflight=1)
    play(story, "/hang", flow_limits=limits)


async def _count_of(hook: ConversionServer, count: int) -> bool:
    return len(hook.reviews) >= count


def test_a_watch_ends_with_the_reason_if_the_webhook_fails() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        async with server.watch(V2) as events:
            failed = await events.next()
            end = await events.next()

        assert failed is not None
        assert failed["type"] == "ERROR"
        assert failed["object"]["code"] == 500
        assert failed["object"]["message"].endswith("failed: cannot be converted")
        assert end is None

    play(story, "/fail-message")


def test_a_definition_is_deleted_although_its_webhook_is_gone() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        await server.ask("DELETE", CRD)

        async def is_gone() -> bool:
            return (await server.ask("GET", CRD)).code == 404

        await until(is_gone)

    play(story, "/fail")
