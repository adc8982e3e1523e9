"""The dashboard with a large cluster that changes: `./scripts/bench dashboard [--nodes N] [--seconds S]`.

The cluster is one in memory: N nodes with 20 devices each, of which half are held. Every second 200 claims change: one
is allocated, or released. The page runs in Chromium (`apt install chromium`). Printed are the time that the page needs
for an update, the memory of its JavaScript and of its process, and the share of a core that the server uses.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import resource
import shutil
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from allot.api.claims import ResourceClaim
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.dashboard.access import Access
from allot.dashboard.cluster_source import FixedCluster
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.server import DashboardServer
from allot.questions.observed_cluster import ObservedCluster
from allot.testing.builders import (
    a_claim,
    a_consumer,
    a_device,
    a_node,
    a_slice,
    an_allocation,
)

DEVICES = 20
NAMESPACES = ("training", "research", "inference", "batch", "vision", "notebooks")
LONG_FRAME_SECONDS = 0.1


class ChangingCluster(FixedCluster):
    """A cluster whose claims change."""

    def clock(self) -> float:
        return time.time()

    def put_claim(self, claim: ResourceClaim) -> None:
        old = self.objects.get(resources.RESOURCE_CLAIMS, claim.key)
        self.objects.put(resources.RESOURCE_CLAIMS, claim)
        self._changed(resources.RESOURCE_CLAIMS, old, claim)


def claim_of(node: int, device: int, *, is_held: bool) -> ResourceClaim:
    allocation = an_allocation(f"gpu-{device}", pool=f"node-{node}") if is_held else None
    pod = a_consumer(f"pod-{node}-{device}")
    return a_claim(
        name=f"claim-{node}-{device}", namespace=NAMESPACES[(node + device) % len(NAMESPACES)],
        allocation=allocation, reserved_for=[pod] if is_held else [],
    )  # fmt: skip


def a_cluster(nodes: int) -> ChangingCluster:
    objects = Snapshot()
    devices = tuple(a_device(f"gpu-{number}", {"model": "H100"}) for number in range(DEVICES))
    for node in range(nodes):
        name = f"node-{node}"
        objects.put(resources.NODES, a_node(name))
        objects.put(resources.RESOURCE_SLICES, a_slice(*devices, name=f"slice-{node}", node=name))
        for device in range(DEVICES):
            claim = claim_of(node, device, is_held=device % 2 == 0)
            objects.put(resources.RESOURCE_CLAIMS, claim)
    return ChangingCluster(f"{nodes} nodes", ObservedCluster(objects))


class Stretch:
    """The longest time for which the event loop did not come back to a task that always wants to run."""

    seconds = 0.0


@asynccontextmanager
async def longest_stretch(pause: float = 0) -> AsyncIterator[Stretch]:
    stretch = Stretch()

    async def watch() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            stretch.seconds = max(stretch.seconds, now - last - pause)
            last = now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield stretch
    finally:
        watching.cancel()


async def everything_sent(dashboard: Dashboard) -> int:
    """The bytes that a new viewer gets until the page is complete."""
    size = 0
    with dashboard.viewers.viewer() as viewer:
        async for data in viewer.messages():
            size += len(data)
            if data.startswith(b"event: figures"):
                break
    return size


async def change(cluster: ChangingCluster, nodes: int, rate: int, seconds: float) -> int:
    random, count, began = Random(1), 0, time.monotonic()  # noqa: S311 - not a secret
    held: dict[tuple[int, int], bool] = {}
    while time.monotonic() - began < seconds:
        due = int((time.monotonic() - began) * rate)
        while count < due:
            place = random.randrange(nodes), random.randrange(DEVICES)
            held[place] = not held.get(place, place[1] % 2 == 0)
            cluster.put_claim(claim_of(*place, is_held=held[place]))
            count += 1
        await asyncio.sleep(0.01)
    return count


async def run(nodes: int, rate: int, seconds: float, picture: str) -> None:
    from playwright.async_api import async_playwright

    began = time.monotonic()
    cluster = a_cluster(nodes)
    print(f"{nodes * DEVICES} devices made in {time.monotonic() - began:.1f} s")
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    access = Access("127.0.0.1", port)
    dashboard = Dashboard(cluster)
    server = DashboardServer(dashboard, access)
    await server.start(listening)
    async with longest_stretch() as stretch:
        began, spent = time.monotonic(), time.process_time()
        await server.started()
        took, spent = time.monotonic() - began, time.process_time() - spent
    print(
        f"floor plan computed in {took:.1f} s, {spent:.1f} s of a core;"
        f" the event loop was busy for at most {1000 * stretch.seconds:.0f} ms at a stretch"
    )
    async with longest_stretch() as stretch:
        sent = await everything_sent(dashboard)
    print(
        f"{sent / 1e6:.1f} MB for a new viewer;"
        f" the event loop was busy for at most {1000 * stretch.seconds:.0f} ms at a stretch"
    )
    idle = await load(cluster, nodes, rate, 5.0)
    print(f"without a viewer: {100 * idle:.1f} % of a core (changes made here included)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-precise-memory-info"],
        )
        page = await browser.new_page(viewport={"width": 1600, "height": 1000})
        began = time.monotonic()
        await page.goto(f"http://127.0.0.1:{port}/?token={access.token}")
        while not await page.evaluate("Boolean(window.allot?.isReady && allot.plan.layout)"):
            await asyncio.sleep(0.05)
        print(f"page ready after {time.monotonic() - began:.1f} s")
        await page.evaluate(MEASURE)
        share = await load(cluster, nodes, rate, seconds)
        found: dict[str, Any] = await page.evaluate("window.measured()")
        print(
            f"with a viewer: {100 * share:.1f} % of a core, so {100 * (share - idle):.1f} % for it"
        )
        print(
            f"updates: {found['updates']}, of {found['cells']} devices; mean {found['mean']:.1f} ms,"
            f" longest {found['longest']:.1f} ms; long tasks over 100 ms: {found['long']}"
        )
        print(f"JavaScript memory: {found['heap']:.0f} MB; renderer: {renderer_memory():.0f} MB")
        if picture:
            await page.screenshot(path=picture)
        await browser.close()
    await server.stop()


MEASURE = """
() => {
  const times = [];
  let cells = 0;
  const apply = allot.change.bind(allot);
  let long = 0;
  new PerformanceObserver((list) => { long += list.getEntries().filter((each) => each.duration > 100).length; })
    .observe({ entryTypes: ["longtask"] });
  allot.plan.painter.drawn = { count: 0, milliseconds: 0, longest: 0 };
  // An update: the change is applied, and the next frame has drawn it.
  allot.change = (change) => {
    const before = performance.now();
    apply(change);
    const applied = performance.now() - before;
    cells += (change.cells || []).length;
    requestAnimationFrame(() => times.push(applied + allot.plan.painter.drawn.milliseconds));
  };
  window.measured = () => ({
    updates: times.length, cells, long,
    mean: times.reduce((sum, each) => sum + each, 0) / Math.max(1, times.length),
    longest: Math.max(0, ...times), heap: performance.memory.usedJSHeapSize / 2 ** 20,
  });
}
"""


def renderer_memory() -> float:
    """The resident memory of the largest renderer of Chromium, in MB."""
    sizes = [0.0]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"--type=renderer" not in command.read_bytes():
                continue
            status = (command.parent / "status").read_text(encoding="ascii")
        except OSError:
            continue
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        sizes.append(int(found[1]) / 1024 if found else 0.0)
    return max(sizes)


async def load(cluster: ChangingCluster, nodes: int, rate: int, seconds: float) -> float:
    """The share of a core that this process uses while the cluster changes."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    await change(cluster, nodes, rate, seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rate", type=int, default=200, help="changes per second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--picture", default="", help="write a screenshot to this file")
    given = parser.parse_args()
    with component_runner() as runner:
        runner.run(run(given.nodes, given.rate, given.seconds, given.picture))


if __name__ == "__main__":
    main()
