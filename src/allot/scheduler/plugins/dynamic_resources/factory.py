"""Makes the DynamicResources plugin of one profile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from allot.api.claims import ResourceClaim
from allot.features import (
    BINDING_CONDITIONS,
    DEFAULTS,
    DEVICE_STATUS,
    EXTENDED_RESOURCE,
    SCHEDULER_FILTER_TIMEOUT,
    FeatureGates,
)
from allot.rules import AVOID_FAILED_DEVICES, RELEASE_WAITING_PODS_WHEN_OFF
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugin_args import ConfigurationError, duration_seconds
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.binding_reports import BindingWaitReporter
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_allocator import (
    no_extended_resources,
    why_unusable_without_gate,
)
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.failed_devices import FailedDevices
from allot.scheduler.plugins.dynamic_resources.filter_results import DynamicResourcesArgs
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    PodExtension,
    extended_claim_pod,
    extension_of,
)
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.pods import PodInfo


def dynamic_resources(args: Mapping[str, Any], handle: Handle) -> ClaimFilter:
    """The plugin; only its filters and scores if the handle has no client."""
    read = read_dynamic_resources_args(args, handle.gates)
    if handle.client is None:
        return _claim_filter(read, handle)
    client = handle.client
    writer = handle.shared(ClaimWriter, lambda: ClaimWriter(client, handle.claims.get))
    extended = None
    if EXTENDED_RESOURCE in handle.gates:
        extended = handle.shared(
            ExtendedClaims,
            lambda: ExtendedClaims(
                client,
                writer,
                handle.claims,
                handle.devices.extended,
                handle.utc_now,
                handle.metrics.claim_created if handle.metrics is not None else lambda _: None,
            ),
        )
    failed = None
    if AVOID_FAILED_DEVICES in handle.gates:
        failed = FailedDevices(handle.spawn, handle.requeue, handle.clock)
    gate = _binding_gate(read, handle, writer, failed)
    return DynamicResources(
        handle, writer, read, extended=extended, gate=gate, failed_devices=failed
    )


def uses_binding_conditions(gates: FeatureGates) -> bool:
    """Whether pods wait for their devices (KEP-5007): both gates are on."""
    return BINDING_CONDITIONS in gates and DEVICE_STATUS in gates


def _binding_gate(
    args: DynamicResourcesArgs, handle: Handle, writer: ClaimWriter, failed: FailedDevices | None
) -> BindingGate | None:
    if not uses_binding_conditions(handle.gates):
        return None

    def has_node(name: str) -> bool:
        node = handle.cluster.node(name)
        return node is not None and node.facts is not None

    timeout = timedelta(seconds=args.binding_timeout_seconds)
    return BindingGate(
        handle.claims,
        writer,
        BindingWait(handle.claims, timeout, handle.utc_now, has_node),
        BindingWaitReporter(handle.events, handle.metrics),
        handle.spawn,
        handle.clock,
        lambda: handle.informers is None or handle.informers.has_synced,
        failed,
        heeds_server=RELEASE_WAITING_PODS_WHEN_OFF in handle.gates,
    )


def _claim_filter(args: DynamicResourcesArgs, handle: Handle) -> ClaimFilter:
    left_over = _claims_of_extended_resources(handle.claims)

    def find_extension(pod: PodInfo) -> PodExtension | None:
        known = left_over.get(pod.uid, {}).values()
        return extension_of(pod, handle.devices.extended.class_of, tuple(known))

    timeout = timedelta(seconds=args.binding_timeout_seconds)
    wait = BindingWait(handle.claims, timeout, handle.utc_now)
    return ClaimFilter(
        handle.claims,
        handle.devices,
        args,
        find_extension=(
            find_extension if EXTENDED_RESOURCE in handle.gates else no_extended_resources
        ),
        why_unusable=(
            wait.why_unusable
            if uses_binding_conditions(handle.gates)
            else why_unusable_without_gate(handle.gates)
        ),
    )


def _claims_of_extended_resources(
    tracker: ClaimTracker,
) -> Mapping[str, Mapping[str, ResourceClaim]]:
    """Claims for extended resources by the uids of pod and claim, kept up to date."""
    found: dict[str, dict[str, ResourceClaim]] = {}

    def changed(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        pod = extended_claim_pod(claim) if claim is not None else None
        if claim is None or pod is None:
            return
        if new is not None:
            found.setdefault(pod, {})[claim.metadata.uid] = new
        else:
            found.get(pod, {}).pop(claim.metadata.uid, None)

    for claim in tracker:
        changed(None, claim)
    tracker.add_listener(changed)
    return found


def read_dynamic_resources_args(
    args: Mapping[str, Any], gates: FeatureGates = DEFAULTS
) -> DynamicResourcesArgs:
    """The arguments of DynamicResources; `ConfigurationError` for values out of range.

    Without the gate DRASchedulerFilterTimeout nothing limits the search on a node.
    """
    known = DynamicResourcesArgs()
    path = "DynamicResourcesArgs"
    filter_seconds, binding_seconds, prefers_ready = known
    if args.get("filterTimeout") is not None:
        filter_seconds = duration_seconds(args["filterTimeout"], f"{path}.filterTimeout")
        if filter_seconds < 0:
            raise ConfigurationError(f"{path}.filterTimeout: must be zero or positive")
    if SCHEDULER_FILTER_TIMEOUT not in gates:
        filter_seconds = 0.0
    if args.get("bindingTimeout") is not None:
        binding_seconds = duration_seconds(args["bindingTimeout"], f"{path}.bindingTimeout")
        if binding_seconds < 1:
            raise ConfigurationError(f"{path}.bindingTimeout: must be at least 1 second")
    if args.get("preferReadyDevices") is not None:
        prefers_ready = args["preferReadyDevices"]
        if not isinstance(prefers_ready, bool):
            raise ConfigurationError(f"{path}.preferReadyDevices: must be true or false")
    return DynamicResourcesArgs(filter_seconds, binding_seconds, prefers_ready)
