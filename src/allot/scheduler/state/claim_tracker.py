"""The claim tracker: claims of the informer, overlaid with the scheduler's own writes and pending allocations.

The informer shows a write some time after the API server answered it. Until then the answer counts (`assume`). An
allocation that is decided but not written is pending: its devices are taken for all other claims. The ledger of taken
devices follows all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from allot.allocation import Ledger
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.identities import DeviceId, ObjectKey
from allot.features import FeatureGates

Listener = Callable[[ResourceClaim | None, ResourceClaim | None], None]


class ClaimTracker:
    """All claims of the cluster. For use in one event loop."""

    def __init__(self, gates: FeatureGates) -> None:
        self.ledger = Ledger(gates)
        self._known: dict[ObjectKey, ResourceClaim] = {}
        """The newest known version of each claim."""
        self._pending: dict[str, ResourceClaim] = {}
        self._entered: dict[str, tuple[str, AllocationResult]] = {}
        """By uid: the holder's name in the ledger, and its allocation."""
        self._listeners: list[Listener] = []
        self._ledger_listeners: list[Callable[[AllocationResult], None]] = []
        self._release_listeners: list[Callable[[ResourceClaim], None]] = []

    def add_listener(self, listener: Listener) -> None:
        """Call with every change of a claim, before and after, in order."""
        self._listeners.append(listener)

    def add_ledger_listener(self, listener: Callable[[AllocationResult], None]) -> None:
        """Call with every allocation that is added or removed."""
        self._ledger_listeners.append(listener)

    def add_release_listener(self, listener: Callable[[ResourceClaim], None]) -> None:
        """Call with every claim whose pending allocation was removed without being written."""
        self._release_listeners.append(listener)

    def __iter__(self) -> Iterator[ResourceClaim]:
        """All claims, in their newest version."""
        return iter(tuple(self._known.values()))

    def get(self, key: ObjectKey) -> ResourceClaim | None:
        return self._known.get(key)

    def allocations_of(self, device: DeviceId) -> list[tuple[str, AllocationResult]]:
        """The claims (`namespace/name`) that hold a device or a share of it, with their allocations."""
        holders = set(self.ledger.holders(device))
        if not holders:
            return []
        return [
            (holder.partition("#")[0], allocation)
            for holder, allocation in self._entered.values()
            if holder in holders
        ]

    # --- what the informer says ---

    def put(self, claim: ResourceClaim) -> None:
        """A claim was added or updated. Versions older than the known one are ignored."""
        key = claim.key
        known = self._known.get(key)
        if known is not None and known.metadata.uid != claim.metadata.uid:
            self.remove(known)
            known = None
        if known is None:
            self._change(key, None, claim)
        elif is_same_version(claim, known):
            self._known[key] = claim  # our own write has come back
        elif version_of(claim) >= version_of(known):
            self._change(key, known, claim)

    def remove(self, claim: ResourceClaim) -> None:
        key = claim.key
        known = self._known.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            self._change(key, known, None)

    # --- what we wrote ourselves ---

    def assume(self, claim: ResourceClaim) -> None:
        """Count the answer to a write until the informer has a newer version."""
        key = claim.key
        known = self._known.get(key)
        if known is None or known.metadata.uid != claim.metadata.uid:
            return  # deleted already
        if version_of(claim) >= version_of(known):
            self._change(key, known, claim)

    # --- what is decided but not written ---

    def has_pending_allocation(self, uid: str) -> bool:
        return uid in self._pending

    def add_pending_allocation(self, claim: ResourceClaim) -> None:
        """Add a pending allocation: the claim with the allocation that will be written."""
        self._pending[claim.metadata.uid] = claim
        self._update_ledger(claim.metadata.uid, claim)

    def remove_pending_allocation(self, claim: ResourceClaim) -> None:
        """Called when the allocation is written or given up: from now on the informer's claim counts."""
        uid = claim.metadata.uid
        pending = self._pending.pop(uid, None)
        if pending is None:
            return
        known = self._known.get(claim.key)
        current = known if known is not None and known.metadata.uid == uid else None
        entered = self._entered.get(uid)
        self._update_ledger(uid, current)
        if self._entered.get(uid) is not entered:
            self.notify_released(pending)

    def notify_released(self, claim: ResourceClaim) -> None:
        """Notify listeners of a pending allocation that was removed without a change of the claim."""
        for listener in self._release_listeners:
            listener(claim)

    # --- internals ---

    def _change(
        self, key: ObjectKey, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> None:
        if after is None:
            self._known.pop(key, None)
        else:
            self._known[key] = after
        if before is after:
            return
        changed = after or before
        if changed is not None and changed.metadata.uid not in self._pending:
            self._update_ledger(changed.metadata.uid, after)
        for listener in self._listeners:
            listener(before, after)

    def _update_ledger(self, uid: str, claim: ResourceClaim | None) -> None:
        """Update the ledger to the allocation of the claim."""
        allocation = claim.status.allocation if claim is not None else None
        holder, entered = self._entered.get(uid) or ("", None)
        if allocation is entered or (
            allocation is not None and entered is not None and allocation.devices == entered.devices
        ):
            return  # the ledger ignores timestamps
        if entered is not None:
            self.ledger.remove(holder)
            del self._entered[uid]
            self._notify_ledger(entered)
        if claim is not None and allocation is not None:
            holder = f"{claim.key}#{uid}"
            self.ledger.add(holder, allocation)
            self._entered[uid] = holder, allocation
            self._notify_ledger(allocation)

    def _notify_ledger(self, allocation: AllocationResult) -> None:
        for listener in self._ledger_listeners:
            listener(allocation)


def is_same_version(claim: ResourceClaim, other: ResourceClaim) -> bool:
    version = claim.metadata.resource_version
    return bool(version) and version == other.metadata.resource_version


def version_of(claim: ResourceClaim) -> int:
    """The resourceVersion as a number; 0 if it is not numeric, which counts as old."""
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() else 0
