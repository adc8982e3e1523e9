"""A whole cluster in one process, as programs embed it: `allot.cluster.running_cluster`.

python bench/attacks/one_process.py DATA_DIR PORT HARDWARE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from allot.apiserver.running import ServerOptions
from allot.cli.components import component_runner
from allot.cli.signals import stopped_by_signals
from allot.cluster import running_cluster
from allot.components import ClusterParts
from allot.driver.loading import load_hardware
from allot.features import DEFAULTS


async def run(directory: Path, port: int, hardware: str) -> None:
    options = ServerOptions(directory, DEFAULTS, port=port)
    stopped = asyncio.Event()
    with stopped_by_signals(stopped.set):
        async with running_cluster(options, ClusterParts(hardware=[load_hardware(hardware)])):
            await stopped.wait()


if __name__ == "__main__":
    with component_runner() as runner:
        runner.run(run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
