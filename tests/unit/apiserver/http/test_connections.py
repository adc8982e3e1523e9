"""Connection limits, by a clock that tests move: which connections end, and when."""

from __future__ import annotations

import logging

import pytest

from allot.apiserver.http.connections import ConnectionLimits, Connections, Slot
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.serving import connections_for
from allot.apiserver.log_aggregation import Notice, RateFilter

LIMITS = ConnectionLimits(max_connections=4)


class Town:
    """Connections, and a note of those that were ended."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.now = 0.0
        self.ended: list[str] = []
        self.metrics = Metrics()
        self.all = Connections(limits, self.metrics, clock=lambda: self.now)

    def connect(self, name: str, address: str = "") -> Slot | None:
        return self.all.admit(address or name, lambda: self.ended.append(name))

    def must_connect(self, name: str, address: str = "") -> Slot:
        slot = self.connect(name, address)
        assert slot is not None
        return slot

    def ended_for(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "allot_apiserver_connections_ended_total", {"reason": reason}
        )
        return value or 0.0


def test_a_head_must_be_complete_in_time() -> None:
    town = Town()
    slot = town.must_connect("slow")
    town.now = 9.9
    town.all.reading_head(slot)  # a byte, which earns it nothing
    town.all.sweep()
    assert town.ended == []
    town.now = 10.0
    town.all.sweep()
    assert (town.ended, len(town.all)) == (["slow"], 0)
    assert town.ended_for("head-timeout") == 1


def test_a_request_under_way_has_time_and_an_idle_connection_less() -> None:
    town = Town()
    slot = town.must_connect("a")
    town.all.busy(slot)
    town.now = 1000.0
    town.all.sweep()
    assert town.ended == []
    town.all.idle(slot)
    town.now += 119
    town.all.sweep()
    assert town.ended == []
    town.now += 1
    town.all.sweep()
    assert town.ended == ["a"]
    assert town.ended_for("idle-timeout") == 1


def test_the_next_head_on_a_connection_must_be_complete_in_time() -> None:
    town = Town()
    slot = town.must_connect("a")
    town.all.busy(slot)
    town.all.idle(slot)
    town.now = 50.0
    town.all.reading_head(slot)
    town.now = 59.0
    town.all.reading_head(slot)
    town.now = 60.0
    town.all.sweep()
    assert town.ended == ["a"]


def test_the_longest_idle_connection_is_closed_for_a_new_one() -> None:
    town = Town()
    slots = [town.must_connect(name) for name in "abcd"]
    town.all.busy(slots[0])
    for slot in (slots[1], slots[2]):
        town.all.busy(slot)
        town.all.idle(slot)
    assert town.connect("e") is not None
    assert town.ended == ["d"]  # it has waited for its first head all the time
    assert town.connect("f") is not None
    assert town.ended == ["d", "b"]
    assert town.ended_for("evicted") == 2


def test_the_address_with_most_connections_makes_room() -> None:
    town = Town()
    town.must_connect("other", "10.0.0.1")
    for number in range(3):
        town.must_connect(f"many-{number}", "10.0.0.9")
    assert town.connect("new", "10.0.0.2") is not None
    assert town.ended == ["many-0"]


def test_one_address_does_not_get_everything() -> None:
    town = Town()
    slots = [town.must_connect(f"many-{number}", "10.0.0.9") for number in range(3)]
    for slot in slots:
        town.all.busy(slot)
    assert town.connect("one-more", "10.0.0.9") is None
    assert town.ended_for("refused") == 1
    assert town.connect("other", "10.0.0.1") is not None


def test_when_all_are_busy_new_ones_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    town = Town()
    for name in "abcd":
        town.all.busy(town.must_connect(name))
    with caplog.at_level(logging.WARNING):
        assert [town.connect(name) for name in "efg"] == [None] * 3
    assert town.ended == []
    assert town.ended_for("refused") == 3
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("refusing connections: 4 are open and busy")
    assert "at most 4" in line


def test_what_is_gone_is_forgotten() -> None:
    town = Town()
    slot = town.must_connect("a")
    town.all.gone(slot)
    town.all.gone(slot)
    town.all.idle(slot)
    town.all.reading_head(slot)
    town.now = 10_000.0
    town.all.sweep()
    assert (town.ended, len(town.all)) == ([], 0)
    assert [town.connect(name) is not None for name in "bcde"] == [True] * 4


def test_states_are_counted() -> None:
    town = Town()
    slots = [town.must_connect(name) for name in "abcd"]
    town.all.busy(slots[0])
    town.all.busy(slots[1])
    town.all.idle(slots[1])
    town.all.closing(slots[2])
    sample = town.metrics.registry.get_sample_value
    states = ("head", "idle", "busy", "closing")
    name = "allot_apiserver_connections"
    assert [sample(name, {"state": state}) for state in states] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("files", "connections"), [(200, 134), (1024, 896), (1 << 20, 4096), (2, 2), (1, 1)]
)
def test_file_descriptors_are_kept_for_other_things(files: int, connections: int) -> None:
    assert connections_for(files) == connections


def test_notices_are_summed_up(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, 1.0, 9.0, 10.0, 11.0))
    notice = Notice(logging.getLogger("test"), 10, clock=lambda: next(times))
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            notice.warn("full")
    assert [record.getMessage() for record in caplog.records] == [
        "full",
        "full (2 more since the last such line)",
    ]


def test_lines_that_clients_provoke_are_few() -> None:
    times = iter((0.0, 1.0, 10.0))
    rate = RateFilter(10, clock=lambda: next(times))
    record = logging.makeLogRecord({"msg": "Invalid HTTP request received."})
    assert [rate.filter(record) for _ in range(3)] == [True, False, True]
