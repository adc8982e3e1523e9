"""Findings: what an explanation consists of, as values."""

from __future__ import annotations

from typing import NamedTuple

from allot.allocation.explain.conflicts import Proof
from allot.allocation.explain.reasons import AnyReason, TypedValue, nothing
from allot.api.base import ApiObject, always
from allot.api.identities import DeviceId


class Refusal(NamedTuple):
    """One reason, and the devices refused for it, in order."""

    reason: AnyReason
    devices: tuple[DeviceId, ...]


class RequestReport(NamedTuple):
    """How far one request, or one alternative of it, got: together with the conflict if it is part of it, else
    alone."""

    claim: str
    request: str
    wanted: int
    found: int
    """The most devices it had at the same time."""
    refusals: tuple[Refusal, ...]
    in_conflict: bool = False
    problem: str = ""
    """An error in the request itself, independent of devices."""

    @property
    def name(self) -> str:
        """The request without the alternative."""
        return self.request.partition("/")[0]

    @property
    def short(self) -> int:
        """How many devices are missing; at least one if the request cannot be tried."""
        return max(self.wanted - self.found, int(bool(self.problem) or not self.wanted))


class UnusablePool(NamedTuple):
    """A pool that is skipped."""

    driver: str
    pool: str
    invalid_because: str
    """Empty if the pool is incomplete."""


class ConflictingRequest(ApiObject, frozen=True):
    """A request that cannot be satisfied together with the rest of the conflict."""

    claim: str = always(str)
    request: str = always(str)


class SideValue(ApiObject, frozen=True):
    """A value, and the devices of a request that have it."""

    value: TypedValue = always(TypedValue)
    devices: tuple[str, ...] = always(nothing)


class ConstraintSide(ApiObject, frozen=True):
    """The values that the devices of a request have for a constraint."""

    request: str = always(str)
    values: tuple[SideValue, ...] = always(nothing)
    without: tuple[str, ...] = always(nothing)
    """Devices that do not have the attribute."""
    is_ignored: bool = False
    """Whether the request derives the attribute, and derived attributes are disabled."""


class ConflictingConstraint(ApiObject, frozen=True):
    """A constraint that cannot be met, with the values of every request it covers."""

    claim: str = always(str)
    constraint: int = always(int)
    """Its index in the claim."""
    attribute: str = always(str)
    must_match: bool = always(bool)
    sides: tuple[ConstraintSide, ...] = always(nothing)


class Conflict(ApiObject, frozen=True):
    """Requests and constraints that cannot be satisfied together on a node."""

    proof: Proof = always(lambda: Proof.UNPROVEN)
    requests: tuple[ConflictingRequest, ...] = always(nothing)
    constraints: tuple[ConflictingConstraint, ...] = always(nothing)
    devices_short: int = always(int)
    """How many devices are missing at best."""


class Explanation(NamedTuple):
    """Why there is no solution on one node."""

    node: str
    error: str
    """The allocator's error, if one ended the search, in Kubernetes' words."""
    pools: tuple[UnusablePool, ...]
    """Pools that could not be used."""
    requests: tuple[RequestReport, ...]
    conflict: Conflict | None = None
    """The conflict; None if everything fits, or if the node's devices could not be gathered."""
    is_complete: bool = True
    """False if the deadline passed: the findings are true, but not all."""
