"""`allot top` with a large cluster that changes: `./scripts/bench dashboard/top [--nodes N] [--seconds S]`.

The cluster is that of `measure.py`: N nodes with 20 devices each, of which half are held, and 200 changes a second. The
application runs without a terminal. Printed are, for each view, the share of a core that it uses, how often it was
drawn, and the longest time for which it did not react to keys.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from random import Random

from measure import DEVICES, a_cluster, claim_of, longest_stretch  # type: ignore[import-not-found]

from allot.cli.components import component_runner
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import ObservedCluster
from allot.terminal.app import TopApp
from allot.terminal.views import VIEWS

SIZE = (160, 50)


class ChangingSource:
    """A cluster whose claims change, followed as `allot top` follows one."""

    title = "bench"
    is_live = True
    is_loading = False
    failure = ""

    def __init__(self, objects: Snapshot) -> None:
        self.revision = 0
        self._cluster = ObservedCluster(objects)
        self._objects = objects
        self.devices = LiveDevices.of(self._cluster)

    def change(self, node: int, device: int, *, is_held: bool) -> None:
        claim = claim_of(node, device, is_held=is_held)
        old = self._objects.get(resources.RESOURCE_CLAIMS, claim.key)
        self._objects.put(resources.RESOURCE_CLAIMS, claim)
        self.revision += 1
        self.devices.change(resources.RESOURCE_CLAIMS, old, claim)

    def observed(self) -> ObservedCluster:
        return ObservedCluster(self._objects.copy())

    async def run(self) -> None:
        return


async def change(source: ChangingSource, nodes: int, rate: int, seconds: float) -> None:
    random, count, began = Random(1), 0, time.monotonic()  # noqa: S311 - not a secret
    held: dict[tuple[int, int], bool] = {}
    while time.monotonic() - began < seconds:
        due = int((time.monotonic() - began) * rate)
        while count < due:
            place = random.randrange(nodes), random.randrange(DEVICES)
            held[place] = not held.get(place, place[1] % 2 == 0)
            source.change(*place, is_held=held[place])
            count += 1
        await asyncio.sleep(0.01)


async def run(nodes: int, rate: int, seconds: float) -> None:
    source = ChangingSource(a_cluster(nodes).objects)
    app = TopApp(source)
    began = time.monotonic()
    async with app.run_test(size=SIZE) as pilot:
        while source.devices.refresh(50):
            await asyncio.sleep(0)
        await pilot.pause()
        print(f"{nodes * DEVICES} devices shown after {time.monotonic() - began:.1f} s")
        for name, title in VIEWS.items():
            app.action_view(name)
            await pilot.pause(1.0)
            drawings = app.drawings
            spent = time.process_time()
            async with longest_stretch(pause=0.001) as stretch:
                await change(source, nodes, rate, seconds)
            spent = time.process_time() - spent
            print(
                f"{title}: {100 * spent / seconds:.0f} % of a core, {app.drawings - drawings} drawings,"
                f" busy for at most {1000 * stretch.seconds:.0f} ms at a stretch"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rate", type=int, default=200, help="changes per second")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each view")
    given = parser.parse_args()
    with component_runner() as runner:
        runner.run(run(given.nodes, given.rate, given.seconds))


if __name__ == "__main__":
    main()
