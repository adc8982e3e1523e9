"""Every row of the allocation benchmark here and in another checkout, in turns.

Run it with `./scripts/bench allocation/turns OTHER_CHECKOUT [PAIRS]`. Each checkout has a process of
its own, which measures a row for a moment whenever it is its turn. A row's figure is the median of
the ratios of its pairs: throughput here over throughput there, so that less than 1 is slower.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parents[2]
SIZES: Final = (8, 32, 128)
PAIRS: Final = 9
TURN_SECONDS: Final = 0.04
"""How long a row is measured in one turn."""
BATCHES: Final = 5
"""The best of so many counts: disturbances make a batch longer and never shorter."""


def rows() -> dict[str, Callable[[], Any]]:
    """What is measured, by name. Imported late: in a worker `allot` is that of its checkout."""
    sys.path.insert(0, str(HERE))
    from bench.allocation import measure
    from bench.allocation.shapes import SHAPES, a_problem, basic

    def cold(slices: Any, claim: Any) -> Any:
        return measure.solved(a_problem(slices, claim))

    found: dict[str, Callable[[], Any]] = {}
    for name, shape in SHAPES.items():
        for size in SIZES:
            slices, claim = shape(size)
            problem = a_problem(slices, claim)
            found[f"{name}, {size} devices, cold"] = partial(cold, slices, claim)
            found[f"{name}, {size} devices, warm"] = partial(measure.solved, problem)
    for size in (8, 128, 2048):
        for name, problem in {
            "first device fits": a_problem(*basic(size)),
            "only the last device fits": measure.last_device_only(size),
        }.items():
            found[f"{name}, {size} devices, warm"] = partial(measure.solved, problem)
    return found


def serve() -> None:
    """A worker: for every line with a row's name, the seconds that one call takes."""
    known = rows()
    calls_by_row: dict[str, int] = {}
    for line in sys.stdin:
        name = json.loads(line)
        work = known[name]
        if name not in calls_by_row:
            work()
            once = max(_batch(work, 3) / 3, 1e-6)
            calls_by_row[name] = max(1, int(TURN_SECONDS / BATCHES / once))
        calls = calls_by_row[name]
        print(json.dumps(min(_batch(work, calls) for _ in range(BATCHES)) / calls), flush=True)


def _batch(work: Callable[[], Any], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - begin


@contextmanager
def worker(checkout: Path) -> Iterator[Callable[[str], float]]:
    """Measures rows with the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def seconds(row: str) -> float:
        print(json.dumps(row), file=requests, flush=True)
        return float(json.loads(answers.readline()))

    try:
        yield seconds
    finally:
        requests.close()
        process.wait(10)


def compare(other: Path, pairs: int, wanted: str) -> None:
    names = [name for name in rows() if wanted in name]
    print(f"{'throughput here / there':50}{'here µs':>10}{'there µs':>10}{'median':>9}  range")
    medians = []
    with worker(HERE) as here, worker(other) as there:
        for name in names:
            here(name), there(name)
            mine, theirs = [], []
            for number in range(pairs):
                if number % 2:
                    theirs.append(there(name))
                    mine.append(here(name))
                else:
                    mine.append(here(name))
                    theirs.append(there(name))
            ratios = sorted(b / a for a, b in zip(mine, theirs, strict=True))
            medians.append(statistics.median(ratios))
            print(
                f"{name:50}{min(mine) * 1e6:10.1f}{min(theirs) * 1e6:10.1f}{medians[-1]:9.2f}"
                f"  {ratios[0]:.2f}-{ratios[-1]:.2f}",
                flush=True,
            )
    mean = math.exp(statistics.mean(map(math.log, medians)))
    print(f"\ngeometric mean {mean:.2f}, lowest {min(medians):.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        given = [*sys.argv[1:], *["", str(PAIRS), ""][len(sys.argv) - 1 :]]
        compare(Path(given[0]).resolve(), int(given[1]), given[2])
