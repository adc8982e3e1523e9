"""Every story in `examples/` works in the cluster of `./scripts/up`, and `allot demo` plays the best of them.

One cluster for all of them, in virtual time: each story leaves it as it was.
"""

from __future__ import annotations

import asyncio
import re
import runpy
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from allot.api.base import replace
from allot.api.claims import AllocatedDeviceStatus, NetworkDeviceData
from allot.api.identities import ObjectKey
from allot.cli.demo import play
from allot.cli.demo.steps import Apply, Get, Scene, Story, Until
from allot.cli.demo.stories import NAMESPACE, STORIES
from allot.cli.errors import CommandError
from allot.cli.examples import examples_directory
from allot.cli.last_start import EXAMPLE_HARDWARE
from allot.client.client import Client
from allot.client.resources import (
    DEVICE_TAINT_RULES,
    NAMESPACES,
    RESOURCE_CLAIMS,
    RESOURCE_POOL_STATUS_REQUESTS,
)
from allot.controllers.binding import Attacher, BindingController, TaintRules
from allot.controllers.binding.simulation import SimulatedAttacher, parse_script
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster

EXAMPLES = Path(__file__).parents[2] / "examples"
FABRIC = "fabric.example.com"
KUBECONFIG = Path("kubeconfig")


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings(EXAMPLE_HARDWARE)) as running:
        yield running


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def devices(claim: dict[str, Any]) -> list[str]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return [result["device"] for result in (allocation.get("devices") or {}).get("results", ())]


