"""Events of both groups, most of them with a mistake.

    python -m tests.conformance.event_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/events-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.put_create_steps import EVENT
from tests.conformance.wire_steps import IN_DEFAULT, Step, each, print_answers

Document = dict[str, Any]
CORE = f"{IN_DEFAULT}/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TIME = EVENT["eventTime"]
CORE_NAMES = {
    "regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent", "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp", "deprecatedSource": "source",
}  # fmt: skip
LONG = "r" * 129


def _event(**change: Any) -> Document:
    return {"metadata": {"name": "z"}, "note": "n"} | EVENT | change


def _both(method: str, path: str, event: Document) -> Iterator[Step]:
    core = {CORE_NAMES.get(name, name): value for name, value in event.items()}
    yield Step(method, f"{EVENTS}{path}?dryRun=All", event)
    yield Step(method, f"{CORE}{path}?dryRun=All", core)


def new_events() -> Iterator[Step]:
    series = {"count": 2, "lastObservedTime": TIME}
    for change in each(
        {}, {"type": ""}, {"type": "Foo"}, {"reason": ""}, {"reason": LONG}, {"action": ""}, {"action": LONG}, {"note": ""},
        {"note": "n" * 1025}, {"reportingController": ""}, {"reportingController": "bad name!"}, {"reportingInstance": ""},
        {"reportingInstance": LONG}, {"series": series}, {"series": series | {"count": 1}}, {"series": {"count": 2}}, {"series": {}},
        {"deprecatedCount": 1}, {"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"}, {"related": {"kind": "x"}},
        {"deprecatedLastTimestamp": "2026-01-01T00:00:00Z"}, {"deprecatedSource": {"component": "x"}},
        {"metadata": {"name": "Bad_Name", "labels": {"bad!": "x"}}}, {"metadata": {"name": "a/b"}},
        {"reportingController": "", "reportingInstance": "", "action": "", "reason": "", "type": "", "series": {"count": 1}},
        *({"regarding": regarding} for regarding in each(
            {}, {"kind": "Pod"}, {"kind": "Node", "name": "n"}, {"kind": "Pod", "name": "p", "namespace": "other"},
            {"kind": "Pod", "name": "p", "namespace": "kube-system"})),
    ):  # fmt: skip
        yield from _both("POST", "", _event(**change))
        yield from _both("POST", "", _event(**{"eventTime": None} | change))


def elsewhere() -> Iterator[Step]:
    for time in each(None, TIME):
        for regarding in each(
            {}, {"kind": "Node"}, {"namespace": "default"}, {"namespace": "kube-system"}
        ):
            for step in _both("POST", "", _event(eventTime=time, regarding=regarding)):
                for namespace in ("kube-system", "kube-public"):
                    yield step._replace(path=step.path.replace("/default/", f"/{namespace}/"))


def changes() -> Iterator[Step]:
    yield Step("POST", EVENTS, _event())
    for change in each(
        {}, {"type": "Warning"}, {"reason": "S"}, {"action": "B"}, {"eventTime": "2026-01-02T00:00:00.000000Z"},
        {"reportingController": "d"}, {"reportingInstance": "j"}, {"regarding": {"kind": "Pod", "name": "q"}}, {"note": "m"},
        {"related": {"kind": "x"}}, {"series": {"count": 2, "lastObservedTime": TIME}}, {"series": {"count": 1}},
        {"deprecatedCount": 1}, {"metadata": {"name": "z", "labels": {"a": "b"}}}, {"note": "n" * 2000},
    ):  # fmt: skip
        yield from _both("PUT", "/z", _event(**change))
    yield Step("DELETE", f"{EVENTS}/z")


def old_series() -> Iterator[Step]:
    """The old API accepts what the new one refuses to become, and then leaves as it is."""
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    old = {
        "metadata": {"name": "z"},
        "involvedObject": about,
        "series": {"count": 1},
        "type": "Normal",
    }
    yield Step("POST", CORE, old)
    new = {"metadata": {"name": "z", "labels": {"a": "b"}}, "regarding": about, "type": "Normal"}
    for series in each(
        {"count": 1}, {"count": 1, "lastObservedTime": None}, {"count": 0}, {}, None
    ):
        yield Step("PUT", f"{EVENTS}/z?dryRun=All", new | {"series": series})
    yield Step("DELETE", f"{EVENTS}/z")


def all_steps() -> list[Step]:
    parts = (new_events, elsewhere, changes, old_series)
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
