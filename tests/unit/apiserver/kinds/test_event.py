"""Events show empty fields as Kubernetes does, in both of their groups."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from allot.testing.servers import LocalServer

CORE: Final = "/api/v1/namespaces/default/events"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
ABOUT: Final = {"kind": "Pod", "namespace": "default", "name": "p"}


def written(path: str, event: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The event in core/v1 and in events.k8s.io/v1."""

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        async with LocalServer() as server:
            await server.post(path, {"metadata": {"name": "e"}, **event})
            return await server.get(f"{CORE}/e"), await server.get(f"{EVENTS}/e")

    return asyncio.run(run())


def own_fields(event: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in event.items()
        if name not in ("kind", "apiVersion", "metadata")
    }


def test_a_core_event() -> None:
    core, other = written(CORE, {"involvedObject": ABOUT, "reason": "r", "message": "m"})

    assert own_fields(core) == {
        "involvedObject": ABOUT,
        "reason": "r",
        "message": "m",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    assert own_fields(other) == {
        "regarding": ABOUT,
        "reason": "r",
        "note": "m",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        "eventTime": None,
    }


def test_empty_fields_have_no_owner() -> None:
    core, _ = written(CORE, {"involvedObject": ABOUT, "reason": "r", "message": "m"})

    (entry,) = core["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:involvedObject": {}, "f:reason": {}, "f:message": {}}


def test_nulls_of_a_writer() -> None:
    nulls = {"source": None, "reportingComponent": None, "lastTimestamp": None}
    core, _ = written(CORE, {"involvedObject": ABOUT, "reason": "r", "message": "m", **nulls})

    assert (core["source"], core["reportingComponent"], core["lastTimestamp"]) == ({}, "", None)


def test_a_scheduler_event() -> None:
    event = {
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "action": "Binding",
        "regarding": ABOUT,
        "reason": "Scheduled",
        "note": "m",
        "type": "Normal",
        "reportingController": "default-scheduler",
        "reportingInstance": "i",
    }
    core, other = written(EVENTS, event)

    empty = {"deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None}
    assert own_fields(other) == {**event, **empty, "deprecatedSource": {}}
    assert core["reportingComponent"] == "default-scheduler"
    assert (core["source"], core["firstTimestamp"], core["lastTimestamp"]) == ({}, None, None)
