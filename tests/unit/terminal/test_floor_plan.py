"""Where devices are drawn."""

from __future__ import annotations

import pytest

from allot.questions.devices import DeviceRow
from allot.terminal.device_index import DevicesOfNode
from allot.terminal.floor_plan import DevicePosition, FloorPlan


def a_group(name: str, *sizes: int) -> DevicesOfNode:
    """A node with pools of these sizes."""
    pools = tuple(
        tuple(DeviceRow("d", f"{name}-{pool}", f"gpu-{n}", name) for n in range(size))
        for pool, size in enumerate(sizes)
    )
    return DevicesOfNode(name, name, pools)


def test_a_line_for_each_node() -> None:
    plan = FloorPlan([a_group("node-1", 4, 2), a_group("node-2", 8)], 40)

    assert [[piece.group for piece in line] for line in plan.lines] == [[0], [1]]
    assert plan.lines[0][0].offsets == [0, 2, 4, 6, 9, 11], "pools are one column apart"


def test_nodes_side_by_side_where_there_is_room() -> None:
    plan = FloorPlan([a_group(f"node-{n}", 4) for n in range(5)], 80)

    assert [[piece.group for piece in line] for line in plan.lines] == [[0, 1, 2], [3, 4]]


def test_devices_that_do_not_fit_move_closer_then_to_further_lines() -> None:
    closer = FloorPlan([a_group("node-1", 20)], 50)
    assert closer.cell_width == 1
    assert len(closer.lines) == 1

    further = FloorPlan([a_group("node-1", 100)], 50)
    counts = [len(line[0].offsets) for line in further.lines]
    assert sum(counts) == 100
    assert all(further.prefix + line[0].offsets[-1] < 50 for line in further.lines)


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_every_device_has_its_own_place(width: int) -> None:
    groups = [a_group("node-1", 30, 3), a_group("node-2", 1), a_group("pool shared", 70)]
    plan = FloorPlan(groups, width)

    places = [DevicePosition(g, n) for g, group in enumerate(groups) for n in range(group.size)]
    drawn = {(plan.column_of(place), plan.line_of(place)): place for place in places}

    assert len(drawn) == len(places)
    assert all(x < width for x, _ in drawn)
    assert all(plan.nearest(x, y) == place for (x, y), place in drawn.items())


def test_the_cursor_goes_through_all_devices() -> None:
    groups = [a_group("node-1", 3), a_group("node-2", 2)]
    plan = FloorPlan(groups, 40)

    place, seen = DevicePosition(0, 0), [DevicePosition(0, 0)]
    while (following := plan.beside(place, 1)) != place:
        place = following
        seen.append(place)

    assert seen == [
        DevicePosition(0, 0),
        DevicePosition(0, 1),
        DevicePosition(0, 2),
        DevicePosition(1, 0),
        DevicePosition(1, 1),
    ]
    assert plan.beside(DevicePosition(1, 0), -1) == DevicePosition(0, 2)
    assert plan.beside(DevicePosition(0, 0), -1) == DevicePosition(0, 0)


def test_nothing_to_draw() -> None:
    assert FloorPlan([], 80).lines == []
