"""What lists say about a device."""

from __future__ import annotations

import pytest

from allot.questions.device_holders import Holder
from allot.questions.device_text import details_text, holders_text, used_share
from allot.questions.devices import DeviceRow, DeviceUse

SHARES = Holder("ns/claim", consumed={"bandwidth": "75G", "queues": "1"})
LEFT = {"bandwidth": "25G", "queues": "9"}


@pytest.mark.parametrize(
    ("state", "holders", "left", "used"),
    [
        pytest.param(DeviceUse.FREE, (), LEFT, 0.0, id="free"),
        pytest.param(DeviceUse.HELD, (SHARES,), LEFT, 1.0, id="held"),
        pytest.param(DeviceUse.UNPUBLISHED, (SHARES,), {}, 1.0, id="unpublished"),
        pytest.param(DeviceUse.SHARED, (SHARES,), LEFT, 0.75, id="shared"),
        pytest.param(DeviceUse.WAITING, (SHARES,), LEFT, 0.75, id="a-share-that-waits"),
        pytest.param(DeviceUse.SHARED, (Holder("ns/claim"),), LEFT, 0.01, id="consumes-nothing"),
        pytest.param(DeviceUse.SHARED, (SHARES,), {"lanes": "0"}, 1.0, id="has-no-capacity"),
    ],
)
def test_how_much_is_used(
    state: DeviceUse, holders: tuple[Holder, ...], left: dict[str, str], used: float
) -> None:
    assert used_share(DeviceRow(state=state, held_by=holders, remaining=left)) == used


def test_holders_are_pods_or_claims() -> None:
    row = DeviceRow(held_by=(Holder("ns/a", pods=("ns/p", "ns/q")), SHARES))

    assert holders_text(row) == "pod/ns/p, pod/ns/q; claim/ns/claim (bandwidth 75G, queues 1)"


def test_details() -> None:
    waits = Holder("ns/a", waits_for=("example.com/Attached",))
    fails = Holder("ns/b", failure="example.com/Broken")
    row = DeviceRow(
        held_by=(waits, fails), remaining={"lanes": "2"}, taints=("a=b:NoSchedule",), reason="why"
    )

    assert details_text(row) == (
        "lanes 2 left; a=b:NoSchedule; waits for example.com/Attached; failed: example.com/Broken; why"
    )
