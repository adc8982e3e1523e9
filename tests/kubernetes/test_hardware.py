"""The hardware profiles on real Kubernetes: it accepts their slices, and its scheduler allocates their examples."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api.base import replace
from allot.api.slices import ResourceSliceSpec
from allot.cli.hardware_output import example_documents
from allot.driver.hardware import Hardware, PoolKey
from allot.driver.loading import load_hardware, profiles
from allot.driver.publisher import HARDWARE_LABEL
from allot.driver.reading import read_hardware
from tests.acceptance.server_process import PROGRAM
from tests.attacks.clusters import Cluster, Part, made_cluster
from tests.kubernetes.programs import GATES, NEEDS_KUBERNETES, program, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), NEEDS_KUBERNETES]
WAIT_SECONDS = 180.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """kube-apiserver, with simulated nodes of all profiles."""
    directory = tmp_path_factory.mktemp("hardware")
    with made_cluster("kubernetes", directory) as found:
        server, *_, nodes = found.parts
        wanted = [option for name in profiles() for option in ("--hardware", name)]
        found.parts = [
            Part(server.name, [*server.command, f"--feature-gates={GATES}"]),
            Part(nodes.name, [*nodes.command, *wanted]),
        ]
        found.start()
        yield found


def objects(cluster: Cluster, *arguments: str) -> list[dict[str, Any]]:
    command = [
        str(program("kubectl")),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "get",
        "-o",
        "json",
    ]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return items


def apply(cluster: Cluster, documents: list[dict[str, Any]]) -> None:
    subprocess.run(
        [str(program("kubectl")), "--kubeconfig", str(cluster.kubeconfig), "apply", "-f", "-"],
        input=yaml.safe_dump_all(documents),
        text=True,
        check=True,
    )


def specs(hardware: Hardware) -> dict[PoolKey, list[ResourceSliceSpec]]:
    """Without the times that the API server adds to taints."""
    return {
        key: [
            replace(
                spec,
                devices=spec.devices
                and tuple(
                    replace(
                        device,
                        taints=tuple(replace(taint, time_added=None) for taint in device.taints),
                    )
                    for device in spec.devices
                ),
            )
            for spec in hardware.slices(key)
        ]
        for key in hardware.sources
    }


def test_all_slices_are_accepted(cluster: Cluster) -> None:
    """What is captured is what the profiles have."""
    wanted = {
        key: found for name in profiles() for key, found in specs(load_hardware(name)).items()
    }
    number = sum(map(len, wanted.values()))
    until = time.monotonic() + WAIT_SECONDS
    while len(published := objects(cluster, "resourceslices")) < number + 2:  # 2 of the others
        assert time.monotonic() < until, f"{len(published)} of {number}: {cluster.log[-4000:]}"
        time.sleep(0.5)

    done = subprocess.run(
        [*PROGRAM, "hardware", "capture", "--kubeconfig", str(cluster.kubeconfig)],
        capture_output=True,
        text=True,
        check=True,
    )

    captured = specs(read_hardware(yaml.safe_load(done.stdout), "captured", "captured"))
    assert {key: captured[key] for key in wanted} == wanted


def test_examples_are_allocated(cluster: Cluster, tmp_path: Path) -> None:
    """On nodes of their profile, by kube-scheduler."""
    documents = []
    for name in profiles():
        claim, pod = example_documents(load_hardware(name))
        claim["metadata"]["name"] = pod["metadata"]["name"] = name
        pod["spec"]["resourceClaims"][0]["resourceClaimName"] = name
        pod["spec"]["nodeSelector"] = {HARDWARE_LABEL: name}
        documents += [claim, pod]
    apply(cluster, documents)
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"leaderElection: {{leaderElect: false}}\nclientConnection: {{kubeconfig: {cluster.kubeconfig}}}\n"
    )
    log = tmp_path / "kube-scheduler.log"
    options = (f"--config={configuration}", "--secure-port=0", f"--feature-gates={GATES}")
    until = time.monotonic() + WAIT_SECONDS
    with running("kube-scheduler", *options, log=log):
        while True:
            claims = objects(cluster, "resourceclaims", "--namespace=default")
            waiting = [
                each["metadata"]["name"]
                for each in claims
                if "allocation" not in each.get("status", {})
            ]
            if not waiting:
                break
            assert time.monotonic() < until, f"{waiting}: {log.read_text()[-4000:]}"
            time.sleep(0.5)

    assert len(claims) == len(profiles())
