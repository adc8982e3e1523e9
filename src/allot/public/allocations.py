"""The result of allocating claims on a node: devices, or the reason why they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import count
from types import MappingProxyType
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec

from allot.allocation import (
    Abandoned,
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Explanation,
    Failed,
    StepBudget,
    Wording,
    allocate,
    explain,
    proposals,
)
from allot.api.claims import AllocationResult, DeviceRequestAllocationResult
from allot.api.decoding import to_builtin
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity

MAX_STEPS: Final = 100_000
PROPOSAL_STEPS: Final = 2_000
"""Limit of the search for each proposed change."""


@dataclass(frozen=True, repr=False)
class AllocatedDevice:
    """A device, or a share of one, that a request of a claim gets."""

    claim: str
    """As `namespace/name`."""
    request: str
    """With the subrequest, if the request has alternatives: `gpu/small` (KEP-4816)."""
    id: DeviceId
    share_id: str = ""
    consumed: Mapping[str, Quantity] = field(default_factory=dict)
    """Capacity that the share consumes (KEP-5075)."""

    @property
    def name(self) -> str:
        return self.id.device

    def __str__(self) -> str:
        return str(self.id)

    @property
    def text(self) -> str:
        """Request and device, with the capacity that is consumed."""
        amounts = ", ".join(f"{amount} of {name}" for name, amount in self.consumed.items())
        return f"{self.request}: {self.id}{f' ({amounts})' if amounts else ''}"

    def __repr__(self) -> str:
        return f"<AllocatedDevice {self.text}>"


class Allocation:
    """The result of allocating claims together on one node: all claims are allocated, or none.

    True in a condition if they fit. Otherwise `reason` says why and `proposals` lists changes that would
    help; both are computed on first use.
    """

    def __init__(self, problem: AllocationProblem, max_steps: int = MAX_STEPS) -> None:
        self._problem = problem
        self._outcome: AllocationOutcome = allocate(
            problem, StepBudget(max_steps), _share_ids(problem)
        )

    @property
    def node(self) -> str:
        return self._problem.node.name

    @property
    def claims(self) -> tuple[str, ...]:
        """As `namespace/name`, in the order in which they were given."""
        return tuple(str(claim.key) for claim in self._problem.claims)

    @property
    def fits(self) -> bool:
        return isinstance(self._outcome, Allocated)

    def __bool__(self) -> bool:
        return self.fits

    @property
    def steps(self) -> int:
        """The size of the search: the same on every machine."""
        return self._outcome.steps

    @property
    def results(self) -> tuple[AllocationResult, ...]:
        """`status.allocation` for each claim; empty if they do not fit."""
        return self._outcome.results if isinstance(self._outcome, Allocated) else ()

    @cached_property
    def devices(self) -> tuple[AllocatedDevice, ...]:
        """All devices, claim by claim and request by request."""
        return tuple(
            _allocated_device(claim, result)
            for claim, allocation in zip(self.claims, self.results, strict=False)
            for result in allocation.devices.results
        )

    def to_dict(self) -> dict[str, Any]:
        """`status.allocation` for each claim, as JSON values."""
        return {
            claim: msgspec.json.decode(msgspec.json.encode(result, enc_hook=to_builtin))
            for claim, result in zip(self.claims, self.results, strict=False)
        }

    # --- why not ---

    @cached_property
    def reason(self) -> str:
        """Why the claims do not fit; empty if they do."""
        match self._outcome:
            case Allocated():
                return ""
            case Failed(error=text):
                return text
            case Abandoned(steps):
                return f"the search was given up after {steps} steps"
        return Wording().conflict(self._explanation) or "no devices for them on this node"

    @cached_property
    def proposals(self) -> tuple[str, ...]:
        """Single changes after which the claims fit, each of them tried; empty if they fit already."""
        if self.fits:
            return ()
        budget = StepBudget(PROPOSAL_STEPS)
        changes = proposals(self._problem, budget, explanation=self._explanation)
        return tuple(Wording().change(each.change) for each in changes)

    @cached_property
    def _explanation(self) -> Explanation:
        return explain(self._problem)

    # --- display ---

    def __str__(self) -> str:
        if self.fits:
            verb = "fits" if len(self.claims) == 1 else "fit"
            head = f"node {self.node}: {', '.join(self.claims)} {verb}"
            return "\n".join([head, *(f"  {each.text}" for each in self.devices)])
        lines = list(Wording().lines(self._explanation))
        if isinstance(self._outcome, Abandoned):
            lines.insert(0, f"node {self.node}: {self.reason}")
        helps = [f"  - {change}" for change in self.proposals]
        return "\n".join([*lines, *(["what would help, each alone:", *helps] if helps else [])])

    def __repr__(self) -> str:
        claims = ", ".join(self.claims)
        if not self.fits:
            return f"<Allocation of {claims} on {self.node}: does not fit: {self.reason}>"
        devices = ", ".join(f"{each.request} → {each.id}" for each in self.devices)
        return f"<Allocation of {claims} on {self.node}: {devices or 'no devices'}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _allocated_device(claim: str, result: DeviceRequestAllocationResult) -> AllocatedDevice:
    return AllocatedDevice(
        claim,
        result.request,
        result.device_id,
        result.share_id or "",
        MappingProxyType(dict(result.consumed_capacity)),
    )


def _share_ids(problem: AllocationProblem) -> Callable[[], str]:
    """Valid, unique and deterministic share ids."""
    about = "/".join([problem.node.name, *(claim.metadata.uid for claim in problem.claims)])
    numbers = count()
    return lambda: str(uuid5(NAMESPACE_URL, f"allot:{about}/{next(numbers)}"))
