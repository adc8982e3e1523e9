"""One attack on one cluster, from its start to the clean-up, and the figures of it.

    start ─ watchdog ─ attack, ordinary pods meanwhile ─ SIGTERM ─ start again ─ delete it all ─ SIGTERM

What should not have happened is collected, so that all figures are there in any case.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests.acceptance.runner.rest import CONNECTION_ERRORS, RestClient
from tests.attacks.clusters import Cluster
from tests.attacks.floods import GONE, MERGE_PATCH, Flood, Run
from tests.attacks.manifests import (
    CLASS,
    DRIVER,
    Manifest,
    collection,
    collection_of,
    path_of,
)
from tests.attacks.ordinary import OrdinaryPods
from tests.attacks.watchdog import ASKING

LIVEZ: Final = "/livez"
KUBERNETES_SHAPE: Final = "kubernetes"
GET: Final = "/api/v1/namespaces/default"
WATCHDOG: Final = Path(__file__).with_name("watchdog.py")

ANSWER_SECONDS: Final = 0.1
CONTROLS: Final = 5
"""A cluster may also leave us waiting so many times as long as the control does."""
BOUND_SECONDS: Final = 60.0
TOLD_SECONDS: Final = 90.0
SIGTERM_SECONDS: Final = 5.0
RESTART_SECONDS: Final = 3.0
SLOW_START: Final = 3
"""A machine on which an empty cluster takes long to start is given so many times that long."""
CLEAN_UP_SECONDS: Final = 180.0
ATTACKERS: Final = "example.com/"
"""In the names of an attack's finalizers."""
DELETED_KINDS: Final = (
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "CustomResourceDefinition",
    "DeviceTaintRule",
    "CronJob",
    "Job",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "ResourceQuota",
    "Pod",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourcePoolStatusRequest",
    "ConfigMap",
)
"""Deleted after each attack, those that create or refuse others first."""


@dataclass(frozen=True)
class Attack:
    """What is sent, and what must come of it."""

    name: str
    objects: Sequence[Manifest] = ()
    """Created one after the other, by one client."""
    flood: Run | None = None
    """Then this, until the cluster is stopped."""
    seconds: float = 10.0
    """How long ordinary pods are created and the cluster is watched, at least."""
    finite_seconds: float = 0.0
    """How long the flood may take to end by itself, if that is waited for."""
    told: str = ""
    """A pod that cannot be scheduled and must be told so."""
    names: Sequence[str] = ()
    """What must be named to it if a limit ended the decision."""
    bound: int = 0
    """So many pods of the attack itself must be bound."""


@dataclass
class Figures:
    """What an attack did, in seconds and megabytes."""

    attack: str
    shape: str
    livez: float = 0.0
    livez_own: float = 0.0
    get: float = 0.0
    get_own: float = 0.0
    control: float = 0.0
    watched: float = 0.0
    slowest_create: float = 0.0
    ordinary_pods: int = 0
    slowest_ordinary: float = 0.0
    told_after: float = 0.0
    message: str = ""
    peak_memory: float = 0.0
    sigterm: float = 0.0
    empty_start: float = 0.0
    empty_start_own: float = 0.0
    restart: float = 0.0
    restart_own: float = 0.0
    clean_up: float = 0.0
    clean_up_get_own: float = 0.0
    flood_codes: dict[str, int] = field(default_factory=dict)
    watchdog: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    def row(self) -> str:
        return (
            f"{self.shape:10} {self.attack:26} {self.livez * 1000:7.0f} {self.livez_own * 1000:6.0f} "
            f"{self.get * 1000:7.0f} {self.get_own * 1000:6.0f} {self.control * 1000:7.0f} "
            f"{self.ordinary_pods:4} {self.slowest_ordinary:7.1f} {self.told_after:6.1f} "
            f"{self.peak_memory:6.0f} {self.sigterm:6.1f} {self.restart:6.1f} {self.restart_own:6.1f} "
            f"{self.empty_start:6.1f} "
            f"{self.clean_up:6.1f}"
        )


