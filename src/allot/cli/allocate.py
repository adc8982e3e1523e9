"""`allot allocate`: the conformance interface for allocation, one scenario per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Raw, field

from allot.allocation import (
    Abandoned,
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    Wording,
    explain,
    proposals,
)
from allot.allocation import (
    allocate as solve,
)
from allot.allocation.problem import INVALID_POOLS
from allot.api.base import ApiObject
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Node
from allot.api.decoding import DecodeError, decode
from allot.api.slices import ResourceSlice
from allot.cli.answer_lines import print_answer
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK
from allot.features import BINDING_CONDITIONS, COMPATIBILITY_GROUPS, DEVICE_STATUS, FeatureGates
from allot.rules import RuleSet

PROPOSAL_STEPS: Final = 2_000  # each of many proposals is searched for; those worth making are easy

# Scenarios call most gates by their names without the prefix; these have names of their own.
_GATES_BY_FEATURE: Final = {
    "DeviceBindingAndStatus": (BINDING_CONDITIONS, DEVICE_STATUS),
    "CompatibilityGroups": (COMPATIBILITY_GROUPS,),
}


class Scenario(ApiObject, frozen=True):
    """The keys of an input line. Objects stay as they were sent until they are decoded as v1."""

    name: str = ""
    features: dict[str, bool] = field(default_factory=dict)
    node: Raw = Raw(b"{}")
    classes: tuple[Raw, ...] | None = ()
    slices: tuple[Raw, ...] | None = ()
    allocated: tuple[Raw, ...] | None = ()
    claims: tuple[Raw, ...] | None = ()


_decoder: Final = msgspec.json.Decoder(Scenario)


def scenario_gates(features: dict[str, bool], rules: RuleSet = RuleSet.V1_38) -> FeatureGates:
    """The gates of a scenario's features; gates that are not named are off."""
    names: list[str] = []
    for feature, enabled in features.items():
        if enabled:
            names += _GATES_BY_FEATURE.get(feature, (f"DRA{feature}",))
    return FeatureGates(names).with_rules(rules)


def scenario_problem(line: bytes, rules: RuleSet = RuleSet.V1_38) -> tuple[str, AllocationProblem]:
    """Name and problem of a scenario; `DecodeError` if the line is none."""
    try:
        scenario = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"not a scenario: {error}") from None
    gates = scenario_gates(scenario.features, rules)
    inventory = Inventory(gates)
    for index, raw in enumerate(scenario.slices or ()):
        # Scenarios are written by hand: names may repeat, slices count all the same.
        inventory.put(decode(bytes(raw), ResourceSlice, "v1"), name=f"#{index}")
    ledger = Ledger(gates)
    for index, raw in enumerate(scenario.allocated or ()):
        claim = decode(bytes(raw), ResourceClaim, "v1")
        if claim.status.allocation is not None:
            key = str(claim.key)
            holder = key if key not in ledger else f"{key} ({index})"
            ledger.add(holder, claim.status.allocation)
    classes = [decode(bytes(raw), DeviceClass, "v1") for raw in scenario.classes or ()]
    problem = AllocationProblem(
        node=TargetNode.of(Node.from_json(bytes(scenario.node))),
        claims=[decode(bytes(raw), ResourceClaim, "v1") for raw in scenario.claims or ()],
        classes={class_.metadata.name: class_ for class_ in classes},
        inventory=inventory,
        ledger=ledger,
    )
    return scenario.name, problem


def counting_share_ids() -> Callable[[], str]:
    """Share ids in order of appearance: share-0, share-1, …"""
    numbers = count()
    return lambda: f"share-{next(numbers)}"


def answer(name: str, outcome: AllocationOutcome) -> dict[str, Any]:
    """The answer line for an outcome."""
    result: Any = None
    error = ""
    match outcome:
        case Allocated(results):
            result = results
        case Infeasible(invalid_pools=True):
            error = INVALID_POOLS
        case Failed(error=text):
            error = text
        case Abandoned(steps):
            error = f"gave up after {steps} steps"
    return {"name": name, "result": result, "error": error, "steps": outcome.steps}


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return (line for line in file if line.strip())


def answer_scenarios(
    *, max_steps: int, explained: bool, rules: RuleSet | None, file: BinaryIO
) -> int:
    """The command `allot allocate`: answers the scenarios in a file, line by line."""
    failed = False
    budget = StepBudget(max_steps)
    for line in _lines(file):
        try:
            name, problem = scenario_problem(line, rules or RuleSet.V1_38)
            outcome = solve(problem, budget, counting_share_ids())
            answered = answer(name, outcome)
            if explained and not isinstance(outcome, Allocated):
                explanation, wording = explain(problem), Wording()
                answered["explanation"] = list(wording.lines(explanation))
                budget = StepBudget(min(max_steps, PROPOSAL_STEPS))
                changes = proposals(problem, budget, explanation=explanation)
                answered["proposals"] = [wording.change(proposal.change) for proposal in changes]
        except DecodeError as error:
            failed = True
            answered = {"name": "", "result": None, "error": str(error), "steps": 0}
        print_answer(answered, rules)
    return EXIT_FINDINGS if failed else EXIT_OK
