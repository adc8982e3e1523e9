"""Values of the claim filter: plugin arguments, problems of claims, allocations on nodes, the plugin's cycle state."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from allot.allocation import (
    Abandoned,
    Failed,
    Infeasible,
    Limit,
    SkippedAlternative,
    StepBudget,
    TargetNode,
)
from allot.allocation.errors import AllocationError
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import INVALID_POOLS, AllocationOutcome
from allot.api.claims import AllocationResult, DeviceRequest, ResourceClaim
from allot.api.identities import DeviceId
from allot.features import DEFAULTS, DERIVED_ATTRIBUTES, PRIORITIZED_LIST, FeatureGates
from allot.rules import (
    IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF,
    SKIP_MISSING_CLASSES,
    SLOW_NODES_ARE_SKIPPED,
)
from allot.scheduler.framework.status import Status, failed, unresolvable
from allot.scheduler.plugins.dynamic_resources.pod_extension import PodExtension

if TYPE_CHECKING:
    from allot.scheduler.plugins.dynamic_resources.allocation_cache import (
        CachedAllocation,
        NodeAllocations,
    )

STEPS_PER_SECOND: Final = 10_000
"""What a second of `filterTimeout` is worth where time does not count: the same on every machine."""
NO_LIMIT: Final = 10**12
CANNOT_ALLOCATE: Final = "cannot allocate all claims"
TIMED_OUT: Final = "timed out trying to allocate devices"
MAX_SHOWN_EXPRESSION: Final = 120


class DynamicResourcesArgs(NamedTuple):
    """The arguments in the scheduler's configuration."""

    filter_timeout_seconds: float = 10.0
    binding_timeout_seconds: float = 600.0
    prefers_ready_devices: bool = True
    """Whether nodes where no device must be made ready are better (KEP-5007)."""

    @property
    def budget(self) -> StepBudget:
        seconds = self.filter_timeout_seconds
        return StepBudget(max(1, int(seconds * STEPS_PER_SECOND)) if seconds else NO_LIMIT)


class NodeAllocation(NamedTuple):
    """What the pod's claims would get on a node, or why nothing."""

    status: Status
    results: tuple[AllocationResult, ...] = ()
    score: int = 0
    skipped: tuple[SkippedAlternative, ...] = ()
    """Alternatives that could not be tried on the node."""
    is_ready: bool = True
    """Whether no device must be made ready first."""

    @property
    def timed_out(self) -> bool:
        """Whether a limit ended the search before there was an answer."""
        return bool(self.status.ended_by)


class ExportedAllocations(NamedTuple):
    """What one process found out about a set of claims, for another."""

    key: tuple[Hashable, ...]
    entries: tuple[CachedAllocation, ...]

    @property
    def timeouts(self) -> int:
        return sum(entry.allocation.timed_out for entry in self.entries)


class PodDevices(msgspec.Struct):
    """What the plugin knows about one pod in one cycle."""

    claims: list[ResourceClaim]
    to_allocate: list[ResourceClaim]
    key: tuple[Hashable, ...]
    """What the claims that are not allocated ask for, and extended resources."""
    known: NodeAllocations
    """What claims that ask for the same would get."""
    has_alternatives: bool
    extension: PodExtension | None = None
    """Extended resources that devices may serve."""
    avoided: frozenset[DeviceId] = frozenset()
    """Devices that failed for this pod a while ago."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Claims, by position, that some node cannot use as they are allocated."""
    reserved: list[ResourceClaim] = []
    """Claims with the allocations that were decided on."""
    written: list[ResourceClaim] = []
    """Claims that were reserved for the pod in this attempt."""
    found_reserved: list[ResourceClaim] = []
    """Claims that were reserved for the pod already, by an earlier attempt or another scheduler."""

    @property
    def decided(self) -> list[ResourceClaim]:
        """The claims with what they have or will get."""
        claims = self.reserved
        if len(claims) != len(self.claims):  # some were allocated already
            fresh = {claim.metadata.uid: claim for claim in claims}
            claims = [fresh.get(claim.metadata.uid, claim) for claim in self.claims]
        own = self.extension.reserved if self.extension is not None else None
        return [*claims, own] if own is not None else [*claims]


def unknown_class_names(
    claims: Iterable[ResourceClaim], classes: Container[str]
) -> tuple[str, ...]:
    """The device classes that claims ask for, and that do not exist."""
    names: dict[str, None] = {}
    for claim in claims:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                names[request.exactly.device_class_name] = None
            names.update((each.device_class_name, None) for each in request.first_available)
    return tuple(name for name in names if name and name not in classes)


