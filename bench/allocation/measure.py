"""How fast allocation is: the usual shapes, growth, and v1.38's own scenarios.

Run it with `./scripts/bench allocation`. Figures are written down in bench/RESULTS.md.
"""

from __future__ import annotations

import gzip
import json
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Inventory,
    StepBudget,
    allocate,
)
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from allot.cli.allocate import counting_share_ids, scenario_problem

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.allocation.shapes import DRIVER, SHAPES, a_claim, a_problem, a_request, basic

VECTORS: Final = Path(__file__).parents[2] / "tests" / "conformance" / "data" / "allocation"
BUDGET: Final = StepBudget(100_000)
REPEATS: Final = 5


def best(work: Callable[[], Any], number: int) -> float:
    """Seconds per call: the best of several runs, which disturbances make longer but never shorter."""
    return min(timeit.repeat(work, number=number, repeat=REPEATS)) / number


def solved(problem: AllocationProblem) -> Any:
    return allocate(problem, BUDGET, counting_share_ids())


def warm(problem: AllocationProblem, number: int = 50) -> float:
    """Inventory, ledger and programs are there already; a scheduler's usual case."""
    assert isinstance(solved(problem), Allocated)
    return best(lambda: solved(problem), number)


def measure_shapes() -> None:
    sizes = (8, 32, 128)
    print("one allocation, µs                 " + "".join(f"{size:>16}" for size in sizes))
    print("                                   " + "      cold    warm" * len(sizes))
    for name, shape in SHAPES.items():
        row = f"{name:35}"
        for size in sizes:
            slices, claim = shape(size)
            problem = a_problem(slices, claim)
            cold = best(lambda s=slices, c=claim: solved(a_problem(s, c)), 10)  # type: ignore[misc]
            row += f"{cold * 1e6:10.0f}{warm(problem) * 1e6:8.0f}"
        print(row)


def last_device_only(devices: int) -> AllocationProblem:
    """All devices but the last are taken: the search has to look at every one."""
    slices, claim = basic(devices)
    problem = a_problem(slices, claim)
    for number in range(devices - 1):
        problem.ledger.add(f"other-{number}", holding(f"gpu-{number:04}"))
    return problem


def holding(device: str, pool: str = "node-1") -> AllocationResult:
    result = DeviceRequestAllocationResult("gpu", DRIVER, pool, device)
    return AllocationResult(DeviceAllocationResult((result,)))


def measure_growth() -> None:
    print(
        "\nwarm, by devices of the node, µs   " + "".join(f"{8 << (2 * n):>10}" for n in range(5))
    )
    for name, make in {
        "first device fits": lambda size: a_problem(*basic(size)),
        "only the last device fits": last_device_only,
    }.items():
        row = "".join(f"{warm(make(8 << (2 * n))) * 1e6:10.0f}" for n in range(5))
        print(f"{name:35}{row}")

    counts = (0, 1_000, 10_000, 100_000)
    print("\nwarm, by claims elsewhere, µs      " + "".join(f"{n:>10}" for n in counts))
    problem = a_problem(*basic(10))
    row, change = "", ""
    held = 0
    for wanted in counts:
        for number in range(held, wanted):
            problem.ledger.add(f"other-{number}", holding("gpu-0", f"node-{number + 2}"))
        held = wanted
        row += f"{warm(problem, 200) * 1e6:10.1f}"

        def add_and_remove() -> None:
            problem.ledger.add("mine", holding("gpu-0001"))
            problem.ledger.remove("mine")

        change += f"{best(add_and_remove, 200) * 1e6:10.1f}"
    print(f"{'one of ten devices':35}{row}")
    print(f"{'enter and release an allocation':35}{change}")


def measure_vectors() -> None:
    """All scenarios: cold gathers pools and prepares devices anew, warm has seen them once."""
    ours_cold = ours_warm = theirs = 0.0
    count = 0
    for file in sorted(VECTORS.glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            theirs += json.loads(line)["expect"]["ns"] / 1e9
            _, problem = scenario_problem(line)
            solved(problem)  # programs are compiled now, as v1.38's were
            slices = list(problem.inventory.slices())
            fresh = AllocationProblem(
                problem.node,
                problem.claims,
                problem.classes,
                Inventory(problem.inventory.gates, slices),
                problem.ledger,
            )
            ours_cold += timeit.timeit(lambda p=fresh: solved(p), number=1)  # type: ignore[misc]
            ours_warm += min(timeit.repeat(lambda p=problem: solved(p), number=1, repeat=3))  # type: ignore[misc]
            count += 1
    print(f"\nall {count} scenarios, s              allot     v1.38   ratio")
    print(f"{'pools gathered anew':32}{ours_cold:9.2f}{theirs:10.2f}{theirs / ours_cold:8.1f}x")
    print(f"{'inventory warm':32}{ours_warm:9.2f}{theirs:10.2f}{theirs / ours_warm:8.1f}x")


def measure_hard() -> None:
    print("\nhard problems, ms                       allot     v1.38    steps")
    for file in sorted((VECTORS / "hard").glob("*.json.gz")):
        line = gzip.decompress(file.read_bytes())
        theirs = json.loads(line)["v138"]
        times = []
        for _ in range(3):
            name, problem = scenario_problem(line)
            times.append(timeit.timeit(lambda p=problem: solved(p), number=1))  # type: ignore[misc]
        outcome = solved(problem)
        limit = " (gave up)" if theirs["timedOut"] else ""
        print(
            f"{name:36}{min(times) * 1e3:9.1f}{theirs['milliseconds']:10.1f}{outcome.steps:9}{limit}"
        )


def main() -> None:
    measure_shapes()
    measure_growth()
    measure_vectors()
    measure_hard()
    problem = a_problem(basic(10)[0], a_claim(a_request()))
    print(
        f"\none simple request on a node with 10 devices, warm: {warm(problem, 500) * 1e6:.0f} µs"
    )


if __name__ == "__main__":
    main()
