"""The example driver as a process of its own, on a simulated node: pods run, and it is killed and restarted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.integration.driver_site import Site, running_site

EXAMPLE = Path(__file__).parents[2] / "examples" / "driver"
NODE = "n1"
STOP_SECONDS = 30


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    plugin_dir = Path(tempfile.mkdtemp(prefix="allot-"))  # short: it has sockets
    try:
        with running_site(tmp_path, plugin_dir) as running:
            running.add_node(NODE)
            yield running
    finally:
        shutil.rmtree(plugin_dir)


@contextmanager
def running_driver(site: Site, hardware: Path) -> Iterator[subprocess.Popen[bytes]]:
    paths = site.paths(NODE)
    command = [
        sys.executable, str(EXAMPLE / "file_driver.py"), "--hardware", str(hardware), "--node-name", NODE,
        "--kubeconfig", str(site.cluster.kubeconfig), "--kubelet-dir", str(paths.root), "--cdi-dir", str(paths.cdi),
        "--repair-seconds", "1",
    ]  # fmt: skip
    log = hardware.parent / "driver.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(STOP_SECONDS) in (0, -signal.SIGKILL), log.read_text()
        finally:
            process.kill()


def test_pods_run_with_files_and_the_driver_may_crash(site: Site, tmp_path: Path) -> None:
    hardware = tmp_path / "hardware"
    hardware.mkdir()
    (hardware / "disk-1.img").write_text("one")
    device_class, claim, pod = yaml.safe_load_all((EXAMPLE / "manifests.yaml").read_text())

    with running_driver(site, hardware) as driver:
        site.cluster.apply(device_class, claim, pod)
        found = site.runs("reader")
        given = json.loads(found["metadata"]["annotations"]["allot.dev/container-devices"])["main"]
        assert given["env"] == ["DISK=disk-1"]
        driver.kill()
        driver.wait(STOP_SECONDS)

    claim["metadata"]["name"] = "second"
    pod["metadata"]["name"] = "second"
    pod["spec"]["resourceClaims"][0]["resourceClaimName"] = "second"
    site.cluster.apply(claim, pod)
    site.cluster.delete("Pod", "reader")
    with running_driver(site, hardware):
        site.gone("Pod", "reader")
        site.runs("second")
        (hardware / "disk-2.img").write_text("two")
        site.until(
            lambda: (
                [len(each["spec"]["devices"]) for each in site.cluster.list("ResourceSlice")] == [2]
            ),
            "the new file to be published",
        )
        assert len(list(site.paths(NODE).cdi.iterdir())) == 1
    assert not list(site.paths(NODE).registry.iterdir())
