"""Clusters of every shape, as processes that can be watched, stopped and started again.

up          allot up                     API server and components: two processes, SQLite
separate    allot up --separate          a process for each component
etcd        allot up --storage etcd:…    a real etcd beside it
apart       allot apiserver, scheduler, controller-manager, nodes, each started by itself
kubernetes  the same with a real kube-apiserver and its etcd, from the directory that ALLOT_KUBERNETES names
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import yaml
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from allot.apiserver.auth.credentials import prepare_credentials, write_kubeconfig
from allot.cli.data_directory import (
    CONTROLLER_MANAGER_KUBECONFIG,
    DRIVER_KUBECONFIG,
    NODES_KUBECONFIG,
    SCHEDULER_KUBECONFIG,
)
from allot.testing.http_client import Address
from tests.acceptance.runner.rest import RestClient
from tests.acceptance.server_process import PROGRAM
from tests.attacks.watchdog import RunDelay
from tests.contract.etcd_server import EtcdServer

START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.01
DECISION_SECONDS: Final = 5.0
"""As in `allot up`; a scheduler of its own is told so, that attacks last as long on all shapes."""
KUBERNETES: Final = "ALLOT_KUBERNETES"
HARDWARE: Final = """\
nodes:
  count: 2
  capacity: {cpu: 100000, memory: 400Ti, pods: 200000}
pools:
- driver: ordinary.example.com
  devices:
  - name: ordinary-{i}
    count: 32
deviceClasses:
- name: ordinary.example.com
  selectors:
  - cel: {expression: device.driver == "ordinary.example.com"}
"""
GATES: Final = (
    "DRAConsumableCapacity=true,DRADerivedAttributes=true,DRADeviceBindingConditions=true,DRADeviceTaintRules=true,"
    "DRADeviceTaints=true,DRAPartitionableDevices=true,DRAResourcePoolStatus=true,DRASchedulerFilterTimeout=true"
)
"""For kube-apiserver; ours has them on."""


class Start(NamedTuple):
    """How long a cluster took until its first answer, in seconds."""

    seconds: float
    own: float
    """Without the time in which the API server was ready to run and had no core."""


class Killable(Protocol):
    """A process that is there for others."""

    def kill(self) -> None: ...


@dataclass
class Part:
    """One process of a cluster."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self, log: Path) -> None:
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        if self.process is None:
            return
        pids = [*descendants(self.process.pid), self.process.pid] if self.is_running else ()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)


@dataclass
class Cluster:
    """The processes of one cluster, and how to reach it. Stopped and started it keeps its port and its objects."""

    directory: Path
    port: int
    kubeconfig: Path
    ca_file: Path
    parts: list[Part]
    """The first one has the API server; the others need it."""
    below: list[Killable] = field(default_factory=list)
    """Stores, which are never stopped by an attack."""
    foreign: frozenset[str] = frozenset()
    """Parts that are not ours: they are not measured."""

    @property
    def address(self) -> Address:
        config = yaml.safe_load(self.kubeconfig.read_text())
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return Address("127.0.0.1", self.port, config["users"][0]["user"]["token"], context)

    def client(self) -> RestClient:
        return RestClient.from_kubeconfig(self.kubeconfig)

    @property
    def api_server_pid(self) -> int:
        process = self.parts[0].process
        assert process is not None
        for pid in descendants(process.pid):
            with contextlib.suppress(OSError):
                if b"\0apiserver\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return process.pid

    def start(self) -> Start:
        """Returns when all of it is there: how long it took until the API server's first answer."""
        started = time.monotonic()
        self._start_part(self.parts[0])
        while not self._answers():
            assert self.parts[0].is_running, self.log
            assert time.monotonic() < started + START_SECONDS, f"no answer: {self.log}"
            time.sleep(POLL_SECONDS)
        answered = self._answered(started)
        for part in self.parts[1:]:
            self._start_part(part)
        with self.client() as client:
            while not self._is_complete(client):
                assert all(part.is_running for part in self.parts), self.log
                assert time.monotonic() < started + START_SECONDS, f"not complete: {self.log}"
                time.sleep(0.1)
        return answered

    def _answered(self, started: float) -> Start:
        seconds = time.monotonic() - started
        process = self.parts[0].process
        assert process is not None
        waited = RunDelay(*{process.pid, self.api_server_pid}).seconds()
        return Start(seconds, max(seconds - waited, 0.0))

    def _start_part(self, part: Part) -> None:
        if not part.is_running:
            part.start(self.directory / f"{part.name}.log")

    def _answers(self) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
        try:
            connection.request("GET", "/livez")
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _is_complete(self, client: RestClient) -> bool:
        slices = client.request("GET", "/apis/resource.k8s.io/v1/resourceslices?limit=500")
        if slices.is_error:
            return False
        drivers = [each["spec"]["driver"] for each in slices.body["items"]]
        return drivers.count("ordinary.example.com") >= 2

    def stop(self) -> float:
        """SIGTERM to all at once: the seconds until the last of our processes has ended, with all their children."""
        ours = [part for part in self.parts if part.is_running and part.name not in self.foreign]
        processes = [part.process for part in ours if part.process is not None]
        children = [pid for process in processes for pid in descendants(process.pid)]
        started = time.monotonic()
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(STOP_SECONDS)
        while any(_is_alive(pid) for pid in children):
            assert time.monotonic() < started + STOP_SECONDS, f"children left: {children}"
            time.sleep(POLL_SECONDS)
        return time.monotonic() - started

    def kill(self) -> None:
        """End everything that was started, whatever it does."""
        for each in (*reversed(self.parts), *self.below):
            each.kill()

    @property
    def log(self) -> str:
        """What our processes have said."""
        return "\n".join(
            (self.directory / f"{part.name}.log").read_text(errors="replace")
            for part in self.parts
            if part.name not in self.foreign and (self.directory / f"{part.name}.log").exists()
        )


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def hardware_file(directory: Path) -> Path:
    """The nodes and devices of ordinary users."""
    file = directory / "ordinary.yaml"
    file.write_text(HARDWARE)
    return file


