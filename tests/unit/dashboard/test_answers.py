"""Answers of the page: the same as those of the commands, with the numbers of devices to light up."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.dashboard import answers
from allot.dashboard.answers import AskedChange
from allot.dashboard.children import AnswerError, encode
from allot.dashboard.floor_plan import FloorPlan
from allot.questions.observed_cluster import ObservedCluster
from allot.testing.builders import (
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    an_allocation,
)
from allot.testing.observed_clusters import observed

A_NODE = a_node().with_value({"cpu": "8", "memory": "8Gi", "pods": "110"}, "status", "allocatable")
SLICE = a_slice(a_device("a", {"model": "H100"}), a_device("b", {"model": "A100"}))


def a_floor(cluster: ObservedCluster) -> FloorPlan:
    floor = FloorPlan(cluster.gates)
    kinds: tuple[Resource[Any], ...] = (resources.RESOURCE_SLICES, resources.RESOURCE_CLAIMS)
    for resource in kinds:
        for obj in cluster.objects.of(resource):
            floor.changed(resource, None, obj)
    floor.refresh()
    return floor


def name_of(floor: FloorPlan, number: int) -> str:
    places = (place for plan in floor.plans() for place in plan.places)
    return next(place.name for place in places if place.number == number)


def a_full_cluster() -> ObservedCluster:
    pod = a_pod().with_value(
        [{"name": "gpu", "resourceClaimName": "mine"}], "spec", "resourceClaims"
    )
    return observed(
        A_NODE, SLICE, a_class(), a_claim(allocation=an_allocation("a", "b")),
        a_claim(name="mine"), pod,
    )  # fmt: skip


def expression(text: str, **options: Any) -> dict[str, Any]:
    cluster = observed(a_node(), SLICE)
    options = {"is_derived": False} | options
    return answers.try_expression(cluster, a_floor(cluster), text, **options)


def test_an_expression_has_a_value_on_every_device() -> None:
    found = expression('device.attributes["gpu.example.com"].model == "H100"')

    assert found["type"] == "bool"
    assert [found["values"][value] for _, value, _ in found["devices"]] == ["true", "false"]
    assert found["maxCost"] < found["costLimit"]
    encode(found)


def test_a_derived_attribute_groups_devices() -> None:
    found = expression('device.attributes["gpu.example.com"].model', is_derived=True)

    assert found["values"] == ['"H100"', '"A100"']


def test_an_expression_that_does_not_compile_has_a_caret() -> None:
    found = expression("device.atributes")

    assert "^" in found["error"]
    assert "attributes" in found["advice"]


def test_an_expression_that_fails_on_devices() -> None:
    found = expression('device.attributes["gpu.example.com"].nope == "x"')

    assert sum(found["errors"].values()) == 2
    assert all(value.startswith("error: ") for value in found["values"])


def test_an_expression_that_is_too_long() -> None:
    with pytest.raises(AnswerError, match="longer than 10240"):
        expression("true || " * 5_000)


def test_pending_pods_have_causes() -> None:
    found = answers.pending(a_full_cluster())

    assert found.pods == 1
    assert found.causes[0].example == "default/pod"


def test_an_explanation_names_the_devices_concerned() -> None:
    cluster = a_full_cluster()
    floor = a_floor(cluster)

    found = answers.explain(cluster, floor, "pod", ObjectKey("default", "pod"))

    assert {name_of(floor, number) for number in found["devices"]} == {"a", "b"}
    assert found["verdict"]
    encode(found)


def test_an_explanation_of_what_does_not_exist() -> None:
    cluster = observed()

    for kind in ("pod", "claim"):
        with pytest.raises(AnswerError, match="does not exist"):
            answers.explain(cluster, a_floor(cluster), kind, ObjectKey("default", "x"))


def test_what_if_shows_the_floor_plan_after() -> None:
    cluster = a_full_cluster()
    floor = a_floor(cluster)

    found = answers.what_if(cluster, floor, [AskedChange("remove", "claim/default/claim")], "")

    assert found["answer"].counts == {"starts": 1}
    changed = {name_of(floor, number) for number, _ in found["floor"].cells}
    assert changed == {"a", "b"}


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        pytest.param("add", "/etc/passwd", "no profile /etc/passwd", id="a-file"),
        pytest.param("add", "gpu-server=999999", "expected a number of nodes", id="too-many"),
        pytest.param("add", "gpu-server=x", "expected a number of nodes", id="no-number"),
        pytest.param("drain", "nope", "no Node nope", id="no-node"),
        pytest.param("scale", "x", "expected kind/NAME=N", id="not-a-scale"),
        pytest.param("manifest", "kind: [", "<text>", id="not-yaml"),
        pytest.param("manifest", "kind: Secret\napiVersion: v1", "no object", id="nothing-in-it"),
        pytest.param("destroy", "x", "not a change", id="unknown"),
    ],
)
def test_changes_that_cannot_be_made(kind: str, value: str, problem: str) -> None:
    cluster = observed(a_node(), SLICE)

    with pytest.raises(AnswerError, match=problem):
        answers.what_if(cluster, a_floor(cluster), [AskedChange(kind, value)], "default")


def test_hardware_is_added() -> None:
    cluster = observed(a_node(), SLICE)

    found = answers.what_if(cluster, a_floor(cluster), [AskedChange("add", "gpu-server=2")], "")

    assert {plan.node for plan in found["floor"].pools} == {
        "gpu-server-new-0",
        "gpu-server-new-1",
    }
