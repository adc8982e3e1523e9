"""What the scheduler recorded about better alternatives when it decided."""

from __future__ import annotations

from allot.api.raw import RawObject
from allot.scheduler.core.failure_explainer import ALTERNATIVE_UNAVAILABLE
from allot.scheduler.explain.alternatives import recorded_reasons


def an_event(reason: str, pod: str, note: str) -> RawObject:
    regarding = {"kind": "Pod", "namespace": "default", "name": pod}
    return RawObject({"reason": reason, "regarding": regarding, "note": note})


def test_what_was_recorded_about_a_pod() -> None:
    events = [
        an_event("Scheduled", "p", "Successfully assigned"),
        an_event(ALTERNATIVE_UNAVAILABLE, "other", "not this one"),
        an_event(ALTERNATIVE_UNAVAILABLE, "p", "not gpu/large"),
        RawObject({"reason": ALTERNATIVE_UNAVAILABLE}),
    ]

    assert list(recorded_reasons(events, "default", "p")) == ["not gpu/large"]
    assert list(recorded_reasons(events, "elsewhere", "p")) == []
