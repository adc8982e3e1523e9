"""KEP-4816 ranks the results of all nodes: a better alternative is not missed in a large cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from allot.api.claims import ResourceClaim
from allot.api.slices import ResourceSlice
from allot.features import DEFAULTS, FeatureGates
from allot.rules import ALTERNATIVES_ON_ALL_NODES, RuleSet
from allot.scheduler.configuration import DEFAULT_WEIGHTS
from allot.scheduler.core.decisions import Chosen
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.registry import PluginRegistry
from allot.testing.builders import (
    DRIVER,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_alternative,
)
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import NAME, Bench
from tests.unit.scheduler.state.objects import a_node_facts

MODEL = f'device.attributes["{DRIVER}"].model == '
SCORED = (
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "PodTopologySpread",
    "ImageLocality",
)


def a_preference(number: int, *models: str) -> ResourceClaim:
    """A claim for a GPU of one of these models, the best first."""
    alternatives = tuple(
        an_alternative(model.lower(), selectors=(a_selector(f'{MODEL}"{model}"'),))
        for model in models
    )
    return a_stored_claim(f"claim-{number}", a_request("gpu", first_available=alternatives))


def a_gpu_node(number: int, model: str, *, has_serials: bool) -> ResourceSlice:
    """One GPU; with serial numbers no node looks like another."""
    own: dict[str, bool | int | str] = {"serial": number} if has_serials else {}
    device = a_device("gpu-0", {"model": model, **own})
    return a_slice(device, name=f"node-{number:04}", node=f"node-{number:04}")


class LargeCluster:
    """Nodes with a GPU each, judged by the plugins that score by default."""

    def __init__(
        self,
        models: Sequence[str],
        claims: Sequence[ResourceClaim],
        *,
        gates: FeatureGates = DEFAULTS,
        has_serials: bool = False,
        percentage: int = 0,
    ) -> None:
        self.bench = Bench(
            *claims,
            nodes=[a_node_facts(f"node-{number:04}") for number in range(len(models))],
            slices=[
                a_gpu_node(number, model, has_serials=has_serials)
                for number, model in enumerate(models)
            ],
            gates=gates,
        )
        bench = self.bench
        handle = Handle(gates, bench.cluster, bench.tracker, bench.devices)
        registry = PluginRegistry()
        plugins = [registry[name].factory({}, handle) for name in SCORED]
        profile = Profile(
            "default-scheduler",
            [*plugins, bench.plugin],
            DEFAULT_WEIGHTS,
            percentage_of_nodes_to_score=percentage,
        )
        self.cycle = SchedulingCycle(profile, bench.cluster)

    def schedule(self, number: int) -> tuple[str, int]:
        """What the pod with the claim of this number got, and how many nodes were compared for it."""
        pod = a_pod_with_claims(f"claim-{number}", pod=f"pod-{number}")
        decision = self.cycle.decide(pod)
        assert isinstance(decision, Chosen)
        self.bench.cluster.assume_pod(pod, decision.node_name)
        assert self.bench.plugin.reserve(decision.state, pod, decision.node_name).is_success
        (claim,) = decision.state[NAME].reserved
        assert claim.status.allocation is not None
        (result,) = claim.status.allocation.devices.results
        return result.request, decision.feasible


def scattered(nodes: int, every: int) -> list[str]:
    return ["B200" if number % every == every - 1 else "A100" for number in range(nodes)]


def first_last(nodes: int, better: int) -> list[str]:
    """All the better ones at the end, where a sample that begins at the front does not get to."""
    return ["A100"] * (nodes - better) + ["B200"] * better


@pytest.mark.parametrize(
    ("models", "has_serials"),
    [
        pytest.param(scattered(301, 10), False, id="301-alike"),
        pytest.param(first_last(301, 30), False, id="301-alike-better-ones-last"),
        pytest.param(scattered(500, 10), True, id="500-that-all-differ"),
        pytest.param(first_last(500, 30), True, id="500-that-all-differ-better-ones-last"),
    ],
)
def test_every_pod_gets_the_better_device(models: list[str], has_serials: bool) -> None:
    claims = [a_preference(number, "B200", "A100") for number in range(20)]
    cluster = LargeCluster(models, claims, has_serials=has_serials)

    got = Counter(cluster.schedule(number)[0] for number in range(20))

    assert got == {"gpu/b200": 20}


def test_with_the_rules_of_kubernetes_a_sample_is_compared() -> None:
    claims = [a_preference(number, "B200", "A100") for number in range(2)]
    cluster = LargeCluster(first_last(301, 30), claims, gates=DEFAULTS.with_rules(RuleSet.V1_38))

    assert cluster.schedule(0) == ("gpu/a100", 144)


def test_a_percentage_that_is_set_holds() -> None:
    cluster = LargeCluster(first_last(301, 30), [a_preference(0, "B200", "A100")], percentage=40)

    assert cluster.schedule(0) == ("gpu/a100", 120)


def test_pods_without_alternatives_are_satisfied_with_a_sample() -> None:
    cluster = LargeCluster(["A100"] * 301, [a_stored_claim("claim-0")])

    assert cluster.schedule(0) == ("gpu", 144)


@pytest.mark.parametrize("has_serials", [False, True], ids=["alike", "differ"])
def test_to_rank_all_nodes_is_not_to_search_all_nodes_again(has_serials: bool) -> None:
    """Before, a sample of 230 of 500 nodes moved on with every pod: three pods had every node searched."""
    claims = [a_preference(number, "B200", "A100") for number in range(20)]
    models = scattered(500, 10)

    def steps(gates: FeatureGates) -> tuple[int, int]:
        cluster = LargeCluster(models, claims, gates=gates, has_serials=has_serials)
        for number in range(20):
            cluster.schedule(number)
        return cluster.bench.plugin.allocations, cluster.cycle.evaluations

    searched, judged = steps(DEFAULTS)
    searched_before, judged_before = steps(DEFAULTS.switched({ALTERNATIVES_ON_ALL_NODES: False}))

    assert searched <= 1.2 * searched_before
    assert judged <= 1.2 * judged_before


def test_scores_are_looked_up_once_per_change_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [a_preference(number, "B200", "A100") for number in range(10)]
    cluster = LargeCluster(scattered(500, 10), claims, has_serials=True)
    asked = 0
    score = type(cluster.bench.plugin).score

    def counted(*args: object) -> int:
        nonlocal asked
        asked += 1
        return score(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(type(cluster.bench.plugin), "score", counted)
    for number in range(10):
        cluster.schedule(number)

    assert asked == 500
