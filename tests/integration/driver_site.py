"""A cluster with nodes on which drivers register, for tests: short ways to set it up and to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from allot.kubelet.dra.paths import NodePaths, node_paths
from allot.testing.cluster import ClusterSettings, RealTimeCluster
from allot.testing.manifests import a_claim_manifest, a_dra_manifest, a_pod_manifest
from tests.integration.dra_driver import FakeDriver, device_class

WAIT_SECONDS = 60.0
SIMULATED = {"allot.dev/simulated": "true"}


class Site:
    """A cluster in real time, and the directory of its sockets."""

    def __init__(self, cluster: RealTimeCluster, plugin_dir: Path) -> None:
        self.cluster = cluster
        self.plugin_dir = plugin_dir
        self.driver_type: Any = FakeDriver
        """Of the drivers that `driver` makes. SdkDriver has the same handles."""
        self._drivers: list[Any] = []

    # --- set up ---

    def paths(self, node: str) -> NodePaths:
        return node_paths(self.plugin_dir, node)

    def add_node(self, name: str) -> None:
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": SIMULATED}}
        )
        self.until(self.paths(name).registry.exists, f"the directories of {name}")

    def annotate_node(self, name: str, **annotations: str) -> None:
        """Names without the prefix, with underscores."""
        node = self.cluster.get("Node", name)
        assert node is not None
        metadata = node["metadata"]
        changed = {
            f"allot.dev/{key.replace('_', '-')}": value for key, value in annotations.items()
        }
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": metadata["labels"],
                    "annotations": {**metadata.get("annotations", {}), **changed},
                },
            }
        )

    def driver(self, name: str, node: str, **options: Any) -> Any:
        """A driver that has not started."""

        async def made() -> Any:
            return self.driver_type(name, self.cluster.client, self.paths(node), **options)

        driver = self.cluster.run(made())
        self._drivers.append(driver)
        return driver

    def start(self, driver: Any, node: str, devices: int = 4, **device: Any) -> Any:
        """Start a driver; it is registered, and its devices and class are published."""
        self.cluster.run(driver.start())
        self.until(lambda: (True, "") in driver.statuses, f"{driver.name} to be registered")
        self.cluster.run(driver.publish(node, devices, **device))
        self.cluster.apply(device_class(driver.name, driver.name))
        return driver

    def claim(self, name: str, *classes: str, **fields: Any) -> None:
        self.cluster.apply(claim_of(name, *classes, **fields))

    def pod(self, name: str, claims: dict[str, str], node: str = "", **fields: Any) -> None:
        self.cluster.apply(pod_with_claims(name, claims, node, **fields))

    def close(self) -> None:
        for driver in self._drivers:
            self.cluster.run(driver.stop())

    # --- look ---

    def slice_uids(self, driver: str, node: str) -> set[str]:
        """Of the driver's slices of the node."""
        return {
            each["metadata"]["uid"]
            for each in self.cluster.list("ResourceSlice")
            if (each["spec"]["driver"], each["spec"].get("nodeName")) == (driver, node)
        }

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            assert time.monotonic() < deadline, f"timed out waiting for {what}"
            time.sleep(0.05)
        return found

    def runs(self, pod: str) -> dict[str, Any]:
        return self.cluster.wait_for_phase(pod, "Running", seconds=WAIT_SECONDS)

    def gone(self, kind: str, name: str) -> None:
        self.cluster.wait_for(kind, name, lambda found: found is None, seconds=WAIT_SECONDS)

    def events(self, pod: str, reason: str) -> list[str]:
        return [
            event["message"]
            for event in self.cluster.list("events.v1")
            if event["involvedObject"]["name"] == pod and event["reason"] == reason
        ]

    def failed_prepare(self, pod: str) -> str:
        """The message of the first event."""
        found = self.until(
            lambda: self.events(pod, "FailedPrepareDynamicResources"), f"the event about {pod}"
        )
        return str(found[0])


@contextmanager
def running_site(directory: Path, plugin_dir: Path | None, **settings: Any) -> Iterator[Site]:
    """Without a directory no driver can register."""
    where = None if plugin_dir is None else str(plugin_dir)
    chosen = ClusterSettings(plugin_dir=where, all_nodes=False, **settings)
    with RealTimeCluster(directory, chosen) as cluster:
        site = Site(cluster, plugin_dir or directory)
        try:
            yield site
        finally:
            site.close()


def a_request(name: str, device_class_name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": device_class_name, **fields}}


def claim_of(
    name: str, *classes: str, version: str = "v1", requests: Any = None, **fields: Any
) -> dict[str, Any]:
    """A claim for a device of each class."""
    wanted = requests or [a_request(f"r{i}", one) for i, one in enumerate(classes)]
    made = a_claim_manifest(*wanted, name=name, **fields)
    return made | {"apiVersion": f"resource.k8s.io/{version}"}


def a_template(name: str, device_class_name: str) -> dict[str, Any]:
    spec = {"devices": {"requests": [a_request("r0", device_class_name)]}}
    return a_dra_manifest("ResourceClaimTemplate", name, {"spec": spec}, namespace="default")


def pod_with_claims(
    name: str,
    claims: dict[str, str],
    node: str = "",
    *,
    containers: Any = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """`claims` by the name in the pod; a name with `template:` before it is that of a template."""
    entries = []
    for entry, claim in claims.items():
        is_template = claim.startswith("template:")
        field = "resourceClaimTemplateName" if is_template else "resourceClaimName"
        entries.append({"name": entry, field: claim.removeprefix("template:")})
    uses = [{"name": entry} for entry in claims]
    default = [{"name": "c", "image": "i", "resources": {"claims": uses}}]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return a_pod_manifest(
        name,
        claims=entries,
        containers=containers or default,
        metadata={"annotations": annotations or {}},
        **spec,
    )
