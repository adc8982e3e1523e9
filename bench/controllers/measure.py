"""Claims made and freed, questions about pools, and memory: each measured in a process of its own.

Run it with `./scripts/bench controllers [--pods 5000] [--pools 1000] [--devices 8] [--questions 10] [--only claims,…]`. In
each process one core does everything: API server with its store in memory, informers, controllers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ARGUMENTS = {
    "claims": ("pods",),
    "pool_status": ("pools", "devices", "questions"),
    "memory": ("pods",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--pools", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--only", default=",".join(ARGUMENTS))
    options = parser.parse_args()
    for name in options.only.split(","):
        print(f"--- {name} ---", flush=True)
        given = [f"--{each}={getattr(options, each)}" for each in ARGUMENTS[name]]
        command = [sys.executable, str(HERE / f"{name}.py"), *given]
        subprocess.run(command, check=True)  # noqa: S603 - our own


if __name__ == "__main__":
    main()
