"""How long questions about a whole cluster take: simulate, explain --all-pending, fit, what-if.

Run it with `./scripts/bench questions [--large]`. CPU time of one process; objects are made before. `--large` adds
10,000 nodes with 8 devices each and 50,000 pods. Garbage is collected as often as in the command line.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clusters import a_cluster, a_pod, some_pods  # type: ignore[import-not-found]

from allot.cli.main import GARBAGE_THRESHOLD
from allot.client import resources
from allot.questions.changes import DrainNode
from allot.questions.devices import list_devices
from allot.questions.fit import FitItem, fit
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pending import pending_pods
from allot.questions.pod_templates import PodTemplate
from allot.questions.simulation import simulate
from allot.questions.what_if import what_if


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--nodes", type=int, default=1_000)
    arguments = parser.parse_args()
    gc.set_threshold(GARBAGE_THRESHOLD)
    print(f"{'what':56} {'seconds':>8} {'wanted':>8}")
    nodes = arguments.nodes
    simulated = _simulation(nodes, 5 * nodes, 5.0)
    _measured("devices", lambda: list_devices(simulated), None)
    _fit(nodes)
    _pending(nodes, 5_000)
    _measured(
        f"what-if --drain, {nodes} nodes, {5 * nodes} pods",
        lambda: what_if(simulated, [DrainNode("drain", "node-00000")]),
        None,
    )
    if arguments.large:
        _simulation(10_000, 50_000, 120.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MB")


def _measured(what: str, work: Callable[[], Any], wanted: float | None) -> Any:
    began = time.process_time()
    found = work()
    seconds = time.process_time() - began
    print(f"{what:56} {seconds:8.2f} {wanted if wanted is not None else '':>8}")
    return found


def _simulation(nodes: int, pods: int, wanted: float) -> ObservedCluster:
    cluster = a_cluster(nodes)
    for pod in some_pods(pods):
        cluster.objects.put(resources.PODS, pod)
    what = f"simulate {pods} pods on {nodes} nodes x 8 devices"
    found = _measured(what, lambda: simulate(cluster), wanted)
    placed = found.answer.figures.pods_placed
    assert placed == pods, f"{placed} of {pods} pods were placed"
    result: ObservedCluster = replace(cluster, objects=found.objects)
    return result


def _fit(nodes: int) -> None:
    item = FitItem(PodTemplate("pod/more", a_pod("more", "one"), 1))
    cluster = a_cluster(nodes)
    answer = _measured(f"fit on {nodes} nodes", lambda: fit(cluster, [item]), 5.0)
    assert answer.rounds == 8 * nodes


def _pending(nodes: int, pods: int) -> None:
    """As many pods as devices run, and as many more wait, of five kinds."""
    cluster = a_cluster(nodes)
    for pod in some_pods(8 * nodes, "one"):
        cluster.objects.put(resources.PODS, pod)
    filled = simulate(cluster).objects
    cluster = replace(cluster, objects=filled)
    for number in range(pods):
        pod = a_pod(f"waiting-{number:05}", ("one", "two")[number % 2])
        cpu = str(1 + number % 5)
        container = pod.data["spec"]["containers"][0]
        changed = {**container, "resources": {**container["resources"], "requests": {"cpu": cpu}}}
        filled.put(resources.PODS, pod.with_value([changed], "spec", "containers"))
    _measured(
        f"explain --all-pending, {pods} pods, {nodes} nodes", lambda: pending_pods(cluster), 10.0
    )


if __name__ == "__main__":
    main()
