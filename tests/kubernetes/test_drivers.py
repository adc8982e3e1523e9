"""Kubernetes' own DRA test driver, in Go, on simulated nodes: it registers, publishes, prepares and unprepares."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allot.kubelet.dra.checkpoint import Checkpoint
from allot.kubelet.dra.paths import NodePaths
from tests.integration.dra_driver import device_class
from tests.integration.driver_site import (
    WAIT_SECONDS,
    Site,
    a_template,
    pod_with_claims,
    running_site,
)
from tests.kubernetes.programs import NEEDS_KUBERNETES, program

pytestmark = NEEDS_KUBERNETES

DRIVER = "test-driver.cdi.k8s.io"
NODE = "n0"
PROGRAM = [sys.executable, "-c", "from allot.cli.main import run; raise SystemExit(run())"]
MOMENTS = int(os.environ.get("ALLOT_DRIVER_KILLS", "12"))
SEED = int(os.environ.get("ALLOT_SEED", "1"))


@pytest.fixture
def plugin_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="allot-"))
    yield path
    shutil.rmtree(path)


def start_driver(
    kubeconfig: Path, paths: NodePaths, log: Path, *more: str
) -> subprocess.Popen[bytes]:
    (paths.plugins / DRIVER).mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [
                str(program("dra-test-driver")),
                f"--kubeconfig={kubeconfig}",
                "kubelet-plugin",
                f"--node-name={NODE}",
                f"--datadir={paths.plugins}",
                f"--plugin-registration-path={paths.registry}",
                f"--cdi-dir={paths.cdi}",
                "--num-devices=8",
                *more,
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def prepared_claims(paths: NodePaths) -> set[str]:
    """UIDs of the claims for which the driver has CDI specifications."""
    prefix = f"{DRIVER}-"
    return {path.name.removeprefix(prefix)[:36] for path in paths.cdi.glob(f"{prefix}*.json")}


def checkpointed_claims(paths: NodePaths) -> dict[str, tuple[int, int]]:
    """The numbers of pods and devices of each claim, by its UID."""
    return {
        info.reference.uid: (len(info.pod_uids), sum(map(len, info.devices_by_driver.values())))
        for info in Checkpoint(paths.checkpoint).load()
    }


def is_published(site: Site) -> bool:
    slices = site.cluster.list("ResourceSlice")
    return any(slice_["spec"]["driver"] == DRIVER for slice_ in slices)


def test_the_go_driver(tmp_path: Path, plugin_dir: Path) -> None:
    with running_site(tmp_path / "cluster", plugin_dir, driver_grace_seconds=2.0) as site:
        site.add_node(NODE)
        paths = site.paths(NODE)
        site.cluster.apply(device_class("test", DRIVER), a_template("one", "test"))
        site.cluster.apply(pod_with_claims("early", {"x": "template:one"}))
        kubeconfig = site.cluster.kubeconfig
        driver = start_driver(kubeconfig, paths, tmp_path / "driver.log")
        try:
            pod = site.runs("early")
            shown = json.loads(pod["metadata"]["annotations"]["allot.dev/container-devices"])
            (device,) = shown["c"]["cdiDevices"]
            assert device.startswith(f"{DRIVER}/")
            assert shown["c"]["env"]
            known_before = prepared_claims(paths)
            site.until(lambda: known_before == set(checkpointed_claims(paths)), "the checkpoint")
            driver.kill()  # its pods run on, and its slices disappear
            driver.wait(WAIT_SECONDS)
            site.until(lambda: not is_published(site), "the wipe")
            driver = start_driver(kubeconfig, paths, tmp_path / "driver.log")
            site.until(lambda: is_published(site), "the slices")
            site.cluster.apply(pod_with_claims("late", {"x": "template:one"}))
            site.runs("late")
            assert len(prepared_claims(paths)) == 2
            for name in ("early", "late"):
                site.cluster.delete("Pod", name)
                site.gone("Pod", name)
            # What it prepared before it was killed it does not know any more, and leaves.
            assert prepared_claims(paths) == known_before
            site.until(lambda: not checkpointed_claims(paths), "the checkpoint")
        finally:
            driver.kill()
            driver.wait(WAIT_SECONDS)


class Processes:
    """The kubelet's side and the driver's, each in a process that can be killed at any moment."""

    def __init__(self, kubeconfig: Path, plugin_dir: Path, log: Path) -> None:
        self._kubeconfig, self._plugin_dir, self._log = kubeconfig, plugin_dir, log
        self.paths = NodePaths(plugin_dir / NODE)
        self.paths.create()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        if name == "driver":
            self._running[name] = start_driver(self._kubeconfig, self.paths, self._log)
            return
        with self._log.open("ab") as output:
            self._running[name] = subprocess.Popen(
                [
                    *PROGRAM,
                    "nodes",
                    f"--kubeconfig={self._kubeconfig}",
                    f"--plugin-dir={self._plugin_dir}",
                    "--port=0",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait(WAIT_SECONDS)

    def close(self) -> None:
        for name in tuple(self._running):
            self.kill(name)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_either_side_is_killed_at_any_moment(tmp_path: Path, plugin_dir: Path) -> None:
    """Prepared state is neither lost nor doubled: CDI files, checkpoint and running pods agree in the end.

    The driver forgets what it prepared when it is killed, so files of claims that are gone may stay.
    """
    chance = random.Random(SEED)  # noqa: S311 - the same moments in every run
    with running_site(tmp_path / "cluster", None, has_nodes=False) as site:
        node = {"name": NODE, "labels": {"allot.dev/simulated": "true"}}
        site.cluster.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": node},
            device_class("test", DRIVER),
            a_template("one", "test"),
        )
        processes = Processes(site.cluster.kubeconfig, plugin_dir, tmp_path / "processes.log")
        try:
            processes.start("driver")
            processes.start("nodes")
            living: list[str] = []
            for moment in range(MOMENTS):
                if len(living) < 6:
                    name = f"p{moment}"
                    site.cluster.apply(pod_with_claims(name, {"x": "template:one"}))
                    living.append(name)
                if len(living) > 2 and chance.random() < 0.6:
                    site.cluster.delete("Pod", living.pop(chance.randrange(len(living))))
                time.sleep(chance.uniform(0.0, 2.5))
                victim = chance.choice(("driver", "nodes"))
                processes.kill(victim)
                time.sleep(chance.uniform(0.0, 1.0))
                processes.start(victim)
            _settle(site, processes.paths, living)
            for name in living:
                site.cluster.delete("Pod", name)
            _settle(site, processes.paths, [])
        finally:
            processes.close()


def _settle(site: Site, paths: NodePaths, living: list[str]) -> None:
    def until(holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 180.0  # a driver publishes again after up to 30 s
        while not holds():
            assert time.monotonic() < deadline, f"timed out waiting for {what}"
            time.sleep(0.5)

    def running() -> list[str]:
        pods = site.cluster.list("Pod", "default")
        return sorted(
            pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"
        )

    def allocated() -> set[str]:
        claims = site.cluster.list("ResourceClaim", "default")
        return {claim["metadata"]["uid"] for claim in claims}

    until(lambda: running() == sorted(living), f"{sorted(living)} to run")
    until(lambda: len(site.cluster.list("Pod", "default")) == len(living), "other pods to go")
    until(lambda: len(allocated()) == len(living), "claims of other pods to go")
    until(lambda: set(checkpointed_claims(paths)) == allocated(), "the checkpoint")
    until(lambda: prepared_claims(paths) >= allocated(), "the driver's state")
    files = [path.name for path in paths.cdi.iterdir()]
    assert all(sum(uid in name for name in files) == 1 for uid in allocated())
    assert set(checkpointed_claims(paths).values()) <= {(1, 1)}
