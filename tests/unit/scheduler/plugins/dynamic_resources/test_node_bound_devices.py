"""A shared device that binds to a node can be claimed on two nodes: the second pod gets an event."""

from __future__ import annotations

import pytest

from allot.api.slices import ResourcePool, ResourceSlice
from allot.testing.builders import DRIVER, a_device, a_slice
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench


def a_fabric(*, binds_to_node: bool) -> ResourceSlice:
    device = a_device(
        "shared",
        allow_multiple_allocations=True,
        binds_to_node=binds_to_node,
    )
    return a_slice(
        device, name="fabric", node_name=None, all_nodes=True, pool=ResourcePool("fabric", 1, 1)
    )


@pytest.mark.parametrize(
    ("binds_to_node", "second_node", "warnings"),
    [
        pytest.param(
            True,
            "node-2",
            [
                (
                    f"device {DRIVER}/fabric/shared binds to a node: it is claimed on node node-2 "
                    "while claim default/first holds it on another node"
                )
            ],
            id="on-two-nodes",
        ),
        pytest.param(True, "node-1", [], id="on-one-node"),
        pytest.param(False, "node-2", [], id="it-does-not-bind"),
    ],
)
def test_a_device_that_is_claimed_on_two_nodes(
    binds_to_node: bool, second_node: str, warnings: list[str]
) -> None:
    bench = Bench(
        a_stored_claim("first"),
        a_stored_claim("second"),
        slices=[a_fabric(binds_to_node=binds_to_node)],
    )
    assert bench.reserve(a_pod_with_claims("first", pod="p"), "node-1").is_success
    bench.state = type(bench.state)()

    assert bench.reserve(a_pod_with_claims("second", pod="q"), second_node).is_success

    assert [note for _, note in bench.warnings] == warnings
