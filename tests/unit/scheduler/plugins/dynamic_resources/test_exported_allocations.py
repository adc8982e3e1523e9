"""What one process finds out about devices, and what another makes of it when they have changed meanwhile."""

from __future__ import annotations

import pickle

import pytest

from allot.api.claims import DeviceRequest
from allot.scheduler.plugins.dynamic_resources.filter_results import ExportedAllocations
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_device, a_request, a_slice, an_allocation, an_exact_request
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench

POD = a_pod_with_claims("claim")
TWO_OF_FOUR = a_request("r", an_exact_request(count=2))
NINE = a_request("r", an_exact_request(count=9))


def a_bench(request: DeviceRequest) -> Bench:
    devices = [a_device(f"gpu-{number}") for number in range(4)]
    claims = (a_stored_claim("claim", request), a_stored_claim("other"))
    slices = [a_slice(*devices, name="node-1", node="node-1")]
    return Bench(*claims, slices=slices)


def found_elsewhere(bench: Bench, node: str = "node-1") -> ExportedAllocations:
    """What a copy of the bench finds out, on its way through a pipe."""
    bench.filter(POD)
    exported = bench.plugin.export_results(bench.state, bench.cluster.node(node))
    assert exported is not None
    travelled: ExportedAllocations = pickle.loads(pickle.dumps(exported))  # noqa: S301
    return travelled


def take(bench: Bench, *devices: str) -> None:
    bench.tracker.put(
        a_stored_claim("other", version=2, allocation=an_allocation(*devices, node="node-1"))
    )


def imported(bench: Bench, exported: ExportedAllocations, pod: PodInfo = POD) -> int:
    """Take it over, ask about the pod again, and count the searches that were needed."""
    bench.plugin.import_results(exported, pod, bench.cluster.node, with_timeouts=True)
    before = bench.plugin.allocations
    bench.filter(pod)
    return bench.plugin.allocations - before


def test_answers_are_taken_over() -> None:
    exported = found_elsewhere(a_bench(TWO_OF_FOUR))

    assert imported(a_bench(TWO_OF_FOUR), exported) == 0


def two_nodes_alike() -> Bench:
    devices = [a_device(f"gpu-{number}") for number in range(4)]
    slices = [a_slice(*devices, name=node, node=node) for node in ("node-1", "node-2")]
    return Bench(a_stored_claim("claim", TWO_OF_FOUR), slices=slices)


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_devices_of_the_chosen_node_are_taken_over(node: str) -> None:
    """Also if the search was on another node that is like it."""
    exported = found_elsewhere(two_nodes_alike(), node)
    bench = two_nodes_alike()
    bench.plugin.import_results(exported, POD, bench.cluster.node, with_timeouts=True)

    assert bench.reserve(POD, node).is_success
    assert bench.plugin.allocations == 0


def test_devices_that_are_still_free_can_still_be_had() -> None:
    exported = found_elsewhere(a_bench(TWO_OF_FOUR))
    bench = a_bench(TWO_OF_FOUR)
    take(bench, "gpu-3")

    assert imported(bench, exported) == 0
    reserved = bench.plugin.reserve(bench.state, POD, "node-1")
    assert reserved.is_success
    allocation = bench.state["DynamicResources"].reserved[0].status.allocation
    assert [device.device for device in allocation.devices.results] == ["gpu-0", "gpu-1"]


def test_devices_that_are_taken_are_searched_for_again() -> None:
    exported = found_elsewhere(a_bench(TWO_OF_FOUR))
    bench = a_bench(TWO_OF_FOUR)
    take(bench, "gpu-0")

    assert imported(bench, exported) >= 1
    assert bench.plugin.reserve(bench.state, POD, "node-1").is_success


def test_a_refusal_counts_for_the_pod_although_devices_changed() -> None:
    exported = found_elsewhere(a_bench(NINE))
    bench = a_bench(NINE)
    take(bench, "gpu-0")

    assert imported(bench, exported) == 0
    key = bench.plugin.equivalence_key(bench.state, POD)
    bench.plugin.forget_stale(exported)
    before = bench.plugin.allocations
    bench.filter(POD)

    assert bench.plugin.allocations > before, "for others it does not count"
    assert bench.plugin.equivalence_key(bench.state, POD) != key, "nor what was concluded from it"
