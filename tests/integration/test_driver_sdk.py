"""Drivers made with `allot.driver`, on simulated nodes: publishing, prepare, restarts, rolling updates, health, status."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.api.quantity import Quantity
from allot.client.errors import ApiStatusError
from allot.client.resources import RESOURCE_CLAIMS
from allot.driver import (
    AllocatedClaim,
    ClaimReference,
    ContainerEdits,
    Counter,
    CounterSet,
    Device,
    DeviceCondition,
    DeviceCounterConsumption,
    DeviceMetadataError,
    DeviceStatus,
    DeviceStatusWriter,
    DeviceTaint,
    Driver,
    DriverResources,
    Health,
    InvalidPoolError,
    KubeletPlugin,
    NetworkData,
    PluginOptions,
    Pool,
    PreparedDevice,
    ResourceSliceController,
    make_device,
)
from allot.driver.kubelet_plugin.claims import allocated_devices
from allot.driver.slice_reconciler import RejectedPoolError
from allot.fabric import Attachment, AttachRequest, FabricDriver
from allot.kubelet.dra.plugin import open_channel
from allot.proto import dra_health_pb2
from allot.proto.services import node_watch_resources, stream
from tests.integration.driver_site import Site, a_template, running_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    plugin_dir = Path(tempfile.mkdtemp(prefix="allot-"))  # short: it has sockets
    try:
        with running_site(tmp_path_factory.mktemp("cluster"), plugin_dir) as running:
            yield running
    finally:
        shutil.rmtree(plugin_dir)


class RecordingDriver(Driver):
    """Remembers what it was asked."""

    unhealthy_taint = DeviceTaint("example.com/broken", effect="NoSchedule")

    def __init__(self, name: str, devices: Iterable[Device] | None = None) -> None:
        self.name = name
        self.found = [make_device(f"dev-{i}") for i in range(4)] if devices is None else [*devices]
        self.calls: list[str] = []
        self.errors: list[Exception] = []
        self.crashes = 0

    def devices(self) -> Iterable[Device]:
        return self.found

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        self.calls.append(f"prepare {claim.reference.name}")
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("out of order")
        return [each.prepared(ContainerEdits({"DEVICE": each.device})) for each in claim.devices]

    async def unprepare(self, claim: AllocatedClaim) -> None:
        self.calls.append(f"unprepare {claim.reference.name}")

    def on_error(self, error: Exception) -> None:
        self.errors.append(error)


def started(site: Site, driver: Driver, node: str, **options: Any) -> KubeletPlugin:
    async def start() -> KubeletPlugin:
        paths = site.paths(node)
        chosen = PluginOptions(
            kubelet_directory=paths.root, cdi_directory=paths.cdi, repair_seconds=0.2, **options
        )
        plugin = KubeletPlugin(driver, site.cluster.client, node, chosen)
        await plugin.start()
        return plugin

    plugin = site.cluster.run(start())
    site.until(lambda: plugin.is_ready, f"{driver.name} to be ready")
    return plugin


def with_class(site: Site, driver: str) -> None:
    site.cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        }
    )


def slices_of(site: Site, driver: str) -> list[dict[str, Any]]:
    return [each for each in site.cluster.list("ResourceSlice") if each["spec"]["driver"] == driver]


def test_a_pod_runs_with_its_device_and_ends(site: Site) -> None:
    site.add_node("s1")
    driver = RecordingDriver("s1.example.com")
    driver.crashes = 1
    plugin = started(site, driver, "s1")
    with_class(site, driver.name)
    site.claim("s1", driver.name)
    site.pod("s1", {"x": "s1"})

    site.runs("s1")

    assert "RuntimeError: out of order" in site.failed_prepare("s1")
    assert driver.calls == ["prepare s1", "prepare s1"]
    assert len(list(site.paths("s1").cdi.iterdir())) == 1
    (owner,) = slices_of(site, driver.name)[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "s1", True)

    site.cluster.delete("Pod", "s1")
    site.gone("Pod", "s1")
    assert driver.calls[2:] == ["unprepare s1"]
    assert list(site.paths("s1").cdi.iterdir()) == []
    site.cluster.run(plugin.stop())
    assert not plugin.paths.endpoint.exists()
    assert not plugin.paths.registration.exists()


def test_a_restarted_driver_remembers_what_is_prepared(site: Site) -> None:
    site.add_node("s2")
    before = RecordingDriver("s2.example.com")
    plugin = started(site, before, "s2")
    with_class(site, before.name)
    site.claim("s2", before.name)
    site.pod("s2", {"x": "s2"})
    site.runs("s2")
    site.cluster.run(plugin.stop())
    after = RecordingDriver("s2.example.com")
    plugin = started(site, after, "s2")

    site.annotate_node("s2", kubelet_restart="1")
    site.until(lambda: plugin.is_registered, "the new kubelet")
    site.cluster.delete("Pod", "s2")
    site.gone("Pod", "s2")

    assert before.calls == ["prepare s2"]
    assert after.calls == ["unprepare s2"]
    site.cluster.run(plugin.stop())


def test_two_instances_during_a_rolling_update(site: Site) -> None:
    site.add_node("s3")
    old, new = RecordingDriver("s3.example.com"), RecordingDriver("s3.example.com")
    first = started(site, old, "s3", instance="a")
    with_class(site, old.name)
    site.claim("s3", old.name)
    site.pod("s3", {"x": "s3"})
    site.runs("s3")
    second = started(site, new, "s3", instance="b")
    site.cluster.run(first.stop())

    site.cluster.delete("Pod", "s3")
    site.gone("Pod", "s3")

    assert (old.calls, new.calls) == (["prepare s3"], ["unprepare s3"])
    assert len(slices_of(site, old.name)) == 1
    site.cluster.run(second.stop())


def test_unhealthy_devices_are_tainted_and_shown(site: Site) -> None:
    site.add_node("s4")
    driver = RecordingDriver("s4.example.com", [make_device("dev-0")])
    plugin = started(site, driver, "s4", health_refresh_seconds=0.5)
    with_class(site, driver.name)
    site.claim("s4", driver.name)
    site.pod("s4", {"x": "s4"})
    site.runs("s4")

    async def report() -> None:
        plugin.report_health("dev-0", Health.UNHEALTHY, "too hot")

    site.cluster.run(report())

    def health() -> Any:
        pod = site.cluster.get("Pod", "s4")
        assert pod is not None
        for status in pod["status"]["containerStatuses"]:
            for resource in status.get("allocatedResourcesStatus", ()):
                return resource["resources"][0]["health"] == "Unhealthy"
        return False

    site.until(health, "the device's health")
    site.until(
        lambda: slices_of(site, driver.name)[0]["spec"]["devices"][0].get("taints"), "the taint"
    )
    site.cluster.run(plugin.stop())


def test_status_of_devices_is_applied(site: Site) -> None:
    site.add_node("s5")
    devices = [make_device("nic", allow_multiple_allocations=True)]
    driver = RecordingDriver("s5.example.com", devices)
    plugin = started(site, driver, "s5")
    with_class(site, driver.name)
    site.claim("s5", driver.name)
    site.pod("s5", {"x": "s5"})
    site.runs("s5")
    writer = DeviceStatusWriter(site.cluster.client, driver.name)

    async def report(is_up: bool) -> Any:
        claim = await site.cluster.client.get(RESOURCE_CLAIMS, ObjectKey("default", "s5"))
        assert claim.status.allocation is not None
        (device,) = allocated_devices(claim.status.allocation, driver.name)
        assert device.share_id
        reference = ClaimReference("default", "s5", claim.metadata.uid)
        condition = DeviceCondition("Ready", is_up, "Up" if is_up else "Down")
        network = NetworkData("net1", ("10.0.0.5/24",), "02:00:00:00:00:01")
        status = DeviceStatus(device, (condition,), {"vlan": 5}, network)
        await writer.apply(reference, [status])
        wrong = DeviceStatus(replace(device, device="other"))
        with pytest.raises(ApiStatusError):
            await writer.apply(reference, [wrong])
        return device

    device = site.cluster.run(report(True))
    claim = site.cluster.get("ResourceClaim", "s5")
    assert claim is not None
    (entry,) = claim["status"]["devices"]
    assert entry["shareID"] == device.share_id
    assert entry["networkData"]["ips"] == ["10.0.0.5/24"]
    assert entry["data"] == {"vlan": 5}
    assert entry["conditions"][0]["status"] == "True"
    site.cluster.run(report(False))
    claim = site.cluster.get("ResourceClaim", "s5")
    assert claim is not None
    assert claim["status"]["devices"][0]["conditions"][0]["status"] == "False"
    site.cluster.run(plugin.stop())


def test_pools_of_no_node_are_published_updated_and_deleted(site: Site) -> None:
    name = "fabric.example.com"
    errors: list[Exception] = []

    async def publish() -> tuple[ResourceSliceController, asyncio.Task[None]]:
        controller = ResourceSliceController(
            site.cluster.client, name, on_error=errors.append, repair_seconds=0.2
        )
        return controller, asyncio.create_task(controller.run())

    controller, running = site.cluster.run(publish())

    def update(**pools: Pool) -> None:
        async def work() -> None:
            controller.update(DriverResources(pools))

        site.cluster.run(work())
        site.until(lambda: controller.is_published, "the pools")

    many = tuple(make_device(f"dev-{i}") for i in range(200))
    update(many=Pool(many, all_nodes=True), few=Pool(many[:2], all_nodes=True, generation=7))
    by_pool: dict[str, list[dict[str, Any]]] = {}
    for slice_ in slices_of(site, name):
        by_pool.setdefault(slice_["spec"]["pool"]["name"], []).append(slice_)
    assert sorted(len(each["spec"]["devices"]) for each in by_pool["many"]) == [72, 128]
    assert [each["spec"]["pool"]["generation"] for each in by_pool["few"]] == [7]

    counters = (CounterSet("gpu", {"memory": Counter(Quantity.parse("10Gi"))}),)
    uses = DeviceCounterConsumption("gpu", {"memory": Counter(Quantity.parse("5Gi"))})
    parts = tuple(Device(f"part-{i}", consumes_counters=(uses,)) for i in range(2))
    update(parts=Pool(parts, counters, all_nodes=True))
    site.until(
        lambda: {each["spec"]["pool"]["name"] for each in slices_of(site, name)} == {"parts"},
        "the other pools to be deleted",
    )
    assert not errors

    update(twice=Pool((many[0], many[0]), all_nodes=True))
    assert isinstance(errors.pop(), InvalidPoolError)
    update(nowhere=Pool(many[:1]))
    assert "needs a node selection" in str(errors.pop())
    update(counters=Pool(parts, all_nodes=True))
    assert "consumes counter set gpu, which the pool does not have" in str(errors.pop())
    update(wrong=Pool((make_device("Not_A_Name"),), all_nodes=True))
    assert isinstance(errors.pop(), RejectedPoolError)
    running.get_loop().call_soon_threadsafe(running.cancel)


class Rack(FabricDriver):
    """Devices that are attached to a node when a claim gets them."""

    name = "rack.example.com"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def devices(self) -> Iterable[Device]:
        return [
            make_device(
                "gpu-0", binding_conditions=["Attached"], binding_failure_conditions=["Failed"]
            )
        ]

    async def attach(self, device: AttachRequest) -> None:
        self.calls.append(f"attach {device.device} to {device.node}")

    async def detach(self, device: Attachment) -> None:
        self.calls.append(f"detach {device.device.device}")

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        self.calls.append("prepare")
        return await super().prepare(claim)

    async def unprepare(self, claim: AllocatedClaim) -> None:
        self.calls.append("unprepare")


def test_a_fabric_driver_attaches_prepares_unprepares_and_detaches(site: Site) -> None:
    site.add_node("s7")
    rack = Rack()
    plugin = started(site, rack, "s7")
    with_class(site, rack.name)

    async def control() -> asyncio.Task[None]:
        return asyncio.create_task(rack.controller(site.cluster.client).run())

    controlling = site.cluster.run(control())
    site.claim("s7", rack.name)
    site.pod("s7", {"x": "s7"})
    site.runs("s7")
    assert rack.calls == ["attach gpu-0 to s7", "prepare"]

    site.cluster.delete("Pod", "s7")
    site.gone("Pod", "s7")
    site.until(lambda: "detach gpu-0" in rack.calls, "the device to be detached")
    assert rack.calls[2:] == ["unprepare", "detach gpu-0"]
    controlling.get_loop().call_soon_threadsafe(controlling.cancel)
    site.cluster.run(plugin.stop())


def test_an_empty_pool_is_published_as_such(site: Site) -> None:
    site.add_node("s6")
    driver = RecordingDriver("s6.example.com", [make_device("dev-0")])
    plugin = started(site, driver, "s6")

    async def lose() -> None:
        driver.found = []
        plugin.refresh()

    site.cluster.run(lose())
    site.until(
        lambda: (
            [not each["spec"].get("devices") for each in slices_of(site, driver.name)] == [True]
        ),
        "an empty pool",
    )
    site.cluster.run(plugin.stop())


def test_a_publisher_bound_to_a_pool_leaves_others_alone(site: Site) -> None:
    """Two publishers of one driver, each with its pool; the second has a node, which owns its slices."""
    name = "bound.example.com"
    site.add_node("bound")
    errors: list[Exception] = []

    async def publish(pool: str, node: str | None) -> ResourceSliceController:
        controller = ResourceSliceController(
            site.cluster.client,
            name,
            node,
            pool_name=pool,
            on_error=errors.append,
            repair_seconds=0.2,
        )
        running.append(asyncio.create_task(controller.run()))
        return controller

    running: list[asyncio.Task[None]] = []
    controllers = {
        pool: site.cluster.run(publish(pool, node)) for pool, node in (("a", None), ("b", "bound"))
    }

    def update(pool: str, **pools: Pool) -> None:
        async def work() -> None:
            controllers[pool].update(DriverResources(pools))

        site.cluster.run(work())
        site.until(lambda: controllers[pool].is_published, "the pool")

    def published() -> dict[str, dict[str, Any]]:
        return {each["spec"]["pool"]["name"]: each for each in slices_of(site, name)}

    one, two = make_device("one"), make_device("two")
    update("a", a=Pool((one,), all_nodes=True))
    update("b", b=Pool((one, two), all_nodes=True))
    site.until(lambda: published().keys() == {"a", "b"}, "both pools")
    assert "ownerReferences" not in published()["a"]["metadata"]
    (owner,) = published()["b"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", "bound")
    assert all("nodeName" not in each["spec"] for each in published().values())

    version = published()["b"]["metadata"]["resourceVersion"]
    update("a", a=Pool((one, two), all_nodes=True))
    update("a")
    site.until(lambda: published().keys() == {"b"}, "pool a to be deleted")
    assert published()["b"]["metadata"]["resourceVersion"] == version

    assert not errors
    update("a", c=Pool((one,), all_nodes=True))
    assert "the controller is bound to pool a" in str(errors.pop())
    update("b", b=Pool((one,)))
    assert "needs a node selection" in str(errors.pop())
    for task in running:
        task.get_loop().call_soon_threadsafe(task.cancel)


ATTRIBUTES = "/var/run/kubernetes.io/dra-device-attributes"


def metadata_in(pod: dict[str, Any], container: str) -> dict[str, list[dict[str, Any]]]:
    """The objects in each metadata file of a container, by its path there."""
    shown = json.loads(pod["metadata"]["annotations"]["allot.dev/container-devices"])
    found = {}
    for mount in shown[container].get("mounts", ()):
        host, _, inside = mount.partition(":")
        if inside.startswith(f"{ATTRIBUTES}/"):
            lines = Path(host).read_text().splitlines()
            found[inside.removeprefix(f"{ATTRIBUTES}/")] = [json.loads(line) for line in lines]
    return found


def test_containers_get_the_metadata_of_their_devices(site: Site) -> None:
    """Of a claim, of one from a template, and of two drivers in one request; each container of what it uses."""
    site.add_node("meta")
    devices = [make_device(f"dev-{i}", {"model": "A100", "index": i}) for i in range(4)]
    drivers = [
        RecordingDriver("meta-a.example.com", devices),
        RecordingDriver("meta-b.example.com"),
    ]
    versions = ("v1alpha1", "v1beta1")
    plugins = [started(site, each, "meta", device_metadata=versions) for each in drivers]
    site.cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "meta"},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver.startsWith("meta-")'}}]},
        }
    )
    with_class(site, drivers[0].name)
    either = {"name": "all", "exactly": {"deviceClassName": "meta", "allocationMode": "All"}}
    choice = {
        "name": "gpu",
        "firstAvailable": [{"name": "any", "deviceClassName": drivers[0].name}],
    }
    site.claim("chosen", requests=[choice])
    site.cluster.apply(a_template("meta", drivers[0].name))
    site.pod(
        "meta",
        {"mine": "chosen", "own": "template:meta"},
        containers=[
            {"name": "a", "image": "i", "resources": {"claims": [{"name": "mine"}]}},
            {"name": "b", "image": "i", "resources": {"claims": [{"name": "own"}]}},
        ],
    )

    pod = site.runs("meta")

    own = metadata_in(pod, "a")
    path = f"resourceclaims/chosen/gpu/{drivers[0].name}-metadata.json"
    assert list(own) == [path]
    newest, oldest = own[path]
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    assert oldest == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert (newest["kind"], newest["metadata"]["name"]) == ("DeviceMetadata", "chosen")
    assert newest["metadata"]["generation"] == 1
    (request,) = newest["requests"]
    assert request["name"] == "gpu/any"
    (device,) = request["devices"]
    assert (device["driver"], device["pool"]) == (drivers[0].name, "meta")
    index = int(device["name"].removeprefix("dev-"))
    assert device["attributes"] == {"model": {"string": "A100"}, "index": {"int": index}}
    templated = metadata_in(pod, "b")
    path = f"resourceclaimtemplates/own/r0/{drivers[0].name}-metadata.json"
    assert list(templated) == [path]
    assert templated[path][0]["podClaimName"] == "own"

    site.cluster.delete("Pod", "meta")
    site.gone("Pod", "meta")
    kept = [each.paths.directory / "dra-device-metadata" for each in plugins]
    assert [path for each in kept for path in each.glob("*")] == []

    site.claim("both", requests=[either])
    site.pod("both", {"x": "both"})
    files = metadata_in(site.runs("both"), "c")
    assert sorted(files) == [
        f"resourceclaims/both/all/{each.name}-metadata.json" for each in drivers
    ]
    assert [len(each[0]["requests"][0]["devices"]) for each in files.values()] == [4, 4]
    site.cluster.delete("Pod", "both")
    site.gone("Pod", "both")
    for plugin in plugins:
        site.cluster.run(plugin.stop())


class NetworkDriver(RecordingDriver):
    """Knows the addresses of a pod only when its sandbox exists, and gives containers no devices."""

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        await super().prepare(claim)
        return []


def test_metadata_may_come_after_prepare(site: Site) -> None:
    """The file is mounted from the start. Restarts of either side keep what the driver has added."""
    site.add_node("late")
    driver = NetworkDriver("late.example.com")
    plugin = started(site, driver, "late", device_metadata=("v1beta1",))
    with_class(site, driver.name)
    requests = [
        {"name": name, "exactly": {"deviceClassName": driver.name, "count": 2}}
        for name in ("data", "storage")
    ]
    site.claim("late", requests=requests)
    site.pod("late", {"x": "late"})

    def content(request: str) -> dict[str, Any]:
        files = metadata_in(site.runs("late"), "c")
        (found,) = files[f"resourceclaims/late/{request}/{driver.name}-metadata.json"]
        return found

    assert content("data")["metadata"]["generation"] == 1
    devices = content("data")["requests"][0]["devices"]
    assert [sorted(each) for each in devices] == [["driver", "name", "pool"]] * 2

    async def update(current: KubeletPlugin) -> None:
        (claim,) = current.prepared_claims()
        of_request = [each for each in claim.devices if each.request == "data"]
        with pytest.raises(DeviceMetadataError, match="give the metadata of all of them"):
            current.update_metadata(claim.reference, [of_request[0].prepared()])
        other = replace(of_request[0], request="unknown")
        with pytest.raises(DeviceMetadataError, match='request "unknown" not found'):
            current.update_metadata(claim.reference, [other.prepared()])
        with pytest.raises(DeviceMetadataError, match="no claim with UID"):
            current.update_metadata(ClaimReference("default", "late", "other"), [])
        current.update_metadata(
            claim.reference,
            [
                each.prepared(network=NetworkData(f"net{index}", (f"10.0.0.{index}/24",)))
                for index, each in enumerate(of_request)
            ],
        )

    site.cluster.run(update(plugin))
    expected = [
        {"interfaceName": f"net{index}", "ips": [f"10.0.0.{index}/24"]} for index in range(2)
    ]
    found = content("data")
    assert found["metadata"]["generation"] == 2
    assert [each["networkData"] for each in found["requests"][0]["devices"]] == expected
    assert content("storage")["metadata"]["generation"] == 1

    site.cluster.run(plugin.stop())
    with pytest.raises(DeviceMetadataError, match="not been started"):
        KubeletPlugin(driver, site.cluster.client, "late").update_metadata(
            ClaimReference("default", "late", "u"), []
        )
    plugin = started(site, driver, "late", device_metadata=("v1beta1",))
    site.annotate_node("late", kubelet_restart="1")
    site.until(lambda: plugin.is_registered, "the new kubelet")
    assert content("data") == found
    site.cluster.run(update(plugin))
    assert content("data")["metadata"]["generation"] == 3

    site.cluster.delete("Pod", "late")
    site.gone("Pod", "late")
    assert driver.calls == ["prepare late", "unprepare late"]
    assert plugin.prepared_claims() == ()
    assert list((plugin.paths.directory / "dra-device-metadata").glob("*")) == []
    site.cluster.run(plugin.stop())


def test_a_driver_that_cannot_start_leaves_nothing(site: Site) -> None:
    """Its second socket cannot be opened: the first is closed again, and its sockets and tasks are gone."""
    site.add_node("half")
    paths = site.paths("half")
    driver = RecordingDriver("half.example.com")

    async def start() -> KubeletPlugin:
        options = PluginOptions(kubelet_directory=paths.root, cdi_directory=paths.cdi)
        plugin = KubeletPlugin(driver, site.cluster.client, "half", options)
        before = asyncio.all_tasks()
        plugin.paths.registration.mkdir()
        with pytest.raises(OSError, match="directory"):
            await plugin.start()
        assert asyncio.all_tasks() == before
        plugin.paths.registration.rmdir()
        return plugin

    plugin = site.cluster.run(start())
    assert not plugin.paths.endpoint.exists()
    assert not plugin.paths.registration.exists()


def test_health_streams_end_with_the_driver(site: Site) -> None:
    """They do not hold it up until the time for calls in progress is over, when they would be cut off."""
    site.add_node("ends")
    plugin = started(site, RecordingDriver("ends.example.com"), "ends")

    async def watched() -> int:
        request = dra_health_pb2.NodeWatchResourcesRequest()
        async with open_channel(str(plugin.paths.endpoint)) as channel:
            messages = aiter(stream(channel, node_watch_resources(), request))
            first = await anext(messages)
            stopping = asyncio.create_task(plugin.stop())
            async for _ in messages:  # raises if it is cut off
                pass
            await stopping
        return len(first.devices)

    assert site.cluster.run(watched()) == 4
    site.cluster.run(plugin.start())
    site.until(lambda: plugin.is_ready, "the driver that was started again")
    assert site.cluster.run(watched()) == 4
