"""The fields of a first allocation: claims are allocated to one pod each, and differ in the uid of the pod only."""

from __future__ import annotations

from allot.api.claims import ResourceClaimStatus
from allot.apiserver.managed_fields.comparison import LEAF, Comparison
from allot.apiserver.managed_fields.field_sets import SELF, is_plain

Shape = tuple[bool, ...]


def allocation_shape(old: ResourceClaimStatus, new: ResourceClaimStatus) -> Shape | None:
    """What decides which fields a status has that its claim did not have, but for the uid of its consumer; None for all other changes."""
    allocation = new.allocation
    if (
        allocation is None
        or old.allocation is not None
        or old.reserved_for
        or old.devices
        or new.devices
        or len(new.reserved_for) != 1
        or not is_plain(new.reserved_for[0].uid)
    ):
        return None
    return (
        bool(allocation.devices.results),
        bool(allocation.devices.config),
        allocation.node_selector is None,
        allocation.allocation_timestamp is None,
        bool(new.reserved_for[0].api_group),
    )


def for_consumer(comparison: Comparison, uid: str) -> Comparison:
    """The comparison for a status of the same shape, with another consumer."""
    status = comparison.added["f:status"]
    _, consumer = status["f:reservedFor"].values()
    consumers = {SELF: LEAF, f'k:{{"uid":"{uid}"}}': consumer}
    return Comparison({}, {}, {"f:status": {**status, "f:reservedFor": consumers}})
