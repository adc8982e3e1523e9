from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.validation import csi_nodes
from allot.validation.csi_nodes import validate_csi_node, validate_csi_node_update
from allot.validation.parts import text

DRIVER = {"name": "d.example.com", "nodeID": "n", "topologyKeys": ["a"]}


def node(*drivers: dict[str, Any]) -> RawObject:
    return RawObject({"metadata": {"name": "n"}, "spec": {"drivers": list(drivers)}})


@pytest.mark.parametrize(
    ("driver", "wrong"),
    [
        pytest.param(DRIVER, [], id="good"),
        pytest.param({}, ["spec.drivers[0].name", "spec.drivers[0].nodeID"], id="empty"),
        pytest.param(DRIVER | {"name": "D.example.com"}, [], id="capital"),
        pytest.param(DRIVER | {"name": "x" * 64}, ["spec.drivers[0].name"], id="long-name"),
        pytest.param(DRIVER | {"nodeID": "x" * 257}, ["spec.drivers[0].nodeID"], id="long-id"),
        pytest.param(
            DRIVER | {"allocatable": {"count": -1}},
            ["spec.drivers[0].allocatable.count"],
            id="count",
        ),
        pytest.param(DRIVER | {"topologyKeys": ["a", "a"]}, ["spec.drivers[0]"], id="same-keys"),
    ],
)
def test_drivers(driver: dict[str, Any], wrong: list[str]) -> None:
    assert [str(error.path) for error in validate_csi_node(node(driver))] == wrong


def test_names_are_unique() -> None:
    (error,) = validate_csi_node(node(DRIVER, DRIVER))

    assert str(error) == 'spec.drivers[1].name: Duplicate value: "d.example.com"'


def test_drivers_keep_their_node_but_not_their_limit() -> None:
    limited = DRIVER | {"allocatable": {"count": 5}}

    assert not list(validate_csi_node_update(node(limited), node(DRIVER)))
    (error,) = validate_csi_node_update(node(limited | {"nodeID": "m"}), node(DRIVER))
    assert str(error).endswith('"TopologyKeys":["a"],"Allocatable":null}: field is immutable')


def test_very_many_drivers_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = 0

    def counting(driver: Any, field: str) -> str:
        nonlocal read
        read += 1
        return text(driver, field)

    monkeypatch.setattr(csi_nodes, "text", counting)
    many = node(*(DRIVER | {"name": f"d{number}"} for number in range(1_000)))
    assert not list(validate_csi_node_update(many, many))
    assert read <= 5_000