def problem_with(claim: ResourceClaim, classes: Container[str], gates: FeatureGates) -> str:
    """What is wrong with a claim whatever the node; empty if nothing is."""
    for request in claim.spec.devices.requests:
        if request.first_available:
            if PRIORITIZED_LIST not in gates:
                return (
                    f"resource claim {claim.key}, request {request.name}: has subrequests, but the"
                    " DRAPrioritizedList feature is disabled"
                )
            problem = _problem_with_alternatives(request, classes, gates)
        elif request.exactly is not None:
            problem = _problem_with_class(request.name, request.exactly.device_class_name, classes)
        else:
            return f"resource claim {claim.key}, request {request.name}: unknown request type"
        if problem:
            return problem
    return ""


def _problem_with_alternatives(
    request: DeviceRequest, classes: Container[str], gates: FeatureGates
) -> str:
    missing: list[str] = []
    for alternative in request.first_available:
        name, class_name = f"{request.name}/{alternative.name}", alternative.device_class_name
        problem = _problem_with_class(name, class_name, classes)
        if problem and class_name and SKIP_MISSING_CLASSES in gates:
            missing.append(class_name)
        elif problem:
            return problem
    if len(missing) < len(request.first_available):
        return ""
    if len(set(missing)) == 1:
        return (
            f"request {request.name}: device class {missing[0]} of all alternatives does not exist"
        )
    names = ", ".join(dict.fromkeys(missing))
    return f"request {request.name}: no device class of its alternatives exists: {names}"


def _problem_with_class(name: str, class_name: str, classes: Container[str]) -> str:
    if not class_name:
        return f"request {name}: unsupported request type"
    if class_name not in classes:
        return f"request {name}: device class {class_name} does not exist"
    return ""


def missing_classes(claim: ResourceClaim, classes: Container[str]) -> Iterator[tuple[str, str]]:
    """The alternatives whose device class does not exist, and the class."""
    for request in claim.spec.devices.requests:
        for alternative in request.first_available:
            if alternative.device_class_name not in classes:
                yield f"{request.name}/{alternative.name}", alternative.device_class_name


def ignored_attributes(claim: ResourceClaim, gates: FeatureGates) -> tuple[str, ...]:
    """The derived attributes of a claim that do not count, because their gate is off (KEP-6080)."""
    if DERIVED_ATTRIBUTES in gates or IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF not in gates:
        return ()
    asked = (
        part
        for request in claim.spec.devices.requests
        for part in (request.exactly, *request.first_available)
        if part is not None
    )
    names = (derived.name for part in asked for derived in part.derived_attributes)
    return tuple(dict.fromkeys(names))


def is_usable_on(allocation: AllocationResult, target: TargetNode) -> bool:
    """Whether an allocation can be used on a node; `AllocationError` if its selector makes no sense."""
    selector = allocation.node_selector
    return selector is None or selects_node(target, None, None, selector)


def where_it_ended(outcome: Abandoned) -> str:
    """Which limit ended a search, and what it was doing: the claim, the request, the expression and the device."""
    limit = "its step budget" if outcome.limit is Limit.STEPS else "its time limit"
    if not outcome.claim:
        return f"gathering the node's devices ran into {limit}"
    where = f"claim {outcome.claim}, request {outcome.request}"
    if outcome.expression:
        expression = shortened(outcome.expression, MAX_SHOWN_EXPRESSION)
        return f"{where}: CEL expression {expression!r} on device {outcome.device} ran into {limit}"
    return f"{where}: the search for devices ran into {limit}"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 4]} ..."


def status_of(outcome: AllocationOutcome, gates: FeatureGates = DEFAULTS) -> Status:
    """What an allocation that did not succeed means for the pod on the node."""
    match outcome:
        case Infeasible(invalid_pools=True):
            return unresolvable(INVALID_POOLS)
        case Abandoned():
            if SLOW_NODES_ARE_SKIPPED not in gates:
                return failed(AllocationError(f"{TIMED_OUT}: {where_it_ended(outcome)}"))
            # KEP-4381: a node that takes too long is passed over, others are still tried.
            return unresolvable(TIMED_OUT, ended_by=where_it_ended(outcome))
        case Failed(error=text):
            return failed(AllocationError(text))
    return unresolvable(CANNOT_ALLOCATE)
