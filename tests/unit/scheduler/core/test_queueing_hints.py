"""Which plugins an event concerns."""

from __future__ import annotations

import pytest

from allot.scheduler.core.queueing_hints import QueueingHints
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration

REGISTERED = {
    "Labels": (EventRegistration(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),),
    "All": (EventRegistration(ClusterEvent(NODE, Action.ALL)),),
    "None": (),
}


@pytest.mark.parametrize(
    ("event", "plugins"),
    [
        (ClusterEvent(NODE, Action.ADD), {"Labels", "All"}),
        (ClusterEvent(NODE, Action.DELETE), {"All"}),
        (ClusterEvent("Other", Action.ADD), set()),
    ],
)
def test_plugins_that_registered(event: ClusterEvent, plugins: set[str]) -> None:
    assert QueueingHints(REGISTERED).interested_plugins(event) == plugins


def test_registrations_are_compared_once_per_kind_of_event(monkeypatch: pytest.MonkeyPatch) -> None:
    hints, compared = QueueingHints(REGISTERED), 0
    covers = ClusterEvent.covers

    def counted(registered: ClusterEvent, event: ClusterEvent) -> bool:
        nonlocal compared
        compared += 1
        return covers(registered, event)

    monkeypatch.setattr(ClusterEvent, "covers", counted)
    for _ in range(10):
        hints.interested_plugins(ClusterEvent(NODE, Action.ADD))

    assert compared == 2