def got(claim: dict[str, Any]) -> str:
    """The request, or the alternative, of the first device."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or [{}]
    return str(results[0].get("request", ""))


def consumed(claims: Sequence[dict[str, Any]], capacity: str) -> list[str]:
    """How much of a capacity each result has, in all claims that are allocated."""
    allocations = [claim.get("status", {}).get("allocation") or {} for claim in claims]
    return [
        result["consumedCapacity"][capacity]
        for allocation in allocations
        for result in (allocation.get("devices") or {}).get("results", ())
    ]


async def report_network(client: Client, name: str, address: str) -> None:
    """What a driver does when it has made the interface of a share."""
    claim = await client.get(RESOURCE_CLAIMS, ObjectKey("default", name))
    assert claim.status.allocation is not None
    [result] = claim.status.allocation.devices.results
    status = AllocatedDeviceStatus(
        driver=result.driver,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        network_data=NetworkDeviceData(interface_name="net1", ips=(address,)),
    )
    await client.update_status(
        RESOURCE_CLAIMS, replace(claim, status=replace(claim.status, devices=(status,)))
    )


class Played:
    """A story that was applied, and what came of it."""

    def __init__(self, cluster: VirtualTimeCluster, path: str) -> None:
        self.cluster = cluster
        self.documents = documents(EXAMPLES / path)
        cluster.apply(EXAMPLES / path)
        cluster.advance(30)
        self.pods = cluster.list("Pod", "default")
        self.claims = cluster.list("ResourceClaim", "default")

    @property
    def phases(self) -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods)

    def claim(self, name: str) -> dict[str, Any]:
        return next(claim for claim in self.claims if claim["metadata"]["name"] == name)

    def phase(self, pod: str) -> str:
        found = next(each for each in self.pods if each["metadata"]["name"] == pod)
        return str(found["status"]["phase"])

    def delete(self) -> None:
        for document in reversed(self.documents):  # devices and nodes come first, and go last
            kind, name = document["kind"], document["metadata"]["name"]
            if self.cluster.get(kind, name) is not None:
                self.cluster.delete(kind, name)

    def end(self) -> None:
        self.delete()
        self.cluster.advance(60)
        assert self.cluster.list("Pod", "default") == []
        assert self.cluster.list("ResourceClaim", "default") == []


@pytest.fixture
def played(cluster: VirtualTimeCluster, request: pytest.FixtureRequest) -> Iterator[Played]:
    story = Played(cluster, request.param)
    yield story
    story.end()


def story(path: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("played", [path], indirect=True)


@story("4816-prioritized-list/story-1.yaml")
def test_second_best_gpu(played: Played) -> None:
    assert played.phases == ["Running"]
    assert [got(claim) for claim in played.claims] == ["gpu/previous"]
    assert "config" not in played.claims[0]["status"]["allocation"]["devices"]


@pytest.mark.parametrize(
    ("models", "alternative", "count"),
    [
        pytest.param({"B200": 1, "H100": 1, "A100": 2}, "gpu/latest", 1, id="latest"),
        pytest.param({"H100": 1, "A100": 2}, "gpu/previous", 1, id="one-generation-older"),
        pytest.param({"A100": 2}, "gpu/two-old-ones", 2, id="two-of-an-older-one"),
    ],
)
def test_best_gpu_of_each_cluster(
    models: dict[str, int], alternative: str, count: int, tmp_path: Path
) -> None:
    """A node for each model; the pod goes where the best one is."""
    hardware = [tmp_path / f"{model.lower()}.yaml" for model in models]
    for path, (model, number) in zip(hardware, models.items(), strict=True):
        device = f'{{name: "gpu-{{i}}", count: {number}, attributes: {{model: {model}}}}}'
        path.write_text(
            f"nodes: {{count: 1}}\npools: [{{driver: gpu.example.com, devices: [{device}]}}]\n"
            "deviceClasses: [{name: gpu.example.com}]\n"
        )
    with VirtualTimeCluster(ClusterSettings([str(path) for path in hardware])) as cluster:
        played = Played(cluster, "4816-prioritized-list/story-1.yaml")

    assert played.phases == ["Running"]
    assert [got(claim) for claim in played.claims] == [alternative]
    assert len(devices(played.claims[0])) == count
    has_config = "config" in played.claims[0]["status"]["allocation"]["devices"]
    assert has_config == (alternative == "gpu/two-old-ones")


@story("4816-prioritized-list/story-2.yaml")
def test_one_manifest_for_many_clusters(played: Played) -> None:
    assert played.phases == ["Running"]
    assert [got(claim) for claim in played.claims] == ["accelerator/example"]
    events = played.cluster.list("Event", "default")
    told = "\n".join(str(event.get("message", event.get("note"))) for event in events)
    for name in ("gpu.nvidia.com", "gpu.amd.com", "tpu.google.com"):
        assert name in told

    # Elsewhere there are GPUs of the preferred kind, and the same manifest gets one.
    played.delete()
    elsewhere = Played(played.cluster, "6080-derived-attributes/gpu-nic-cpu.yaml")
    again = Played(played.cluster, "4816-prioritized-list/story-2.yaml")
    [claim] = [claim for claim in again.claims if "accelerator" in claim["metadata"]["name"]]
    assert got(claim) == "accelerator/nvidia"
    again.delete()
    elsewhere.delete()


@story("4816-prioritized-list/gpu-and-nic.yaml")
def test_two_small_gpus_beside_the_card(played: Played) -> None:
    assert played.phases == ["Running"]
    assert devices(played.claims[0]) == ["nic-0", "small-0", "small-2"]
    results = played.claims[0]["status"]["allocation"]["devices"]
    requests = [result["request"] for result in results["results"]]
    assert requests == ["nic", "gpu/small-gpu", "gpu/small-gpu"]
    [config] = results["config"]
    assert config["requests"] == ["gpu/small-gpu"]
    assert config["opaque"]["parameters"]["mode"] == "multipleGPUs"


@story("4816-prioritized-list/as-many-as-possible.yaml")
def test_as_many_gpus_as_possible(played: Played) -> None:
    assert played.phases == ["Running"] * 4
    assert sorted(map(got, played.claims)) == ["gpus/six", "gpus/six", "gpus/two", "gpus/two"]


@story("5075-consumable-capacity/story-1.yaml")
def test_shared_interface(played: Played) -> None:
    assert played.phases == ["Running"] * 3
    assert [devices(claim) for claim in played.claims] == [["eth1"]] * 3


@story("5075-consumable-capacity/story-2.yaml")
def test_two_interfaces(played: Played) -> None:
    assert played.phases == ["Running"]
    assert sorted(devices(played.claims[0])) == ["eth1", "eth2"]


@story("5075-consumable-capacity/story-3.yaml")
def test_guaranteed_bandwidth(played: Played) -> None:
    streams = [claim for claim in played.claims if claim["metadata"]["name"] != "default-bandwidth"]
    assert played.phases == ["Pending", *["Running"] * 5]
    assert sorted(map(devices, streams)) == [[], ["eth1"], ["eth1"], ["eth2"], ["eth2"]]
    assert consumed(streams, "bandwidth") == ["40G"] * 4
    assert consumed([played.claim("default-bandwidth")], "bandwidth") == ["1G"]


@story("5075-consumable-capacity/cpus.yaml")
def test_cpus_of_a_numa_node(played: Played) -> None:
    spread = played.claim("eight-of-each")
    solvers = [claim for claim in played.claims if claim is not spread]

    assert played.phases == ["Pending", *["Running"] * 5]
    assert sorted(map(devices, solvers)) == [[], *[["cpudevnuma000"]] * 2, *[["cpudevnuma001"]] * 2]
    assert consumed(solvers, "dra.cpu/cpu") == ["24"] * 4
    assert sorted(devices(spread)) == ["cpudevnuma000", "cpudevnuma001"]
    assert consumed([spread], "dra.cpu/cpu") == ["8", "8"]


@story("5075-consumable-capacity/gpu-memory.yaml")
def test_memory_of_accelerators(played: Played) -> None:
    whole = played.claim("whole-gpu")
    shares = [claim for claim in played.claims if claim is not whole]

    assert played.phases == ["Running"] * 5
    assert consumed([whole], "memory") == ["81559Mi"]
    assert consumed(shares, "memory") == ["19074Mi"] * 4
    [shared] = {device for claim in shares for device in devices(claim)}
    assert {shared, *devices(whole)} == {"gpu-0", "gpu-1"}

    [deployment] = [each for each in played.documents if each["kind"] == "Deployment"]
    played.cluster.apply({**deployment, "spec": {**deployment["spec"], "replicas": 5}})
    played.cluster.advance(30)
    pods = played.cluster.list("Pod", "default")
    assert sorted(pod["status"]["phase"] for pod in pods) == ["Pending", *["Running"] * 5]


@story("5075-consumable-capacity/cni-nic.yaml")
def test_shares_of_an_interface_have_network_data_of_their_own(played: Played) -> None:
    cluster = played.cluster
    assert played.phase("five-gigabit") == "Running"
    assert played.phase("usual-share") == "Running"
    assert consumed([played.claim("five-gigabit")], "bandwidth") == [str(5 * 1024**3)]
    assert consumed([played.claim("usual-share")], "bandwidth") == ["1Mi"]

    for number, name in enumerate(("five-gigabit", "usual-share")):
        cluster.run(report_network(cluster.client, name, f"10.0.103.{number + 49}/16"))
    reported = [cluster.get("ResourceClaim", name) for name in ("five-gigabit", "usual-share")]
    statuses = [claim["status"]["devices"][0] for claim in reported if claim is not None]
    assert [status["networkData"]["ips"] for status in statuses] == [
        ["10.0.103.49/16"],
        ["10.0.103.50/16"],
    ]
    assert {status["device"] for status in statuses} == {"eth1"}
    assert len({status["shareID"] for status in statuses}) == 2

    later = Played(cluster, "5075-consumable-capacity/cni-nic-later.yaml")
    assert later.phase("eight-gigabit") == "Pending"  # more than is left, less than the device has
    cluster.delete("Pod", "five-gigabit")
    cluster.wait_for_phase("eight-gigabit", "Running")
    later.delete()


@story("6080-derived-attributes/gpu-nic.yaml")
def test_same_numa_node(played: Played) -> None:
    assert played.phases == ["Running"]
    nic, *gpus = devices(played.claims[0])
    assert nic == "rdma-3"
    assert set(gpus) <= {"gpu-4", "gpu-5", "gpu-6", "gpu-7"}
    assert len(gpus) == 2


@story("6080-derived-attributes/numa-alignment.yaml")
def test_eight_gpus_and_a_card_on_one_numa_node(played: Played) -> None:
    assert played.phases == ["Running"] * 2
    halves = sorted(map(placement, played.claims))
    assert [gpus for gpus, _ in halves] == [
        [f"gpu-{number}" for number in range(8)],
        [f"gpu-{number}" for number in range(8, 16)],
    ]
    cards = [["pci-0000-35-00-0", "pci-0000-55-00-0"], ["pci-0000-75-00-0", "pci-0000-95-00-0"]]
    for (_, [card]), beside in zip(halves, cards, strict=True):
        assert card in beside


def placement(claim: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The GPUs of a claim in the order of their numbers, and its cards."""
    gpus = [name for name in devices(claim) if name.startswith("gpu-")]
    cards = [name for name in devices(claim) if name.startswith("pci-")]
    return sorted(gpus, key=lambda name: int(name.removeprefix("gpu-"))), cards


