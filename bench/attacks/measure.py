"""How long a cluster under attack leaves requests without an answer, in several shapes of it, in one run.

Run it with `./scripts/bench attacks [--shapes one,up,separate] [--attacks counters-infeasible,cel-text,…] [--runs N]`.
`tests/attacks` has the attacks and what is watched. Milliseconds; `own` is without the time in which the API server was
ready to run and had no core. The shapes take turns, so that what else the machine does meets all of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.attacks.attack import HEADER, Figures, run_attack
from tests.attacks.attack_list import ATTACKS
from tests.attacks.clusters import SHAPES, Cluster, Part, free_ports, hardware_file

ONE: Final = "one"
USUAL: Final = (
    "counters-infeasible",
    "alternatives",
    "cel-text",
    "cel-720-devices",
    "shared-claim",
    "patches",
)
"""Of every kind some."""


def one_process(directory: Path) -> Cluster:
    (port,) = free_ports(1)
    data = directory / "data"
    program = Path(__file__).with_name("one_process.py")
    command = [sys.executable, str(program), str(data), str(port), str(hardware_file(directory))]
    part = Part("one", command)
    return Cluster(directory, port, data / "kubeconfig", data / "pki" / "ca.crt", [part])


def measured(shape: str, attack: str) -> Figures:
    make = one_process if shape == ONE else SHAPES[shape]
    with tempfile.TemporaryDirectory() as directory:
        cluster = make(Path(directory))
        try:
            return run_attack(cluster, shape, ATTACKS[attack](), is_measured_only=True)
        finally:
            cluster.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", default=f"{ONE},up,separate")
    parser.add_argument("--attacks", default=",".join(USUAL))
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    print(HEADER)
    for attack in options.attacks.split(","):
        for _ in range(options.runs):
            for shape in options.shapes.split(","):
                figures = measured(shape, attack)
                print(figures.row(), flush=True)
                for problem in figures.problems:
                    print(f"    {problem}")


if __name__ == "__main__":
    main()
