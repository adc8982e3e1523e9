"""Requests, checked and prepared for the search.

A request has one or more alternatives (KEP-4816), one of which must be satisfied; a plain request is
its own only alternative. Errors that do not depend on devices are raised here, in Kubernetes' order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from allot.allocation.constraints import Constraint, Distinct, Match
from allot.allocation.errors import (
    AllocationError,
    MissingClassError,
    NoAlternativeLeftError,
    UnusablePoolError,
)
from allot.allocation.problem import AllocationProblem
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.classes import DeviceClass
from allot.api.identities import ObjectKey
from allot.api.quantity import Quantity
from allot.api.resource import ALL, EXACT_COUNT, MAX_RESULTS
from allot.features import (
    ADMIN_ACCESS,
    CONSUMABLE_CAPACITY,
    DERIVED_ATTRIBUTES,
    LIST_TYPE_ATTRIBUTES,
    PRIORITIZED_LIST,
    FeatureGates,
)
from allot.rules import (
    IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF,
    MATCH_OR_DISTINCT,
    SKIP_INCOMPLETE_POOLS,
    SKIP_MISSING_CLASSES,
)

_PREPARATION_WORK: Final = 8
"""Units of work to prepare an alternative."""

_NO_CAPACITY: Mapping[str, Quantity] = {}


class Alternative:
    """One way to satisfy a request: the request itself, or one of its subrequests."""

    def __init__(
        self,
        claim: PreparedClaim,
        request: DeviceRequest,
        spec: ExactDeviceRequest | DeviceSubRequest,
        class_: DeviceClass,
        *,
        derives: bool = True,
    ) -> None:
        """`derives`: whether its derived attributes are in force."""
        subrequest = spec.name if isinstance(spec, DeviceSubRequest) else ""
        self.claim = claim
        self.request = request.name
        self.subrequest = subrequest
        self.label = f"{request.name}/{subrequest}" if subrequest else request.name
        """Its name in results, constraints and configuration."""
        self.spec = spec
        self.class_ = class_
        self.is_admin = isinstance(spec, ExactDeviceRequest) and spec.admin_access is True
        self.capacity = spec.capacity.requests if spec.capacity is not None else _NO_CAPACITY
        self.derived = {
            derived.name: derived for derived in (spec.derived_attributes if derives else ())
        }
        self.constraints: tuple[Constraint, ...] = ()
        self.wants_all = spec.allocation_mode == ALL
        self.count = spec.count
        """How many devices it needs; for mode All, set once its devices are listed."""
        self.all_devices: tuple[int, ...] = ()
        """For mode All: indices of its devices among those of the node."""

    @property
    def place(self) -> str:
        """The start of error messages: claim and request."""
        return f"claim {self.claim.key}, request {self.subrequest or self.request}"


class SkippedAlternative(NamedTuple):
    """An alternative that was skipped, and why. Without the rule that skips it, this is an error."""

    claim: ObjectKey
    label: str
    """The request and the alternative: `gpu/latest`."""
    rule: str
    reason: str
    problem: str = ""
    """The reason without the claim and the request."""


@dataclass(slots=True)
class PreparedRequest:
    """A request and its alternatives, in order of preference."""

    request: DeviceRequest
    alternatives: tuple[Alternative, ...]
    skipped: tuple[SkippedAlternative, ...] = ()


class PreparedClaim:
    """A claim, its requests and its constraints."""

    def __init__(self, claim: ResourceClaim, index: int) -> None:
        self.claim = claim
        self.index = index
        self.key = claim.key
        self.requests: list[PreparedRequest] = []
        self.constraints: list[Constraint] = []

    @cached_property
    def may_exceed_limit(self) -> bool:
        """Whether some choice of alternatives needs more devices than a claim can get."""
        most = (max(a.count for a in request.alternatives) for request in self.requests)
        return sum(most) > MAX_RESULTS


class AllDevicesOf(Protocol):
    """Lists the devices of an alternative with mode All."""

    meter: WorkMeter

    def all_devices(self, alternative: Alternative) -> tuple[int, ...]:
        """Indices among the devices of the node; `AllocationError` if they cannot be determined."""


def prepare_claims(problem: AllocationProblem, finder: AllDevicesOf) -> tuple[PreparedClaim, ...]:
    """The claims, prepared for the search; `AllocationError` for the first error in them."""
    return tuple(
        _prepared(PreparedClaim(claim, index), problem, finder)
        for index, claim in enumerate(problem.claims)
    )


def _prepared(
    claim: PreparedClaim, problem: AllocationProblem, finder: AllDevicesOf
) -> PreparedClaim:
    gates = problem.inventory.gates
    devices_wanted = 0
    for request in claim.claim.spec.devices.requests:
        _check_forms(claim, request, gates)
        if request.first_available:
            prepared = _with_alternatives(claim, request, problem, finder)
        else:
            spec = request.exactly or ExactDeviceRequest()
            prepared = PreparedRequest(
                request, (_alternative(claim, request, spec, problem, finder),)
            )
        claim.requests.append(prepared)
        devices_wanted += min(alternative.count for alternative in prepared.alternatives)
    if devices_wanted > MAX_RESULTS:
        raise AllocationError(
            f"number of requested devices {devices_wanted}"
            f" exceeds the claim limit of {MAX_RESULTS}",
            f"claim {claim.key}",
        )
    if claim.claim.spec.devices.constraints:
        _add_constraints(claim, gates, finder.meter)
    return claim


def _with_alternatives(
    claim: PreparedClaim, request: DeviceRequest, problem: AllocationProblem, finder: AllDevicesOf
) -> PreparedRequest:
    """The alternatives that can be tried on this node; `NoAlternativeLeftError` if none can."""
    gates = problem.inventory.gates
    alternatives: list[Alternative] = []
    skipped: list[SkippedAlternative] = []
    for spec in request.first_available:
        try:
            alternatives.append(_alternative(claim, request, spec, problem, finder))
        except (MissingClassError, UnusablePoolError) as error:
            rule = (
                SKIP_MISSING_CLASSES
                if isinstance(error, MissingClassError)
                else SKIP_INCOMPLETE_POOLS
            )
            if rule not in gates:
                raise
            label = f"{request.name}/{spec.name}"
            why = (
                f"device class {error.class_name} does not exist"
                if isinstance(error, MissingClassError)
                else error.problem
            )
            skipped.append(SkippedAlternative(claim.key, label, rule, str(error), why))
    if not alternatives:
        why = "; ".join(each.reason for each in skipped)
        text, place = (
            f"no alternative can be tried: {why}",
            f"claim {claim.key}, request {request.name}",
        )
        if any(each.rule == SKIP_INCOMPLETE_POOLS for each in skipped):
            raise NoAlternativeLeftError(text, place)
        raise AllocationError(text, place)  # the same on every node
    return PreparedRequest(request, tuple(alternatives), tuple(skipped))


def _place(
    claim: PreparedClaim, request: DeviceRequest, spec: ExactDeviceRequest | DeviceSubRequest
) -> str:
    name = spec.name if isinstance(spec, DeviceSubRequest) else request.name
    return f"claim {claim.key}, request {name}"


def _check_forms(claim: PreparedClaim, request: DeviceRequest, gates: FeatureGates) -> None:
    if request.first_available and PRIORITIZED_LIST not in gates:
        raise AllocationError(
            f"has subrequests, but the {PRIORITIZED_LIST} feature is disabled",
            f"claim {claim.key}, request {request.name}",
        )
    if CONSUMABLE_CAPACITY in gates:
        return
    disabled = f"has capacity requests, but the {CONSUMABLE_CAPACITY} feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        raise AllocationError(disabled, f"claim {claim.key}, request {request.name}")
    for subrequest in request.first_available:
        if subrequest.capacity is not None:
            raise AllocationError(disabled, f"claim {claim.key}, subrequest {subrequest.name}")


def _alternative(
    claim: PreparedClaim,
    request: DeviceRequest,
    spec: ExactDeviceRequest | DeviceSubRequest,
    problem: AllocationProblem,
    finder: AllDevicesOf,
) -> Alternative:
    gates = problem.inventory.gates
    if (
        spec.derived_attributes
        and DERIVED_ATTRIBUTES not in gates
        and IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF not in gates
    ):
        raise AllocationError(
            "cannot handle request with derived attributes, the feature is disabled",
            _place(claim, request, spec),
        )
    for index, selector in enumerate(spec.selectors):
        if selector.cel is None:
            raise AllocationError(
                "CEL expression empty (unsupported selector type?)",
                f"{_place(claim, request, spec)}, selector #{index}",
            )
    admin = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
    if admin is not None and ADMIN_ACCESS not in gates:
        raise AllocationError(
            "admin access is requested, but the feature is disabled", _place(claim, request, spec)
        )
    if not spec.device_class_name:
        raise AllocationError(
            "missing device class name (unsupported request type?)", _place(claim, request, spec)
        )
    class_ = problem.classes.get(spec.device_class_name)
    if class_ is None:
        raise MissingClassError(spec.device_class_name, _place(claim, request, spec))
    alternative = Alternative(claim, request, spec, class_, derives=DERIVED_ATTRIBUTES in gates)
    finder.meter.alternative = alternative
    finder.meter.spend(_PREPARATION_WORK + len(spec.selectors))
    if alternative.wants_all:
        alternative.all_devices = finder.all_devices(alternative)
        alternative.count = len(alternative.all_devices)
    elif spec.allocation_mode != EXACT_COUNT:
        raise AllocationError(f"unsupported count mode {spec.allocation_mode}", alternative.place)
    return alternative


def _add_constraints(claim: PreparedClaim, gates: FeatureGates, meter: WorkMeter) -> None:
    lists = LIST_TYPE_ATTRIBUTES in gates
    for index, spec in enumerate(claim.claim.spec.devices.constraints):
        if spec.match_attribute is not None:
            claim.constraints.append(Match(spec, spec.match_attribute, lists=lists))
        # KEP-5075: exactly one of them. A stored claim with both gets both; v1.38 uses the first.
        if spec.distinct_attribute is not None and (
            spec.match_attribute is None or MATCH_OR_DISTINCT in gates
        ):
            claim.constraints.append(Distinct(spec, spec.distinct_attribute, lists=lists))
        if spec.match_attribute is None and spec.distinct_attribute is None:
            raise AllocationError(
                "empty constraint (unsupported constraint type?)",
                f"claim {claim.key}, constraint #{index}",
            )
    for request in claim.requests:
        for alternative in request.alternatives:
            meter.spend(len(claim.constraints))
            alternative.constraints = tuple(
                constraint
                for constraint in claim.constraints
                if constraint.applies_to(alternative.request, alternative.subrequest)
            )
