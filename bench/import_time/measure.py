"""What `import allot`, its first uses and small commands cost, compared with starting Python.

./scripts/bench import_time
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

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


def seconds(program: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - our own programs
    return time.perf_counter() - start


def measure(programs: Sequence[str]) -> dict[str, float]:
    """The median of each, with the rounds interleaved, so that a busy moment touches all of them."""
    times: dict[str, list[float]] = {program: [] for program in programs}
    for _ in range(ROUNDS):
        for program in programs:
            times[program].append(seconds(program))
    return {program: median(found) for program, found in times.items()}


def main() -> None:
    found = measure(tuple(PROGRAMS.values()))
    base = found["pass"]
    print(f"{'program':<16} {'ms':>6} {'more':>6} {'ratio':>6}")
    for name, program in PROGRAMS.items():
        total = found[program]
        print(f"{name:<16} {total * 1e3:6.0f} {(total - base) * 1e3:6.0f} {total / base:6.2f}")


if __name__ == "__main__":
    main()
