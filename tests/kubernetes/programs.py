"""Kubernetes' own programs, from the directory that ALLOT_KUBERNETES names, on an API server of ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.acceptance.server_process import running_cluster
from tests.attacks.clusters import KUBERNETES, free_ports
from tests.integration.client_certificates import client_certificate

NEEDS_KUBERNETES: Final = pytest.mark.skipif(
    KUBERNETES not in os.environ, reason=f"{KUBERNETES} names no directory with its programs"
)
STOP_SECONDS: Final = 60
GATES: Final = ",".join(
    f"{name}=true"
    for name in (
        "DRAConsumableCapacity", "DRADerivedAttributes", "DRADeviceBindingConditions", "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules", "DRADeviceTaints", "DRAFractionalCapacityRange", "DRAListTypeAttributes",
        "DRAOptionalNodeOperations", "DRAPartitionableDevices", "DRAPartitionableDevicesType",
        "DRAResourceClaimGranularStatusAuthorization", "DRAResourcePoolStatus", "DRASchedulerFilterTimeout",
        "NodeDeclaredFeatures",
    )
)  # fmt: skip
SCHEDULER_CONFIGURATION: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %s, qps: 1000, burst: 2000}
podMaxBackoffSeconds: 2
profiles:
- schedulerName: default-scheduler
- schedulerName: short-binding-timeout
  pluginConfig:
  - name: DynamicResources
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: DynamicResourcesArgs, bindingTimeout: 4s}
"""
AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


def program(name: str) -> Path:
    return Path(os.environ[KUBERNETES]) / name


@contextmanager
def running(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One of the programs, until the end of the block; it must not end before."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program(name)), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
        assert process.poll() is None, log.read_text()[-4000:]
    finally:
        process.kill()
        process.wait(STOP_SECONDS)


@contextmanager
def api_server(directory: Path, *arguments: str) -> Iterator[Path]:
    """`allot up` without scheduler, controllers and nodes: its kubeconfig. `audit.log` has all requests."""
    policy = directory / "policy.yaml"
    policy.write_text(AUDIT_POLICY)
    audit = ("--audit-policy-file", str(policy), "--audit-log-path", str(directory / "audit.log"))
    alone = ("--no-scheduler", "--no-controllers", "--no-nodes")
    with running_cluster(directory, *alone, *audit, *arguments) as kubeconfig:
        yield kubeconfig


@contextmanager
def control_plane(directory: Path, *, has_kubelets: bool = False) -> Iterator[None]:
    """kube-scheduler and kube-controller-manager with default settings, as the users of the data directory.

    Nodes of the scenarios have no leases. Kubelets renew theirs, and wait for their taint of a new node to be removed.
    """
    scheduler = str(directory / "scheduler.kubeconfig")
    manager = str(directory / "controller-manager.kubeconfig")
    configuration = directory / "kube-scheduler.yaml"
    configuration.write_text(SCHEDULER_CONFIGURATION % scheduler)
    ports = free_ports(2)
    with ExitStack() as stack:
        stack.enter_context(
            running(
                "kube-scheduler",
                f"--config={configuration}",
                *_delegating(scheduler, ports[0], directory / "kube-scheduler"),
                log=directory / "kube-scheduler.log",
            )
        )
        stack.enter_context(
            running(
                "kube-controller-manager",
                f"--kubeconfig={manager}",
                "--use-service-account-credentials=true",
                f"--root-ca-file={directory / 'pki' / 'ca.crt'}",
                f"--service-account-private-key-file={directory / 'pki' / 'service-accounts.key'}",
                f"--controllers=*{'' if has_kubelets else ',-node-lifecycle-controller'}",
                "--kube-api-qps=400",
                "--kube-api-burst=800",
                *_delegating(manager, ports[1], directory / "kube-controller-manager"),
                log=directory / "kube-controller-manager.log",
            )
        )
        yield


def _delegating(kubeconfig: str, port: int, certificates: Path) -> tuple[str, ...]:
    """Options of a component that asks the API server who its own callers are."""
    return (
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        f"--feature-gates={GATES}",
    )


def node_kubeconfig(directory: Path, name: str) -> Path:
    """The kubeconfig of a kubelet, which has a client certificate."""
    place = directory / name
    place.mkdir()
    user = client_certificate(
        directory / "pki", place, name=f"system:node:{name}", group="system:nodes"
    )
    user["client-certificate"] = str(place / user["client-certificate"])
    return _with_user(directory, place / "kubeconfig", user)


def token_kubeconfig(directory: Path, name: str, token: str) -> Path:
    return _with_user(directory, directory / f"{name}.kubeconfig", {"token": token})


def _with_user(directory: Path, path: Path, user: dict[str, Any]) -> Path:
    config = yaml.safe_load((directory / "kubeconfig").read_text())
    config["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(config))
    return path