HEADER: Final = (
    f"{'shape':10} {'attack':26} {'livez':>7} {'own':>6} {'GET':>7} {'own':>6} {'control':>7} "
    f"{'pods':>4} {'slowest':>7} {'told':>6} {'MB':>6} {'TERM':>6} {'start':>6} {'own':>6} {'empty':>6} {'clean':>6}"
)


class PatientClient(RestClient):
    """Waits until thousands of objects are deleted; a second request for the same would only be in the way."""

    def _connect(self, timeout_seconds: float) -> HTTPConnection:
        return super()._connect(CLEAN_UP_SECONDS)


class Watchdog:
    """The process that asks."""

    def __init__(self, cluster: Cluster) -> None:
        address = cluster.address
        self._process = subprocess.Popen(
            [sys.executable, str(WATCHDOG)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        settings = {
            "host": address.host,
            "port": address.port,
            "ca_file": str(cluster.ca_file),
            "token": address.token,
            "pid": cluster.api_server_pid,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == ASKING

    def stop(self) -> dict[str, Any]:
        """What it saw."""
        said, _ = self._process.communicate(timeout=120)
        found: dict[str, Any] = json.loads(said)
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def run_attack(
    cluster: Cluster, shape: str, attack: Attack, *, is_measured_only: bool = False
) -> Figures:
    """All of it. `is_measured_only` leaves out what comes after the watching."""
    figures = Figures(attack.name, shape)
    empty = cluster.start()
    figures.empty_start, figures.empty_start_own = empty
    with cluster.client() as client, _flooding(cluster) as flood:
        _watch_attack(cluster, client, attack, flood, figures)
        figures.peak_memory = _peak_megabytes(cluster.api_server_pid)
        if not is_measured_only:
            _stop(cluster, figures)
        flood.stopping.set()
    figures.flood_codes = dict(flood.codes)
    if not is_measured_only:
        _start_again(cluster, figures)
        with PatientClient.from_kubeconfig(cluster.kubeconfig) as client:
            _clean_up(cluster, client, figures)
        _stop(cluster, figures)
    if "Traceback" in cluster.log:
        at = cluster.log.index("Traceback")
        figures.problems.append(
            f"a traceback in the log: …{cluster.log[max(at - 500, 0) : at + 2500]}"
        )
    return figures


@contextmanager
def _flooding(cluster: Cluster) -> Iterator[Flood]:
    """A flood that ends with the block, once it has begun."""
    flood = Flood(cluster.address)
    try:
        yield flood
    finally:
        flood.stopping.set()


def _watch_attack(
    cluster: Cluster, client: RestClient, attack: Attack, flood: Flood, figures: Figures
) -> None:
    watchdog = Watchdog(cluster)
    ordinary = OrdinaryPods(cluster.client())
    try:
        ordinary.start()
        started = time.monotonic()
        _create(client, attack.objects, figures)
        thread = _begin(attack, flood)
        if thread is not None and attack.finite_seconds:
            thread.join(attack.finite_seconds)
            if thread.is_alive():
                figures.problems.append(f"not all was sent: {dict(flood.codes)}")
        if attack.told:
            _wait_until_told(client, attack, figures)
        if attack.bound:
            _wait_until_bound(client, attack, figures)
        time.sleep(max(started + attack.seconds - time.monotonic(), 0))
        ordinary.finish(BOUND_SECONDS)
        seen = watchdog.stop()
    except BaseException:
        watchdog.kill()
        ordinary.finish(0)
        raise
    if flood.broken:
        figures.problems.append(f"the flood ended early: {flood.broken}")
    _judge_ordinary(ordinary, figures)
    _judge_answers(seen, figures)


def _create(client: RestClient, objects: Sequence[Manifest], figures: Figures) -> None:
    for manifest in objects:
        started = time.monotonic()
        answer = client.request("POST", collection_of(manifest), body=manifest)
        while answer.code == 429:
            time.sleep(0.5)
            answer = client.request("POST", collection_of(manifest), body=manifest)
        figures.slowest_create = max(figures.slowest_create, time.monotonic() - started)
        if answer.is_error:
            raise AssertionError(f"{path_of(manifest)} is refused: {str(answer.body)[:3000]}")


def _begin(attack: Attack, flood: Flood) -> threading.Thread | None:
    run = attack.flood
    if run is None:
        return None

    async def sending() -> None:
        try:
            await run(flood)
        except GONE as error:  # the cluster is stopped while the flood is still being prepared
            flood.broken = repr(error)

    thread = threading.Thread(target=lambda: asyncio.run(sending()), daemon=True)
    thread.start()
    return thread


def _condition(client: RestClient, name: str) -> Manifest | None:
    answer = client.request("GET", f"{collection('Pod')}/{name}")
    if answer.is_error:
        return None
    conditions = answer.body.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), None)


def _is_final(condition: Manifest) -> bool:
    """Whether there is a decision, and not merely word that it takes long."""
    message = condition.get("message", "")
    return condition["status"] == "True" or (bool(message) and "goes on" not in message)


def _wait_until_told(client: RestClient, attack: Attack, figures: Figures) -> None:
    """The pod has been told why it waits, or it could be scheduled after all."""
    started = time.monotonic()
    while True:
        condition = _condition(client, attack.told)
        if condition is not None and _is_final(condition):
            break
        if time.monotonic() > started + TOLD_SECONDS:
            figures.problems.append(f"pod {attack.told} was not told anything: {condition}")
            return
        time.sleep(0.1)
    figures.told_after = time.monotonic() - started
    figures.message = condition.get("message", "") or "scheduled"
    is_limited = "limit" in figures.message or "Without an answer" in figures.message
    missing = [name for name in attack.names if name not in figures.message]
    if is_limited and missing:
        figures.problems.append(f"{missing} not named in: {figures.message}")


def _wait_until_bound(client: RestClient, attack: Attack, figures: Figures) -> None:
    started = time.monotonic()
    own = {each["metadata"]["name"] for each in attack.objects if each["kind"] == "Pod"}
    while True:
        pods = client.call("GET", collection("Pod"))["items"]
        bound = [
            each
            for each in pods
            if each["metadata"]["name"] in own and each["spec"].get("nodeName")
        ]
        if len(bound) >= attack.bound:
            break
        if time.monotonic() > started + TOLD_SECONDS:
            figures.problems.append(f"{len(bound)} of {attack.bound} pods are bound")
            return
        time.sleep(0.2)
    figures.told_after = time.monotonic() - started


def _judge_ordinary(ordinary: OrdinaryPods, figures: Figures) -> None:
    figures.ordinary_pods = len(ordinary.bound)
    figures.slowest_ordinary = ordinary.slowest
    if ordinary.unbound:
        figures.problems.append(f"ordinary pods are not bound: {ordinary.unbound}")
    if not ordinary.bound or ordinary.slowest > BOUND_SECONDS:
        figures.problems.append(f"an ordinary pod was bound after {ordinary.slowest:.1f} s")
    if ordinary.problems:
        figures.problems.append(f"ordinary requests failed: {ordinary.problems[:5]}")


def _judge_answers(seen: dict[str, Any], figures: Figures) -> None:
    """How our API server answered; that of Kubernetes is only shown."""
    targets = seen["targets"]
    livez, get, control = targets[LIVEZ], targets[GET], targets["control"]
    figures.watchdog, figures.watched = targets, seen["seconds"]
    figures.livez, figures.livez_own = livez["longest"], livez["own_longest"]
    figures.get, figures.get_own = get["longest"], get["own_longest"]
    figures.control = control["longest"]
    if figures.shape == KUBERNETES_SHAPE:
        return
    allowed = max(ANSWER_SECONDS, CONTROLS * control["longest"])
    for name, target in ((LIVEZ, livez), (GET, get)):
        if target["own_longest"] > allowed:
            figures.problems.append(
                f"{name} was without an answer for {target['own_longest'] * 1000:.0f} ms of the server's own "
                f"time ({target['longest'] * 1000:.0f} ms in all; control {control['longest'] * 1000:.0f} ms); "
                f"slowest: {target['slowest']}"
            )
        if target["errors"] or set(target["codes"]) - {"200", "429"}:
            figures.problems.append(f"{name}: {target['errors']} {target['codes']}")
    if "429" in livez["codes"]:
        figures.problems.append(f"{LIVEZ} was refused: {livez['codes']}")


def _peak_megabytes(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _stop(cluster: Cluster, figures: Figures) -> None:
    seconds = cluster.stop()
    figures.sigterm = max(figures.sigterm, seconds)
    if seconds > SIGTERM_SECONDS + CONTROLS * figures.control:
        figures.problems.append(f"SIGTERM was obeyed after {seconds:.1f} s")


def _start_again(cluster: Cluster, figures: Figures) -> None:
    figures.restart, figures.restart_own = cluster.start()
    if figures.restart_own > max(RESTART_SECONDS, SLOW_START * figures.empty_start_own):
        figures.problems.append(
            f"started again it answered after {figures.restart_own:.1f} s of its own time ({figures.restart:.1f} s "
            f"in all), empty after {figures.empty_start_own:.1f} s ({figures.empty_start:.1f} s)"
        )


def _clean_up(cluster: Cluster, client: RestClient, figures: Figures) -> None:
    """All of it can be deleted with ordinary requests, and then an ordinary pod is bound."""
    watchdog = Watchdog(cluster)
    try:
        started = time.monotonic()
        slices = f"{collection('ResourceSlice')}?fieldSelector=spec.driver={DRIVER}"
        paths = [*(f"{collection(kind)}" for kind in DELETED_KINDS), slices]
        client.request("DELETE", f"{collection('DeviceClass')}/{CLASS}")
        while left := [path for path in paths if _is_left(client, path)]:
            if time.monotonic() > started + CLEAN_UP_SECONDS:
                figures.problems.append(f"cannot be deleted: {left}")
                break
            time.sleep(0.1)
        figures.clean_up = time.monotonic() - started
        ordinary = OrdinaryPods(cluster.client(), "afterwards")
        ordinary.start()
        time.sleep(0.5)
        ordinary.finish(BOUND_SECONDS)
        if not ordinary.bound or ordinary.unbound:
            figures.problems.append(
                f"after the clean-up an ordinary pod is not bound: {ordinary.unbound}, {ordinary.problems[:5]}, "
                f"{[_condition(client, name) for name in ordinary.unbound]}"
            )
        seen = watchdog.stop()
    except BaseException:
        watchdog.kill()
        raise
    figures.clean_up_get_own = seen["targets"][GET]["own_longest"]


def _is_left(client: RestClient, path: str) -> bool:
    """Whether there is something to delete; if so, it is deleted."""
    joined = f"{path}{'&' if '?' in path else '?'}"
    if path.endswith("configmaps"):
        joined += "fieldSelector=metadata.name!=kube-root-ca.crt&"
    try:
        listed = client.request("GET", f"{joined}limit=1")
        if listed.code == 404 or (listed.code == 200 and not listed.body["items"]):
            return False
        for item in listed.body["items"] if listed.code == 200 else ():
            _free(client, f"{path.split('?', maxsplit=1)[0]}/{item['metadata']['name']}", item)
        client.request("DELETE", f"{joined}gracePeriodSeconds=0")
    except CONNECTION_ERRORS:
        return True  # a long delete goes on without us
    return True


def _free(client: RestClient, path: str, item: Manifest) -> None:
    """Remove finalizers of the attack from an object that is being deleted: no controller does."""
    metadata = item["metadata"]
    held = [name for name in metadata.get("finalizers", ()) if ATTACKERS in name]
    if held and "deletionTimestamp" in metadata:
        kept = [name for name in metadata["finalizers"] if ATTACKERS not in name]
        client.request(
            "PATCH", path, body={"metadata": {"finalizers": kept}}, content_type=MERGE_PATCH
        )
