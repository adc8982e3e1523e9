from __future__ import annotations

import pytest

from allot.api.resource import ALL
from allot.api.slices import ResourcePool
from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources import skipped_alternatives
from allot.scheduler.plugins.dynamic_resources.scores import raw_score
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import (
    DRIVER,
    a_class,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_alternative,
)
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.state.objects import a_node_facts

POD = a_pod_with_claims("claim")
V1_38 = DEFAULTS.with_rules(RuleSet.V1_38)
MISSING = an_alternative("best", device_class_name="missing")
PRESENT = an_alternative("good")
INCOMPLETE = a_slice(
    a_device("other-0"),
    name="other",
    node="node-1",
    driver="other.example.com",
    pool=ResourcePool("other", 1, 2),
)


def got(bench: Bench, pod: PodInfo = POD, node: str = "node-1") -> list[str]:
    """The requests that the devices of a pod on a node are for."""
    assert bench.reserve(pod, node).is_success
    (claim,) = bench.known.reserved
    assert claim.status.allocation is not None
    return [result.request for result in claim.status.allocation.devices.results]


# --- classes ---


def test_an_alternative_without_its_class_is_skipped_with_an_event() -> None:
    bench = Bench(a_stored_claim("claim", a_request("gpu", first_available=(MISSING, PRESENT))))

    assert got(bench) == ["gpu/good"]
    assert [note for _, note in bench.warnings] == [
        (
            "device class missing does not exist: skipping alternative gpu/best of claim claim; "
            "kube-scheduler v1.38 would leave the pod pending (rule SkipMissingClasses)"
        )
    ]


def test_the_score_counts_the_alternatives_that_are_skipped() -> None:
    bench = Bench(a_stored_claim("claim", a_request("gpu", first_available=(MISSING, PRESENT))))
    bench.filter(POD)

    scores = {bench.plugin.score(bench.state, POD, node) for node in bench.cluster.nodes}
    assert scores == {raw_score(7, is_ready=True)}


def test_each_pod_gets_one_event_per_missing_class() -> None:
    lost = an_alternative("lost", device_class_name="lost")
    request = a_request("gpu", first_available=(MISSING, lost, PRESENT))
    bench = Bench(a_stored_claim("claim", request), a_stored_claim("other", request))
    both = a_pod_with_claims("claim", "other")

    for pod in (both, both, a_pod_with_claims("other", pod="second")):
        assert bench.pre_filter(pod).is_success

    named = [note.split()[2] for _, note in bench.warnings]
    assert named == ["missing", "lost"] * 2


def test_what_was_said_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipped_alternatives, "MAX_REMEMBERED", 2)
    bench = Bench(a_stored_claim("claim", a_request("gpu", first_available=(MISSING, PRESENT))))
    pods = [a_pod_with_claims("claim", pod=f"pod-{number}") for number in range(3)]

    for pod in (*pods, pods[2], pods[0]):
        bench.pre_filter(pod)

    assert len(bench.warnings) == 4


def test_an_alternative_comes_back_with_its_class() -> None:
    bench = Bench(a_stored_claim("claim", a_request("gpu", first_available=(MISSING, PRESENT))))
    bench.filter(POD)

    bench.devices.put_class(a_class("missing"))

    assert got(bench) == ["gpu/best"]


# --- pools ---


def all_or_one() -> Bench:
    everything = an_alternative("all", allocation_mode=ALL, count=0)
    claim = a_stored_claim("claim", a_request("gpu", first_available=(everything, PRESENT)))
    own = [a_slice(name=f"node-{number}", node=f"node-{number}") for number in (1, 2)]
    return Bench(claim, slices=[*own, INCOMPLETE])


def test_mode_all_is_skipped_where_a_pool_is_incomplete() -> None:
    bench = all_or_one()

    assert got(bench) == ["gpu/good"]
    assert [note for _, note in bench.warnings] == [
        (
            "on node node-1, alternative gpu/all is skipped: claim default/claim, request all: asks for "
            "all devices, but resource pool other.example.com/other is currently being updated; "
            "kube-scheduler v1.38 would leave the pod pending (rule SkipIncompletePools)"
        )
    ]


def test_mode_all_is_tried_on_other_nodes() -> None:
    bench = all_or_one()

    assert got(bench, node="node-2") == ["gpu/all"]
    assert bench.warnings == []


def test_a_node_without_another_alternative_does_not_fit() -> None:
    everything = an_alternative("all", allocation_mode=ALL, count=0)
    claim = a_stored_claim("claim", a_request("gpu", first_available=(everything,)))
    own = [a_slice(name=f"node-{number}", node=f"node-{number}") for number in (1, 2)]
    bench = Bench(claim, slices=[*own, INCOMPLETE])

    statuses = bench.filter(POD)

    assert statuses["node-1"].message == "cannot allocate all claims"
    assert statuses["node-2"].is_success


@pytest.mark.parametrize("gates", [DEFAULTS, V1_38], ids=["seeds", "v1.38"])
def test_an_error_of_an_expression_still_ends_the_attempt(gates: object) -> None:
    wrong = a_selector(f'device.attributes["{DRIVER}"].nothing == "x"')
    everything = an_alternative("all", allocation_mode=ALL, count=0, selectors=(wrong,))
    claim = a_stored_claim("claim", a_request("gpu", first_available=(everything, PRESENT)))
    bench = Bench(claim, nodes=[a_node_facts("node-1")], gates=gates)  # type: ignore[arg-type]

    status = bench.filter(POD)["node-1"]

    assert status.code is Code.ERROR
    assert "no such key: nothing" in status.message


def test_with_the_rules_of_kubernetes_an_incomplete_pool_ends_the_attempt() -> None:
    everything = an_alternative("all", allocation_mode=ALL, count=0)
    claim = a_stored_claim("claim", a_request("gpu", first_available=(everything, PRESENT)))
    own = a_slice(name="node-1", node="node-1")
    bench = Bench(claim, nodes=[a_node_facts("node-1")], slices=[own, INCOMPLETE], gates=V1_38)

    status = bench.filter(POD)["node-1"]

    assert status.code is Code.ERROR
    assert status.message.endswith("other.example.com/other is currently being updated")
