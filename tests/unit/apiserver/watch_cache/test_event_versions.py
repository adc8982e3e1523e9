"""Events in both of their groups."""

from __future__ import annotations

from allot.apiserver.watch_cache.event_versions import from_core, to_core

CORE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "n"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "Scheduled",
    "message": "assigned",
    "source": {"component": "s"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:01Z",
    "count": 2,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "sched",
    "reportingInstance": "sched-1",
    "related": {"kind": "Node"},
    "unknown": [1],
}
EVENTS = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "n"},
    "regarding": {"kind": "Pod", "name": "p"},
    "reason": "Scheduled",
    "note": "assigned",
    "deprecatedSource": {"component": "s"},
    "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
    "deprecatedLastTimestamp": "2026-01-01T00:00:01Z",
    "deprecatedCount": 2,
    "type": "Normal",
    "eventTime": None,
    "reportingController": "sched",
    "reportingInstance": "sched-1",
    "related": {"kind": "Node"},
    "unknown": [1],
}


def test_names() -> None:
    assert from_core(CORE) == EVENTS
    assert to_core(EVENTS) == CORE


def test_fields_that_a_version_does_not_know_come_back() -> None:
    odd = CORE | {"note": "not a field of core/v1", "regarding": 1}

    assert to_core(from_core(odd)) == odd
    assert from_core(odd)["note"] == "assigned"


def test_parts_of_events_stay_without_a_version() -> None:
    assert from_core({"message": "m"}) == {"note": "m"}
