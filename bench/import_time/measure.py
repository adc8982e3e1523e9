"""What `import allot`, its first uses and small commands cost, compared with starting Python: time, and time of the CPU.

The second hardly depends on what else the machine does.

./scripts/bench import_time
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROUNDS = 7
EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICES = str(EXAMPLES / "base" / "devices.yaml")
CLAIMS = str(EXAMPLES / "base" / "claims.yaml")


def command(*words: str) -> str:
    """A program that runs an allot command, and prints nothing."""
    return (
        "import os, sys; os.dup2(os.open(os.devnull, os.O_WRONLY), 1);"
        f"sys.argv[1:] = {list(words)!r}; from allot.cli.main import run; run()"
    )


PROGRAMS = {
    "python -c pass": "pass",
    "import allot": "import allot",
    "allot.load": "import allot; allot.load",
    "allot.compile": "import allot; allot.compile",
    "explain": "import allot; allot.Explanation",
    "allot.connect": "import allot; allot.connect",
    "allot.testing": "import allot; allot.testing.RealTimeCluster",
    "allot --help": command("--help"),
    "explain --help": command("explain", "--help"),
    "status -f": command("status", "-f", DEVICES),
    "explain -f": command("explain", "claim/shared-gpu", "-f", DEVICES, "-f", CLAIMS),
}


class Cost(NamedTuple):
    """Seconds that a program takes, and seconds of the CPU, in its own code and in the system's."""

    elapsed: float
    cpu: float


def cost(program: str) -> Cost:
    start, cpu_start = time.perf_counter(), _children_cpu()
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - our own programs
    return Cost(time.perf_counter() - start, _children_cpu() - cpu_start)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(programs: Sequence[str]) -> dict[str, Cost]:
    """The median of each, with the rounds interleaved, so that a busy moment touches all of them."""
    costs: dict[str, list[Cost]] = {program: [] for program in programs}
    for _ in range(ROUNDS):
        for program in programs:
            costs[program].append(cost(program))
    return {
        program: Cost(median(each.elapsed for each in found), median(each.cpu for each in found))
        for program, found in costs.items()
    }


def main() -> None:
    found = measure(tuple(PROGRAMS.values()))
    base = found["pass"]
    print(f"{'program':<16} {'ms':>6} {'more':>6} {'ratio':>6} {'CPU ms':>7} {'more':>6}")
    for name, program in PROGRAMS.items():
        total, cpu = found[program]
        print(
            f"{name:<16} {total * 1e3:6.0f} {(total - base.elapsed) * 1e3:6.0f}"
            f" {total / base.elapsed:6.2f} {cpu * 1e3:7.0f} {(cpu - base.cpu) * 1e3:6.0f}"
        )


if __name__ == "__main__":
    main()
