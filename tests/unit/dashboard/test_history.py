"""History: the floor plan of an earlier moment, as the difference to the present one."""

from __future__ import annotations

from allot.dashboard.floor_plan import Cell, FloorChange, PlacedDevice, PoolPlan
from allot.dashboard.history import RecentHistory

FREE, HELD = Cell(0, 0, 0, ()), Cell(1, 100, 0, (("default/claim",),))


def a_pool(number: int, cells: dict[int, Cell]) -> PoolPlan:
    places = tuple(PlacedDevice(each, f"gpu-{each}", "", "", "", 100) for each in cells)
    return PoolPlan(number, "driver", f"pool-{number}", "node", places, tuple(cells.values()))


def a_history(max_changes: int = 100) -> RecentHistory:
    history = RecentHistory(100.0, max_changes)
    history.begin(FloorChange(pools=(a_pool(0, {0: FREE, 1: FREE}),)))
    return history


def test_nothing_has_changed() -> None:
    assert a_history().floor_at(100.0) == FloorChange()


def test_a_device_that_was_held_for_a_while() -> None:
    history = a_history()
    history.record(FloorChange(cells=((1, HELD),)), 110.0)
    history.record(FloorChange(cells=((1, FREE),)), 120.0)

    assert history.floor_at(105.0) == FloorChange()
    assert history.floor_at(110.0) == FloorChange(cells=((1, HELD),))
    assert history.floor_at(120.0) == FloorChange()
    assert [(change.at, change.cell) for change in history.of_device(1)] == [
        (110.0, HELD),
        (120.0, FREE),
    ]
    assert history.of_device(0) == []


def test_a_pool_that_did_not_exist_yet() -> None:
    history = a_history()
    history.record(FloorChange(pools=(a_pool(1, {2: FREE}),)), 110.0)
    history.record(FloorChange(cells=((2, HELD),)), 120.0)

    assert history.floor_at(105.0) == FloorChange(gone=(1,))
    assert history.floor_at(115.0) == FloorChange(cells=((2, FREE),))
    assert [change.cell for change in history.of_device(2)] == [FREE, HELD]


def test_a_pool_that_is_gone_has_the_states_that_it_had() -> None:
    history = a_history()
    history.record(FloorChange(cells=((1, HELD),)), 110.0)
    history.record(FloorChange(gone=(0,)), 120.0)

    assert history.floor_at(115.0) == FloorChange(pools=(a_pool(0, {0: FREE, 1: HELD}),))
    assert history.floor_at(105.0) == FloorChange(pools=(a_pool(0, {0: FREE, 1: FREE}),))
    assert history.of_device(1)[-1].cell is None


def test_a_pool_with_other_devices() -> None:
    history = a_history()
    history.record(FloorChange(pools=(a_pool(0, {0: FREE, 2: HELD}),)), 110.0)

    assert history.floor_at(105.0) == FloorChange(pools=(a_pool(0, {0: FREE, 1: FREE}),))


def test_the_oldest_changes_are_forgotten() -> None:
    history = a_history(max_changes=2)
    for step in range(5):
        history.record(FloorChange(cells=((0, HELD if step % 2 == 0 else FREE),)), 110.0 + step)

    assert history.begins_at == 112.0
    assert history.floor_at(112.0) == FloorChange()
    assert history.floor_at(113.0) == FloorChange(cells=((0, FREE),))
