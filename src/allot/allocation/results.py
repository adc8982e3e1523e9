"""Results: the allocation that is written into a claim's status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.problem import TargetNode
from allot.allocation.requests import Alternative, PreparedClaim
from allot.allocation.search.attempt import Pick
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from allot.api.resource import FROM_CLAIM, FROM_CLASS
from allot.api.selectors import METADATA_NAME
from allot.features import BINDING_CONDITIONS, FeatureGates


def claim_result(
    claim: PreparedClaim,
    selected: Sequence[Alternative],
    picks: Sequence[Pick],
    devices: Sequence[PoolDevice],
    node: TargetNode,
    gates: FeatureGates,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    """The allocation of a claim: `selected` has one alternative per request, `picks` their devices."""
    results = tuple(
        _device_result(pick, devices[pick.index], gates, new_share_id) for pick in picks
    )
    used = [devices[pick.index] for pick in picks]
    try:
        node_selector = _node_selector(used, node)
    except AllocationError as error:
        raise AllocationError(
            f"create NodeSelector for claim {claim.claim.metadata.name}: {error}"
        ) from None
    return AllocationResult(
        DeviceAllocationResult(results, _configuration(claim, selected)), node_selector
    )


def _device_result(
    pick: Pick, device: PoolDevice, gates: FeatureGates, new_share_id: Callable[[], str]
) -> DeviceRequestAllocationResult:
    binds = BINDING_CONDITIONS in gates
    return DeviceRequestAllocationResult(
        request=pick.alternative.label,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if pick.alternative.is_admin else None,
        tolerations=pick.alternative.spec.tolerations,
        binding_conditions=(device.device.binding_conditions or ()) if binds else (),
        binding_failure_conditions=device.device.binding_failure_conditions if binds else (),
        share_id=new_share_id() if pick.shared else None,
        consumed_capacity=pick.consumed if pick.shared else {},
        skip_node_operations=device.skip_node_operations,
    )


# --- configuration ---


def _configuration(
    claim: PreparedClaim, selected: Sequence[Alternative]
) -> tuple[DeviceAllocationConfiguration, ...]:
    if not claim.claim.spec.devices.config and not any(
        alternative.class_.spec.config for alternative in selected
    ):
        return ()
    names = [(alternative.request, alternative.label) for alternative in selected]
    entries = [*_from_classes(selected), *_from_claim(claim, names)]
    return tuple(
        DeviceAllocationConfiguration(entry.source, (), entry.opaque)
        if _covers_all(entry.requests, names)
        else entry
        for entry in entries
    )


def _from_classes(selected: Iterable[Alternative]) -> Iterable[DeviceAllocationConfiguration]:
    users: dict[str, list[Alternative]] = {}
    for alternative in selected:
        users.setdefault(alternative.class_.metadata.name, []).append(alternative)
    for alternatives in users.values():
        requests = tuple(alternative.label for alternative in alternatives)
        for config in alternatives[0].class_.spec.config:
            yield DeviceAllocationConfiguration(FROM_CLASS, requests, config.opaque)


def _from_claim(
    claim: PreparedClaim, names: Iterable[tuple[str, str]]
) -> Iterable[DeviceAllocationConfiguration]:
    known = {name for both in names for name in both}
    for config in claim.claim.spec.devices.config:
        if not config.requests or not known.isdisjoint(config.requests):
            yield DeviceAllocationConfiguration(FROM_CLAIM, config.requests, config.opaque)


def _covers_all(requests: Sequence[str], names: Iterable[tuple[str, str]]) -> bool:
    return bool(requests) and all(main in requests or label in requests for main, label in names)


# --- node selector ---

Requirements = dict[tuple[str, str, frozenset[str]], NodeSelectorRequirement]
"""By identity: key, operator and the set of values."""


def _node_selector(devices: Iterable[PoolDevice], node: TargetNode) -> NodeSelector | None:
    """The nodes on which all devices can be used; None if that is any node."""
    expressions: Requirements = {}
    fields: Requirements = {}
    for device in devices:
        own = device.device
        place = own if device.selects_node_itself else device.slice.spec
        if place.node_name or own.binds_to_node:
            only_here = NodeSelectorRequirement(METADATA_NAME, "In", (node.name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(only_here,)),))
        if place.node_selector is None:
            continue
        terms = place.node_selector.node_selector_terms
        if len(terms) != 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        _merge(expressions, terms[0].match_expressions)
        _merge(fields, terms[0].match_fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(tuple(expressions.values()), tuple(fields.values()))
    return NodeSelector((term,))


def _merge(collected: Requirements, more: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in more:
        same = (requirement.key, requirement.operator, frozenset(requirement.values))
        collected.setdefault(same, requirement)
