"""Problems on which v1.38 needs up to 17 million steps, with the true answers.

Speed is guarded by counting steps, which are the same on every machine.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Final

import msgspec
import pytest

from allot.allocation import Abandoned, StepBudget, allocate
from allot.api.decoding import to_builtin
from allot.cli.allocate import answer, counting_share_ids, scenario_problem

DATA: Final = Path(__file__).parent / "data" / "allocation" / "hard"

# Most of these steps are those of the plain search, until it has gone back fifty times; for problems
# without a solution, one look ahead is then enough.
STEPS: Final = {
    "h01-match-first-last-unsat-12c3": 54,
    "h02-match-first-last-unsat-32c4": 55,
    "h03-count8of64-match": 62,
    "h04-count17of64-match-unsat": 63,
    "h05-distinct-pigeonhole-7of18": 55,
    "h06-distinct-pigeonhole-11of40": 60,
    "h07-capacity-packing-unsat-3x10": 57,
    "h08-capacity-packing-unsat-4x13": 60,
    "h09-capacity-packing-exact": 69,
    "h10-prioritized-unsat": 61,
    "h11-last-pair-128x128": 53,
    "h12-partitions-13of28-unsat": 62,
    "h13-node128-8claims-match": 64,
    "h14-network-2048-late-match": 4,
    "h15-cluster-500nodes-1024nics": 8,
}


@pytest.mark.parametrize(("name", "steps"), STEPS.items())
def test_hard_problems_take_few_steps(name: str, steps: int) -> None:
    line = gzip.decompress((DATA / f"{name}.json.gz").read_bytes())
    expected = json.loads(line)["expect"]
    _, problem = scenario_problem(line)

    outcome = allocate(problem, StepBudget(100_000), counting_share_ids())

    answered = json.loads(msgspec.json.encode(answer(name, outcome), enc_hook=to_builtin))
    assert (answered["result"], answered["error"]) == (expected["result"], expected["error"])
    assert outcome.steps == steps


def test_a_search_without_foresight_says_how_far_it_came() -> None:
    line = gzip.decompress((DATA / "h06-distinct-pigeonhole-11of40.json.gz").read_bytes())
    _, problem = scenario_problem(line)

    outcome = allocate(
        problem, StepBudget(500), counting_share_ids(), failures_before_forward_checking=1_000
    )

    assert outcome == Abandoned(steps=500, requests_satisfied=0)
