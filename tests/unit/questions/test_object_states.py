"""Claims and events in a word."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.questions.object_states import claim_state, event_series, event_subject, event_time
from allot.testing.builders import a_claim, a_consumer, an_allocation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CREATED, LATER, LAST = (f"2026-01-01T00:0{minute}:00Z" for minute in (0, 5, 9))


def an_event(**fields: Any) -> RawObject:
    return RawObject({"metadata": {"name": "e", "creationTimestamp": CREATED}, **fields})


def test_states_of_claims() -> None:
    held = an_allocation("gpu-0")
    reserved = a_claim(allocation=held, reserved_for=[a_consumer("pod")])

    assert claim_state(a_claim()) == "pending"
    assert claim_state(a_claim(allocation=held)) == "allocated"
    assert claim_state(reserved) == "reserved"
    assert claim_state(a_claim(allocation=held, deletion_timestamp=NOW)) == "being deleted"


@pytest.mark.parametrize(
    ("fields", "minute"),
    [
        pytest.param({}, 0, id="created"),
        pytest.param({"eventTime": LATER}, 5, id="event-time"),
        pytest.param({"eventTime": LATER, "lastTimestamp": LAST}, 9, id="v1"),
        pytest.param({"deprecatedLastTimestamp": LAST}, 9, id="events-k8s-io"),
        pytest.param({"eventTime": LATER, "series": {"lastObservedTime": LAST}}, 9, id="series"),
        pytest.param({"eventTime": LATER, "series": "no"}, 5, id="not-a-series"),
    ],
)
def test_when_an_event_was_observed(fields: dict[str, Any], minute: int) -> None:
    assert event_time(an_event(**fields)) == NOW.replace(minute=minute)


def test_what_an_event_is_about() -> None:
    about = {"kind": "Pod", "name": "p"}

    assert event_subject(an_event(regarding=about)) == about
    assert event_subject(an_event(involvedObject=about)) == about
    assert event_subject(an_event(regarding="no")) == {}
    assert event_series(an_event()) == {}