def _with_up(directory: Path, *arguments: str) -> Cluster:
    (port,) = free_ports(1)
    data, hardware = directory / "data", hardware_file(directory)
    command = [*PROGRAM, "up", "--data-dir", str(data), "--port", str(port)]
    part = Part("up", [*command, "--hardware", str(hardware), *arguments])
    return Cluster(directory, port, data / "kubeconfig", data / "pki" / "ca.crt", [part])


def _with_etcd(directory: Path) -> Cluster:
    server = EtcdServer(directory)
    cluster = _with_up(directory, "--storage", f"etcd:{server.url}")
    cluster.below.append(server)
    server.start()
    return cluster


def _apart(directory: Path) -> Cluster:
    (port,) = free_ports(1)
    data = directory / "data"
    command = [*PROGRAM, "apiserver", "--data-dir", str(data), "--port", str(port)]
    cluster = Cluster(
        directory, port, data / "kubeconfig", data / "pki" / "ca.crt", [Part("apiserver", command)]
    )
    cluster.parts += _components(cluster, lambda name: data / name)
    return cluster


def _components(cluster: Cluster, file: Callable[[str], Path]) -> Iterator[Part]:
    def connected(name: str) -> list[str]:
        return ["--kubeconfig", str(file(name))]

    alone = ["--no-leader-elect", "--port", "0"]
    limit = ["--decision-timeout", f"{DECISION_SECONDS:g}s"]
    hardware = ["--hardware", str(hardware_file(cluster.directory))]
    yield Part(
        "scheduler", [*PROGRAM, "scheduler", *connected(SCHEDULER_KUBECONFIG), *alone, *limit]
    )
    manager = [*connected(CONTROLLER_MANAGER_KUBECONFIG), "--use-service-account-credentials"]
    yield Part("controller-manager", [*PROGRAM, "controller-manager", *manager, *alone])
    driver = ["--driver-kubeconfig", str(file(DRIVER_KUBECONFIG))]
    yield Part("nodes", [*PROGRAM, "nodes", *connected(NODES_KUBECONFIG), *driver, *hardware])


def _with_kubernetes(directory: Path) -> Cluster:
    programs = Path(os.environ[KUBERNETES])
    port, client_port, peer_port = free_ports(3)
    papers = prepare_credentials(directory / "pki", ["127.0.0.1"], datetime.now(UTC))
    kubeconfig, tokens = directory / "kubeconfig", directory / "tokens.csv"
    write_kubeconfig(
        kubeconfig, f"https://127.0.0.1:{port}", papers.ca_file, "admin", papers.admin_token
    )
    tokens.write_text(f'{papers.admin_token},admin,admin,"system:masters"\n')
    accounts = directory / "pki" / "accounts.key"
    accounts.write_bytes(
        papers.signing_key.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
    )
    url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    etcd = Part(
        "etcd",
        [
            str(programs / "etcd"),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--log-level=warn",
        ],
    )
    server = Part(
        "kube-apiserver",
        [
            str(programs / "kube-apiserver"),
            f"--etcd-servers={url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={papers.cert_file}",
            f"--tls-private-key-file={papers.key_file}",
            f"--token-auth-file={tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            f"--feature-gates={GATES}",
            "--runtime-config=resource.k8s.io/v1alpha3=true",
        ],
    )
    etcd.start(directory / "etcd.log")
    cluster = Cluster(
        directory,
        port,
        kubeconfig,
        papers.ca_file,
        [server],
        [etcd],
        foreign=frozenset({server.name}),
    )
    cluster.parts += _components(cluster, lambda _: kubeconfig)
    return cluster


SHAPES: Final[dict[str, Callable[[Path], Cluster]]] = {
    "up": _with_up,
    "separate": lambda directory: _with_up(directory, "--separate"),
    "etcd": _with_etcd,
    "apart": _apart,
    "kubernetes": _with_kubernetes,
}


@contextlib.contextmanager
def made_cluster(shape: str, directory: Path) -> Iterator[Cluster]:
    """A cluster that is not yet started. In the end nothing of it is left running."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = SHAPES[shape](directory)
    try:
        yield cluster
    finally:
        cluster.kill()
