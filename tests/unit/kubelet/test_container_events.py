"""Which events a container's statuses give."""

from __future__ import annotations

from typing import Any

from allot.kubelet.container_events import container_events, killing_events


def a_status(state: str, restarts: int = 0, *, has_ended: bool = False) -> dict[str, Any]:
    last = {"terminated": {"exitCode": 1}} if has_ended else {}
    container = {
        "name": "c",
        "image": "nginx",
        "restartCount": restarts,
        "state": {state: {}},
        "lastState": last,
    }
    return {"containerStatuses": [container]}


def reasons(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [event.reason for event in container_events(before, after)]


STARTED = ["Pulled", "Created", "Started"]


def test_a_start() -> None:
    assert reasons(a_status("waiting"), a_status("running")) == STARTED
    assert reasons({}, a_status("terminated")) == STARTED, "it ran for a moment"
    assert not reasons(a_status("running"), a_status("running"))
    assert not reasons(a_status("running"), a_status("terminated"))


def test_a_restart() -> None:
    ended, waits = a_status("terminated"), a_status("waiting", has_ended=True)
    again = a_status("running", restarts=1, has_ended=True)

    assert not reasons(ended, waits)
    assert reasons(waits, again) == STARTED
    assert reasons(ended, again) == STARTED


def test_the_place_and_the_words() -> None:
    pulled, created, started = container_events({}, a_status("running"))

    assert pulled.container == ("containers", "c")
    assert pulled.note == 'Container image "nginx" already present on machine'
    assert (created.note, started.note) == ("Container created", "Container started")


def test_a_deletion_stops_what_runs() -> None:
    [event] = killing_events(a_status("running"))

    assert (event.reason, event.note) == ("Killing", "Stopping container c")
    assert not list(killing_events(a_status("terminated")))
