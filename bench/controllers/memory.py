"""What all controllers of one manager keep in memory: their copies of pods and claims, and of everything's metadata.

Run it with `python bench/controllers/memory.py [--pods 5000]`. API server with its store in memory and controllers in one
process; what it takes is read before and after the controllers have come to rest.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from pathlib import Path

from claims import CLAIMS, Bench, until  # type: ignore[import-not-found]

from allot.cli.components import component_runner
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.controllers.manager import ControllerManager
from allot.controllers.registry import ALL, select_controllers
from allot.testing.servers import TOKEN, LocalServer

PAGES_PER_MIB = 2**20 / os.sysconf("SC_PAGE_SIZE")


def resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages / PAGES_PER_MIB


async def run(options: argparse.Namespace) -> None:
    pods: int = options.pods
    async with LocalServer() as server:
        empty = resident_mib()
        bench = Bench(server, pods)
        await bench.set_up()
        await bench.create_pods()
        served = resident_mib()
        client = Client(InProcessTransport(server.server.app, TOKEN))
        manager = ControllerManager(client, select_controllers((ALL,)))
        running = asyncio.create_task(manager.run())
        await until(lambda: manager.is_ready)
        while len((await server.get(CLAIMS))["items"]) < pods:
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        both = resident_mib()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    print(f"the process with an empty API server             {empty:6.0f} MiB")
    print(f"with {pods} pods                                  {served:6.0f} MiB")
    print(f"with as many claims, and the copies of all controllers {both:6.0f} MiB")
    print(f"per pod with its claim, stored and copied {(both - empty) / pods * 1024:6.1f} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
