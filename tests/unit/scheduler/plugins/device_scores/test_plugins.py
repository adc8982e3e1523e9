"""Scores beyond Kubernetes: which node each of them prefers, in clusters small enough to see why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.slices import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.questions.simulation import simulate
from allot.scheduler.configuration import SchedulerConfiguration, read_configuration
from allot.scheduler.framework.plugin_args import ConfigurationError
from allot.scheduler.plugins.device_scores import plugins
from allot.scheduler.plugins.device_scores.device_usage import NodeUsage, usage_on
from allot.scheduler.plugins.device_scores.plugins import lowest_is_best
from allot.scheduler.plugins.registry import PluginRegistry
from allot.testing.builders import (
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_request,
    a_slice,
    an_allocation,
    an_exact_request,
)
from allot.testing.observed_clusters import a_claim_template, observed

PACK, SPREAD = "DevicePacking", "DeviceSpreading"
WHOLE, STRANDED = "LeastFragmentation", "LeastStrandedCapacity"
NIC = "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"


def configuration(plugin: str, **args: Any) -> SchedulerConfiguration:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
                "pluginConfig": [{"name": plugin, "args": args}] if args else [],
            }
        ],
    }
    return read_configuration(document, PluginRegistry())


def gpus(node: str, number: int, **fields: Any) -> ResourceSlice:
    return a_slice(
        *(a_device(f"gpu-{index}", **fields) for index in range(number)), name=node, node=node
    )


def holding(node: str, *devices: str, **fields: Any) -> Any:
    """A claim that holds devices of a node."""
    driver = fields.get("driver", "")
    return a_claim(
        name=f"held-{node}{driver}", allocation=an_allocation(*devices, pool=node, **fields)
    )


def a_server(name: str, cpu: str = "64", memory: str = "256Gi") -> Any:
    amounts = {"cpu": cpu, "memory": memory, "pods": "100"}
    return a_node(name, status={"capacity": amounts, "allocatable": amounts})


def chosen(
    plugin: str,
    *objects: Any,
    gpus_wanted: int = 1,
    requests: Sequence[Any] = (),
    cpu: str = "1",
    args: Mapping[str, Any] | None = None,
) -> str:
    """The node that a pod gets."""
    claim = {"name": "gpu", "resourceClaimTemplateName": "wanted"}
    wanted = requests or [a_request(exactly=an_exact_request(count=gpus_wanted))]
    has_claim = gpus_wanted > 0
    pod = a_pod(
        containers=[{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
        resourceClaims=[claim] if has_claim else [],
    )
    cluster = observed(
        *objects,
        a_class(),
        a_class(NIC, f'device.driver == "{NIC}"'),
        a_claim_template("wanted", *wanted),
        pod,
        configuration=configuration(plugin, **(args or {})),
    )
    answer = simulate(cluster.with_inferred_nodes()).answer
    assert not answer.pending, answer.pending
    return answer.placed[0].node


THREE = (
    gpus("a", 4),
    gpus("b", 4),
    gpus("c", 4),
    holding("b", "gpu-0"),
    holding("c", "gpu-0", "gpu-1"),
)
"""Nodes with 4, 3 and 2 free devices."""


@pytest.mark.parametrize(
    ("plugin", "wanted", "node"),
    [
        pytest.param(PACK, 1, "c", id="pack"),
        pytest.param(PACK, 3, "b", id="pack-what-fits"),
        pytest.param(SPREAD, 1, "a", id="spread"),
        pytest.param(SPREAD, 4, "a", id="spread-what-fits"),
        pytest.param(WHOLE, 1, "c", id="keep-machines-whole"),
        pytest.param(WHOLE, 2, "c", id="fill-the-gap"),
        pytest.param(WHOLE, 3, "b", id="fill-the-larger-gap"),
    ],
)
def test_equal_machines(plugin: str, wanted: int, node: str) -> None:
    assert chosen(plugin, *THREE, gpus_wanted=wanted) == node


def test_machines_of_different_sizes() -> None:
    """Packing fills the fuller machine; a machine that is taken whole leaves no fragments."""
    small, large = gpus("small", 2), gpus("large", 8)

    assert chosen(WHOLE, small, large, gpus_wanted=2) == "small"
    assert chosen(PACK, small, large, gpus_wanted=2) == "small"
    assert chosen(SPREAD, small, large, gpus_wanted=2) == "large"


def pairs(node: str) -> list[ResourceSlice]:
    """Two GPUs, each with a network card on its PCIe root."""
    roots = ("pci0000:00", "pci0000:40")
    cards = [a_device(f"nic-{index}", {ROOT: root}) for index, root in enumerate(roots)]
    devices = [a_device(f"gpu-{index}", {ROOT: root}) for index, root in enumerate(roots)]
    pool = ResourcePool(node, 1, 1)
    return [
        a_slice(*devices, name=f"{node}-gpus", node=node),
        a_slice(*cards, name=f"{node}-nics", node=node, driver=NIC, pool=pool),
    ]


def test_matching_pairs_stay_free() -> None:
    """Both nodes have two GPUs and one card free; on `a` the GPU that a pod gets has no card any more."""
    objects = (*pairs("a"), *pairs("b"))
    held = (holding("a", "nic-0", driver=NIC), holding("b", "nic-1", driver=NIC))

    assert chosen(WHOLE, *objects, *held) == "a"
    swapped = (holding("a", "nic-1", driver=NIC), holding("b", "nic-0", driver=NIC))
    assert chosen(WHOLE, *objects, *swapped) == "b"


def test_pairs_by_another_attribute() -> None:
    """Without the attribute the nodes are equal, and the first one is taken."""
    objects = (*pairs("a"), *pairs("b"))
    held = (holding("a", "nic-1", driver=NIC), holding("b", "nic-0", driver=NIC))

    assert chosen(WHOLE, *objects, *held, args={"matchAttributes": []}) == "a"
    assert chosen(WHOLE, *objects, *held, args={"matchAttributes": [ROOT]}) == "b"


def partitions(node: str) -> list[ResourceSlice]:
    """A GPU that is available whole, or in halves."""
    pool = ResourcePool(node, 1, 2)

    def part(name: str, memory: str) -> Device:
        amounts = {"memory": Counter(Quantity.parse(memory))}
        uses = DeviceCounterConsumption(counter_set="gpu", counters=amounts)
        return a_device(name, {"size": memory}, consumes_counters=(uses,))

    counters = CounterSet("gpu", {"memory": Counter(Quantity.parse("80Gi"))})
    parts = (part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi"))
    return [
        a_slice(name=f"{node}-0", node=node, pool=pool, devices=None, shared_counters=(counters,)),
        a_slice(*parts, name=f"{node}-1", node=node, pool=pool),
    ]


@pytest.mark.parametrize("plugin", [PACK, WHOLE])
def test_partitions_of_a_gpu_that_is_in_use(plugin: str) -> None:
    half = an_exact_request(
        selectors=a_class("x", 'device.attributes["gpu.example.com"].size == "40Gi"').spec.selectors
    )
    wanted = [a_request(exactly=half)]
    objects = (*partitions("a"), *partitions("b"), holding("b", "half-0"))

    assert chosen(plugin, *objects, requests=wanted) == "b"
    assert chosen(SPREAD, *objects, requests=wanted) == "a"


def test_devices_without_cpu_are_stranded() -> None:
    """A pod with few devices and much CPU goes where devices are scarce; one without devices where there are none."""
    objects = (
        a_server("gpus"),
        a_server("few"),
        a_server("plain"),
        gpus("gpus", 8),
        gpus("few", 2),
    )

    assert chosen(STRANDED, *objects, gpus_wanted=0, cpu="32") == "plain"
    assert chosen(STRANDED, *objects, gpus_wanted=1, cpu="32") == "few"


def test_what_is_stranded_already_does_not_count() -> None:
    """On `a` no CPU is left for the free devices: a pod without CPU takes one of those."""
    busy = a_pod(
        "busy",
        node="a",
        phase="Running",
        containers=[{"name": "m", "resources": {"requests": {"cpu": "64"}}}],
    )
    objects = (a_server("a", cpu="64"), a_server("b", cpu="64"), gpus("a", 4), gpus("b", 4), busy)

    assert chosen(STRANDED, *objects, cpu="0") == "a"


def test_tainted_devices_do_not_count() -> None:
    """Of `a` all devices that can be used are free, although half of its devices are tainted and held."""
    taint = (DeviceTaint(key="example.com/broken", effect="NoSchedule"),)
    broken = a_slice(
        a_device("gpu-0", taints=taint), a_device("gpu-1", taints=taint), a_device("gpu-2"), a_device("gpu-3"),
        name="a", node="a",
    )  # fmt: skip
    objects = (broken, holding("a", "gpu-0", "gpu-1"), gpus("b", 4), holding("b", "gpu-0"))

    assert (
        chosen(PACK, *objects) == "a"
    )  # 1 of 2 is more than 2 of 4 … and comes first among equals
    assert chosen(PACK, *objects, gpus_wanted=2) == "a"
    assert chosen(SPREAD, *objects, gpus_wanted=2) == "b"


# --- scores as such ---


@pytest.mark.parametrize(
    ("raw", "scores"),
    [([], []), ([5], [100]), ([3, 3], [100, 100]), ([-2, 0, 2], [100, 50, 0]), ([7, 0], [0, 100])],
)
def test_lowest_is_best(raw: list[int], scores: list[int]) -> None:
    lowest_is_best(raw)

    assert raw == scores


@pytest.mark.parametrize("value", ["pcieRoot", ["pcieRoot"], [3]])
def test_bad_arguments(value: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"LeastFragmentationArgs\.matchAttributes: .*such as resource"
    ):
        chosen(WHOLE, gpus("a", 1), args={"matchAttributes": value})


# --- off, and cached ---

NAMES = (PACK, SPREAD, WHOLE, STRANDED)


def test_nothing_is_computed_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(plugins, "usage_on", fail)
    cluster = observed(*THREE, a_class(), a_claim_template("wanted"), *pods(4))

    answer = simulate(cluster.with_inferred_nodes()).answer

    assert len(answer.placed) == 4
    assert not set(NAMES) & set(SchedulerConfiguration().profiles[0].plugins)


@pytest.mark.parametrize("plugin", [PACK, WHOLE, STRANDED])
def test_equal_nodes_are_computed_once(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And for the next equal pod only the node that changed."""
    computed: list[NodeUsage] = []

    def counting(*arguments: Any) -> NodeUsage:
        computed.append(usage_on(*arguments))
        return computed[-1]

    monkeypatch.setattr(plugins, "usage_on", counting)
    nodes = [gpus(f"node-{number:02}", 8) for number in range(30)]
    cluster = observed(
        *nodes, a_class(), a_claim_template("wanted"), *pods(8), configuration=configuration(plugin)
    )

    answer = simulate(cluster.with_inferred_nodes()).answer

    assert len(answer.placed) == 8
    assert len(computed) <= 8


def pods(number: int) -> list[Any]:
    claim = {"name": "gpu", "resourceClaimTemplateName": "wanted"}
    return [
        a_pod(f"pod-{index}", containers=[{"name": "main"}], resourceClaims=[claim])
        for index in range(number)
    ]
