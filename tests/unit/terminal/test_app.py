"""`allot top`: what is on the screen, and what keys do."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.api.resource import DeviceTaint
from allot.client import resources
from allot.features import DEFAULTS
from allot.questions.observed_cluster import ObservedCluster
from allot.terminal import cluster_reading
from allot.terminal.state_symbols import ASCII
from allot.testing.builders import (
    a_claim,
    a_class,
    a_consumer,
    a_device,
    a_node,
    a_pod,
    a_slice,
    an_allocation,
)
from allot.testing.observed_clusters import observed, snapshot_of
from tests.unit.terminal.playing import Shown, play

TAINT = DeviceTaint(key="broken", effect="NoSchedule")
SLICE = a_slice(
    a_device("gpu-0", {"model": "H100"}),
    a_device("gpu-1", {"model": "H100"}),
    a_device("gpu-2", taints=(TAINT,)),
    a_device("nic", capacity={"bandwidth": "100G"}, allow_multiple_allocations=True),
)


def held(device: str, name: str = "claim", pod: str = "trainer", **fields: object) -> ResourceClaim:
    allocation = an_allocation(device, **fields)  # type: ignore[arg-type]
    return a_claim(name=name, allocation=allocation, reserved_for=[a_consumer(pod)])


SHARE = held(
    "nic", "share", "web", share_id="1", consumed_capacity={"bandwidth": Quantity.parse("40G")}
)
CLUSTER = (a_node(), a_class(), SLICE, held("gpu-1"), SHARE)


def a_waiting_pod(name: str = "waiting") -> tuple[ResourceClaim, Pod]:
    return a_claim(name=name), a_pod(name, claims={"gpu": name})


def test_the_floor_plan() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.until("node-1")
        lines = shown.lines
        assert "allot top  test cluster" in lines[0]
        assert lines[0].endswith("● live")
        assert "1 Floor plan" in lines[1]
        assert lines[2].split("   ")[0].strip() == "· 1 free"
        row = next(line for line in lines if "node-1" in line)
        assert row.split() == ["node-1", "2/4", "·", "█", "T", "▃"]
        assert "gpu-0 on node-1  H100  free" in shown.text
        assert lines[-1].startswith(" /  search")
        assert lines[-1].endswith("q  quit")
        await shown.press("right")
        assert "default/trainer" in shown.text

    play(scenario, *CLUSTER)


def test_changes_appear_and_the_selection_stays() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("right")
        await shown.until("gpu-1 on node-1  H100  held")
        more = a_slice(a_device("a"), name="zero", node="node-0")
        shown.source.set(observed(*CLUSTER[:3], more, a_node("node-0")))
        await shown.until("gpu-1 on node-1  H100  free")
        shown.source.set(observed(a_node()))
        await shown.until("No devices.")

    play(scenario, *CLUSTER)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("3", ["DEVICE", "gpu-1", "held", "default/trainer"], id="devices"),
        pytest.param("4", ["POD", "waiting", "Pending"], id="pods"),
        pytest.param("5", ["CLAIM", "claim", "reserved", "node-1/gpu-1"], id="claims"),
        pytest.param("6", ["No events."], id="events"),
    ],
)
def test_views(key: str, expected: list[str]) -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press(key)
        for text in expected:
            await shown.until(text)

    play(scenario, *CLUSTER, *a_waiting_pod())


def test_tables_of_a_large_cluster_are_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reading, "MANY_OBJECTS", 0)

    async def scenario(shown: Shown) -> None:
        await shown.press("5")
        await shown.until("default")
        await shown.press("4")
        await shown.until("waiting")
        assert "2 Pending 1" in shown.lines[1]
        shown.source.set(observed(*CLUSTER, *a_waiting_pod(), *a_waiting_pod("later")))
        await shown.until("later")
        await shown.press("slash", *"later")
        await shown.until("waiting", gone=True)
        await shown.press("enter", "5")
        await shown.until("later")

    play(scenario, *CLUSTER, *a_waiting_pod())


def test_pending_by_cause_and_explain() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.until("2 Pending 2")
        await shown.press("2")
        await shown.until("CAUSE")
        await shown.until("2 pending: pod/default/one, pod/default/two")
        await shown.until("What would help")
        await shown.press("enter")
        await shown.until("Explain pod default/one")
        await shown.until("Pod default/one is pending")
        await shown.press("escape")
        await shown.until("CAUSE")

    node = a_node(status={"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}})
    full = (node, a_class(), a_slice(), held("gpu-0"))
    everything = (*full, *a_waiting_pod("one"), *a_waiting_pod("two"))
    play(scenario, *everything)


def test_an_object_that_is_deleted_while_it_is_explained() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("4", "enter")
        await shown.until("Explain pod default/waiting")
        await shown.until("Pod default/waiting")
        shown.source.set(observed(*CLUSTER))
        await shown.until("deleted; this is the last that was known")
        await shown.press("escape")
        await shown.until("No pods.")

    play(scenario, *CLUSTER, *a_waiting_pod())


def test_a_device_and_the_pod_that_holds_it() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("right", "right", "right", "enter")
        await shown.until("Device nic of pool node-1")
        await shown.until("100G, 60G left")
        await shown.press("e")
        await shown.until("web does not exist")
        await shown.press("escape")
        shown.source.set(observed(a_node()))
        await shown.until("no longer published")
        await shown.press("3")
        await shown.until("No devices.")

    play(scenario, *CLUSTER)


def test_search() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("3", "slash", *"held")
        await shown.until("1 match 'held'")
        await shown.press("enter")
        await shown.until("gpu-0", gone=True)
        await shown.press("escape")
        await shown.until("gpu-0")

    play(scenario, *CLUSTER)


def test_a_search_that_begins_when_the_application_ends() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.app.query("#search").remove()
        shown.app._search()

    play(scenario, *CLUSTER)


def test_find_the_devices_of_a_claim() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("5", "f")
        await shown.until("1 match 'default/claim'")
        await shown.until("gpu-1 on node-1")

    play(scenario, *CLUSTER)


def test_overview_and_namespaces() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("z")
        await shown.until("1 nodes")
        await shown.press("enter")
        await shown.until("2/4")
        await shown.press("c")
        await shown.until("A default")
        row = next(line for line in shown.lines if "node-1" in line)
        assert row.split() == ["node-1", "2/4", "·", "A", "T", "A"]

    play(scenario, *CLUSTER)


def test_keys_are_documented() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press("question_mark")
        await shown.until("Keys and symbols")
        await shown.until("shift+tab")

    play(scenario, *CLUSTER)


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", 130)])
def test_quit(key: str, code: int) -> None:
    async def scenario(shown: Shown) -> None:
        await shown.press(key)

    assert play(scenario, *CLUSTER).return_value == code


def test_a_cluster_that_does_not_answer() -> None:
    async def scenario(shown: Shown) -> None:
        await shown.until("live")
        shown.source.failure = "127.0.0.1:1: Connection refused"
        await shown.until("reconnecting: 127.0.0.1:1: Connection refused")
        assert "gpu-0 on node-1" in shown.text, "what was known stays"
        shown.source.failure = ""
        await shown.until("● live")

    play(scenario, *CLUSTER)


def test_what_may_not_be_read_is_noted() -> None:
    snapshot = snapshot_of(*CLUSTER)
    snapshot.unread[resources.PODS] = "pods is forbidden"
    cluster = ObservedCluster(snapshot, DEFAULTS).with_notes_on_unread()

    async def scenario(shown: Shown) -> None:
        await shown.until("? 1 note")
        await shown.press("question_mark", "end")
        await shown.until("pods could not be read: pods is forbidden")

    play(scenario, cluster=cluster)


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (200, 60), (20, 5)])
@pytest.mark.parametrize("symbols", [None, ASCII], ids=["blocks", "ascii"])
def test_any_size(size: tuple[int, int], symbols: object) -> None:
    async def scenario(shown: Shown) -> None:
        for key in "123456":
            await shown.press(key, "down", "up", "pagedown", "end", "home")
            assert len(shown.lines) == size[1]
            assert all(cell_len(line) <= size[0] for line in shown.lines)
            if symbols is ASCII and size[0] >= 40:
                assert shown.text.isascii(), shown.text

    play(scenario, *CLUSTER, *a_waiting_pod(), size=size, **({"symbols": ASCII} if symbols else {}))  # type: ignore[arg-type]


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] \u202e\n" + "n" * 10_000


def test_hostile_texts_are_shown_as_text() -> None:
    slice_ = a_slice(
        a_device(
            HOSTILE, {"model": HOSTILE}, taints=(DeviceTaint(HOSTILE, HOSTILE, "NoSchedule"),)
        ),
        node=HOSTILE,
    )
    event = RawObject(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": HOSTILE, "namespace": HOSTILE},
            "reason": HOSTILE,
            "message": HOSTILE,
            "type": HOSTILE,
            "count": HOSTILE,
            "lastTimestamp": HOSTILE,
            "involvedObject": {"kind": HOSTILE, "namespace": HOSTILE, "name": HOSTILE},
        }
    )
    cluster = observed(
        a_node(HOSTILE),
        a_class(),
        slice_,
        held("other", HOSTILE, HOSTILE, pool=HOSTILE, driver=HOSTILE),
        a_claim(name=f"{HOSTILE}2"),
        a_pod(HOSTILE, claims={"gpu": f"{HOSTILE}2"}),
    )
    cluster.objects.put(resources.CORE_EVENTS, event)

    async def scenario(shown: Shown) -> None:
        for key in "123456":
            await shown.press(key)
            await shown.press("enter")
            await shown.pilot.pause(0.3)
            for line in shown.lines:
                assert line.isprintable()
                assert cell_len(line) <= 80
            await shown.press("escape")
        await shown.press("slash", *"[/x]", "enter")
        assert all(line.isprintable() for line in shown.lines)

    play(scenario, cluster=cluster)