@story("6080-derived-attributes/gpu-nic-cpu.yaml")
def test_gpu_nic_and_cpus_on_one_numa_node(played: Played) -> None:
    assert played.phases == ["Running"] * 3
    numa_nodes = []
    for claim in played.claims:
        gpus, [card] = placement(claim)
        [cpus] = [name for name in devices(claim) if name.startswith("cpudevnuma")]
        numa = int(cpus.removeprefix("cpudevnuma"))
        assert {int(gpu.removeprefix("gpu-")) // 4 for gpu in gpus} == {numa}
        assert (card == "pci-0000-18-00-0") == (numa == 0)
        numa_nodes.append(numa)
    assert sorted(numa_nodes) == [0, 1, 1]


@story("6080-derived-attributes/names.yaml")
def test_pair_by_name(played: Played) -> None:
    assert played.phases == ["Running"] * 2
    assert sorted(map(devices, played.claims)) == [["gpu0", "eth0"], ["gpu1", "eth1"]]


@story("6080-derived-attributes/tiers.yaml")
def test_two_of_one_tier(played: Played) -> None:
    assert played.phases == ["Running"] * 2
    assert sorted(map(devices, played.claims)) == [["a40gb", "c48gb"], ["b80gb", "d96gb"]]


@story("6080-derived-attributes/topology-string.yaml")
def test_part_of_a_topology_string(played: Played) -> None:
    assert played.phases == ["Running"]
    assert devices(played.claims[0]) == ["nic0", "nic2"]


async def make_ready(client: Client, driver: str, attacher: Attacher, seconds: float) -> None:
    """Run the driver's binding controller for a while."""
    rules = TaintRules(client, driver)
    running = asyncio.create_task(
        BindingController(client, driver, attacher, quarantine=rules).run()
    )
    await asyncio.sleep(seconds)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


FPGA_SCRIPT = "ready after 3m"
BAD_FPGA_SCRIPT = "fpga-0: fail BadFlash after 30s; ready after 3m"


@pytest.mark.parametrize(
    ("path", "driver", "script", "device"),
    [
        pytest.param("story-1", "fpga.example.com", FPGA_SCRIPT, "fpga-0", id="initialized"),
        pytest.param("story-1", "fpga.example.com", BAD_FPGA_SCRIPT, "fpga-1", id="fails"),
        pytest.param("story-2", FABRIC, "ready after 20s", "gpu-0", id="attached"),
        pytest.param(
            "story-2-failure",
            FABRIC,
            "gpu-0: fail LinkDown after 5s; ready after 5s",
            "gpu-1",
            id="attachment-fails",
        ),
    ],
)
def test_device_is_made_ready(
    cluster: VirtualTimeCluster, path: str, driver: str, script: str, device: str
) -> None:
    played = Played(cluster, f"5007-binding-conditions/{path}.yaml")
    [pod] = played.pods
    assert "nodeName" not in pod["spec"]  # no controller makes the device ready yet
    assert pod["status"]["nominatedNodeName"]
    attacher = SimulatedAttacher(parse_script(script), clock=cluster.client.clock)
    cluster.run(make_ready(cluster.client, driver, attacher, 240))

    assert [pod["status"]["phase"] for pod in cluster.list("Pod", "default")] == ["Running"]
    assert [devices(claim) for claim in cluster.list("ResourceClaim", "default")] == [[device]]
    played.end()
    for rule in cluster.list("DeviceTaintRule"):
        cluster.delete("DeviceTaintRule", rule["metadata"]["name"])


@story("5007-binding-conditions/story-3.yaml")
def test_a_gang_is_bound_together(played: Played) -> None:
    cluster = played.cluster
    gang = runpy.run_path(str(EXAMPLES / "5007-binding-conditions" / "gang.py"))["Gang"]()
    [workload] = [each for each in played.documents if each["kind"] == "StatefulSet"]

    def scale(replicas: int) -> None:
        cluster.apply({**workload, "spec": {**workload["spec"], "replicas": replicas}})

    def bound() -> list[bool]:
        return ["nodeName" in pod["spec"] for pod in cluster.list("Pod", "default")]

    scale(2)
    cluster.run(make_ready(cluster.client, "gang.example.com", gang, 120))
    assert bound() == [False, False]
    scale(3)
    cluster.run(make_ready(cluster.client, "gang.example.com", gang, 120))
    assert bound() == [True, True, True]


RPSR = "resourcepoolstatusrequests.v1alpha1.resource.k8s.io"
GPU_NODES = """
name: gpu-nodes
nodes: {{count: {count}, name: "node-{{node+1}}"}}
pools:
- driver: gpu.example.com
  devices: [{{name: "gpu-{{i}}", count: 4}}]
deviceClasses:
- name: gpu.example.com
  selectors: [{{cel: {{expression: device.driver == "gpu.example.com"}}}}]
"""


def asked(held: Sequence[int], name: str, directory: Path) -> dict[str, Any]:
    """The status that a story gets where so many GPUs of each node's four are held."""
    hardware = directory / "gpu-nodes.yaml"
    hardware.write_text(GPU_NODES.format(count=len(held)), encoding="utf-8")
    with VirtualTimeCluster(ClusterSettings([str(hardware)])) as cluster:
        for number, count in enumerate(held, start=1):
            if count:
                cluster.apply(*gpu_user(f"node-{number}", count))
                cluster.wait_for_phase(f"node-{number}", "Running")
        [request] = cluster.apply(EXAMPLES / "5677-pool-status" / f"{name}.yaml")
        cluster.advance(1)
        answered = cluster.get(RPSR, request["metadata"]["name"])
    assert answered is not None
    return dict(answered["status"])


def gpu_user(node: str, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A claim for so many GPUs, and a pod that uses it on that node."""
    wanted = {"deviceClassName": "gpu.example.com", "count": count}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": wanted}]}}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "resourceClaims": [{"name": "gpus", "resourceClaimName": node}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpus"}]}}],
    }
    metadata = {"name": node}
    return (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": spec,
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
    )


def test_administrator_checks_pools(tmp_path: Path) -> None:
    status = asked((3, 1), "story-1", tmp_path)

    figures = ("poolName", "nodeName", "totalDevices", "allocatedDevices", "availableDevices")
    assert [[pool[name] for name in figures] for pool in status["pools"]] == [
        ["node-1", "node-1", 4, 3, 1],
        ["node-2", "node-2", 4, 1, 3],
    ]
    assert status["observationTime"]
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
        ("Complete", "True", "CalculationComplete")
    ]


def test_developer_looks_for_free_gpus(tmp_path: Path) -> None:
    status = asked((4, 1, 4), "story-2", tmp_path)

    assert {pool["nodeName"]: pool["availableDevices"] for pool in status["pools"]} == {
        "node-1": 0,
        "node-2": 3,
        "node-3": 0,
    }


def test_monitoring_adds_up_all_pools(tmp_path: Path) -> None:
    status = asked((4, 3, 1), "story-3", tmp_path)

    assert sum(pool["availableDevices"] for pool in status["pools"]) == 4
    assert not status.get("truncated", False)


def test_every_story_is_tried() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    files = [path for path in EXAMPLES.glob("[0-9]*/*.yaml") if path.parent.name[:4].isdigit()]

    assert files
    for path in files:
        short = str(path.relative_to(EXAMPLES))
        assert short in text or path.parent.name[:4] in ("5007", "5677"), short


# --- the demo ---


def performance(cluster: VirtualTimeCluster, stories: tuple[Story, ...] = STORIES) -> str:
    printed = StringIO()
    console = Console(file=printed, width=100)
    cluster.run(play(cluster.client, stories, kubeconfig=KUBECONFIG, console=console))
    return printed.getvalue()


def assert_nothing_is_left(cluster: VirtualTimeCluster) -> None:
    async def left() -> list[str]:
        client = cluster.client
        found = [
            each.metadata.name
            for resource in (DEVICE_TAINT_RULES, RESOURCE_POOL_STATUS_REQUESTS)
            for each in (await client.list(resource.as_raw())).items
        ]
        if await client.find(NAMESPACES, ObjectKey("", NAMESPACE)) is not None:
            found.append(NAMESPACE)
        return found

    assert cluster.run(left()) == []


def test_demo_plays_twice_and_leaves_nothing(cluster: VirtualTimeCluster) -> None:
    first = performance(cluster)
    assert_nothing_is_left(cluster)
    second = performance(cluster)
    assert_nothing_is_left(cluster)

    for printed in (first, second):
        for expected in (
            r"inference-gpu-\w+   gpu/previous   gpu-0",
            r"two-interfaces   eth1,eth2   1G,1G",
            r"Pending",
            r"borrower +fabric-\d +<none> +Pending",
            r"borrower +(<none>|fabric-\d) +fabric-\d +Running",
            r"second-try +gpu-1 +fabric.example.com/Attached +True",
            r"binding-failed-gpu-0",
            r"check-gpus   gpu.example.com   16      15          1 ",
            r"same-numa-node   nic,gpus,gpus   rdma-3,gpu-4,gpu-5",
        ):
            assert re.search(expected, printed), expected


def test_demo_names_the_holder_and_skips(cluster: VirtualTimeCluster) -> None:
    """A pod of another namespace holds a GPU: scenes that need all of them are skipped, the others are played."""
    for document in documents(EXAMPLES / "4816-prioritized-list" / "story-1.yaml"):
        document["metadata"]["namespace"] = "default"
        cluster.apply(document)
    cluster.wait_for_phase("inference", "Running")

    printed = performance(cluster, STORIES[:1])
    text = " ".join(printed.split())

    assert "pod/inference created" in text, "one GPU is enough for the first scene"
    assert "workers" not in text
    assert re.search(
        r"gpu-server-0/gpu-0 of gpu.example.com is held by claim default/inference-gpu-\w+ of pod inference",
        text,
    )
    assert "Skipped: KEP-4816 from scene 2 on" in text
    assert_nothing_is_left(cluster)
    for kind, name in (("Pod", "inference"), ("ResourceClaimTemplate", "best-gpu-there-is")):
        cluster.delete(kind, name, "default")
    cluster.advance(10)


def test_commands_of_the_demo_fit_into_80_columns(cluster: VirtualTimeCluster) -> None:
    printed = performance(cluster).splitlines()
    shown = [
        line
        for number, line in enumerate(printed)
        if line.startswith("    $ ") or (number and printed[number - 1].endswith("\\"))
    ]

    assert len(shown) > 40
    assert [line for line in shown if len(line) > 80] == []


def test_demo_cleans_up_after_ctrl_c(cluster: VirtualTimeCluster) -> None:
    async def interrupted() -> None:
        playing = asyncio.create_task(
            play(cluster.client, STORIES, kubeconfig=KUBECONFIG, console=Console(file=StringIO()))
        )
        await asyncio.sleep(2)
        assert await cluster.client.find(NAMESPACES, ObjectKey("", NAMESPACE)) is not None
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    cluster.run(interrupted())

    assert_nothing_is_left(cluster)


def test_demo_says_why_nothing_happens(cluster: VirtualTimeCluster) -> None:
    many = Get("pods", (Until(9),), "pods")
    waiting = Story(
        "0", "Never", (Scene("", (Apply("6080-derived-attributes/gpu-nic.yaml"), many)),)
    )

    with pytest.raises(CommandError, match="timed out after 60 s waiting for pods: 9 with"):
        performance(cluster, (waiting,))

    assert_nothing_is_left(cluster)


def test_demo_leaves_other_peoples_namespace_alone(cluster: VirtualTimeCluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})

    with pytest.raises(CommandError, match="was not created by a demo"):
        performance(cluster)

    assert cluster.get("Namespace", NAMESPACE, "") is not None
    cluster.delete("Namespace", NAMESPACE, "")
    cluster.advance(10)


def test_demo_takes_up_what_a_killed_one_left(cluster: VirtualTimeCluster) -> None:
    left = {"name": NAMESPACE, "labels": {"allot.dev/demo": "true"}}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": left})
    path = EXAMPLES / "6080-derived-attributes" / "gpu-nic.yaml"
    for document in documents(path):
        document["metadata"]["namespace"] = NAMESPACE
        cluster.apply(document)

    printed = performance(cluster, STORIES[-1:])

    assert "rank-0" in printed
    assert_nothing_is_left(cluster)


def test_demo_needs_its_hardware() -> None:
    with (
        VirtualTimeCluster(ClusterSettings(["gpu-server"])) as poor,
        pytest.raises(CommandError, match=r"no device class fabric\.example\.com.*`allot up`"),
    ):
        performance(poor)


def test_examples_are_found() -> None:
    assert examples_directory() == EXAMPLES
