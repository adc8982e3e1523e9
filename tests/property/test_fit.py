"""`allot fit` counts exactly what scheduling one pod after the other places."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.core import Pod
from allot.questions.cluster_model import ClusterModel
from allot.questions.fit import FitItem, fit
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pod_templates import PodTemplate
from allot.testing.builders import (
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_request,
    a_selector,
    a_slice,
    an_allocation,
    an_alternative,
    an_exact_request,
)
from allot.testing.observed_clusters import a_claim_template, observed

MODELS = ("small", "large")
ON_MODEL = 'device.attributes["gpu.example.com"].model == "{}"'


@st.composite
def requests(draw: st.DrawFn) -> Any:
    def fields() -> dict[str, Any]:
        model = draw(st.sampled_from([None, *MODELS]))
        chosen = {"selectors": (a_selector(ON_MODEL.format(model)),)} if model else {}
        return {"count": draw(st.integers(1, 2)), **chosen}

    if draw(st.booleans()):
        return a_request(exactly=an_exact_request(**fields()))
    return a_request(
        first_available=(an_alternative("first", **fields()), an_alternative("second", **fields()))
    )


@st.composite
def clusters(draw: st.DrawFn) -> ObservedCluster:
    objects: list[Any] = [a_class(), a_claim_template("gpus", draw(requests()))]
    for number in range(draw(st.integers(1, 4))):
        name = f"node-{number}"
        amounts = {
            "cpu": str(draw(st.integers(1, 4))),
            "memory": "8Gi",
            "pods": str(draw(st.integers(1, 5))),
        }
        taints = draw(st.sampled_from([(), (), ("broken:NoSchedule",)]))
        objects.append(
            a_node(name, taints=taints, status={"allocatable": amounts, "capacity": amounts})
        )
        models = draw(st.lists(st.sampled_from(MODELS), max_size=4))
        devices = [a_device(f"gpu-{i}", {"model": model}) for i, model in enumerate(models)]
        shared = draw(st.integers(0, 7)) == 0
        where = {"node_name": None, "all_nodes": True} if shared else {}
        objects.append(a_slice(*devices, name=name, node=name, **where) if devices else a_class())
        is_held = draw(st.booleans())
        if devices and is_held:
            held = an_allocation("gpu-0", pool=name)
            objects.append(a_claim(name=f"held-{number}", allocation=held))
    return observed(*objects)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    spec: dict[str, Any] = {
        "containers": [
            {"name": "main", "resources": {"requests": {"cpu": draw(st.sampled_from(["0", "1"]))}}}
        ],
    }
    if draw(st.integers(0, 3)):
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    if draw(st.integers(0, 4)) == 0:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if draw(st.integers(0, 4)) == 0:
        term = {
            "labelSelector": {"matchLabels": {"app": "x"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    return a_pod("copy", metadata={"labels": {"app": "x"}}, **spec)


def scheduled_one_by_one(cluster: ObservedCluster, pod: Pod) -> tuple[int, dict[str, int]]:
    """Create pods until one stays pending."""
    model = ClusterModel(cluster)
    for number in range(1, 100):
        metadata = {**pod.data["metadata"], "name": f"copy-{number}"}
        model.create_pod(Pod({**pod.data, "metadata": metadata}))
        model.settle()
        if len(model.placements) < number:
            break
    nodes: dict[str, int] = {}
    for placement in model.placements:
        nodes[placement.node_name] = nodes.get(placement.node_name, 0) + 1
    return len(model.placements), dict(sorted(nodes.items()))


@settings(max_examples=120)
@given(clusters(), pods())
def test_fit_agrees_with_repeated_scheduling(cluster: ObservedCluster, pod: Pod) -> None:
    number, nodes = scheduled_one_by_one(cluster, pod)

    answer = fit(cluster, [FitItem(PodTemplate("pod/copy", pod, 1))])

    assert answer.rounds == number
    assert answer.items[0].nodes == nodes


@settings(max_examples=40)
@given(clusters(), pods(), st.integers(0, 6))
def test_a_limit_ends_the_count(cluster: ObservedCluster, pod: Pod, limit: int) -> None:
    number, _ = scheduled_one_by_one(cluster, pod)

    answer = fit(cluster, [FitItem(PodTemplate("pod/copy", pod, 1))], limit=limit)

    assert answer.rounds == min(number, limit)
    assert limit == number or answer.is_limited == (limit < number)


@settings(max_examples=40)
@given(clusters(), pods(), pods(), st.integers(1, 2))
def test_a_mix_is_counted_in_whole_rounds(
    cluster: ObservedCluster, pod: Pod, other: Pod, weight: int
) -> None:
    """Scheduled in turns: `weight` of the one, then one of the other."""
    other = other.with_value("other", "metadata", "name")
    items = [
        FitItem(PodTemplate("pod/copy", pod, 1), weight),
        FitItem(PodTemplate("pod/other", other, 1)),
    ]

    answer = fit(cluster, items)

    model = ClusterModel(cluster)
    rounds = _rounds(model, [pod] * weight + [other])
    assert answer.rounds == rounds


def _rounds(model: ClusterModel, turn: list[Pod]) -> int:
    for number in range(100):
        for index, pod in enumerate(turn):
            before = len(model.placements)
            metadata = {**pod.data["metadata"], "name": f"p-{number}-{index}"}
            model.create_pod(Pod({**pod.data, "metadata": metadata}))
            model.settle()
            if len(model.placements) == before:
                return number
    raise AssertionError("it never ends")
