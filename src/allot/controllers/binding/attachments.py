"""What a claim holds of a driver's devices and is waited for: attachments, and requests to make them.

An attachment is one device, or one share of it, for one allocation of one claim. If the claim is
allocated anew, even to the same device on the same node, that is another attachment.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from allot.api.base import is_set
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.identities import DeviceId, ObjectKey, SharedDeviceId


class Attachment(NamedTuple):
    """A device that is, or shall be, ready for a claim.

    `node` is empty where the allocation does not name exactly one. A driver that is asked what is
    attached may leave out whatever it does not know, except the device.
    """

    device: SharedDeviceId
    node: str = ""
    claim_uid: str = ""
    allocated_at: datetime | None = None

    @property
    def whole_device(self) -> DeviceId:
        """The device without regard to shares, as slices and taints name it."""
        return self.device.device_id

    def is_covered_by(self, held: Attachment) -> bool:
        """Whether this is `held`, as far as it is known."""
        return (
            self.device == held.device
            and self.node in ("", held.node)
            and self.claim_uid in ("", held.claim_uid)
            and self.allocated_at in (None, held.allocated_at)
        )

    def __str__(self) -> str:
        device = "/".join(part for part in self.device if part)
        return f"{device} on {self.node}" if self.node else device


def say_nothing(reason: str, message: str) -> None:
    """For requests whose progress nobody asks about."""


@dataclass(frozen=True)
class AttachRequest:
    """All there is to know for making one device ready."""

    attachment: Attachment
    claim: ResourceClaim = field(repr=False, compare=False)
    """As it was when the decision fell. It may have changed since."""
    request: str
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    parameters: tuple[dict[str, Any], ...] = ()
    """Configuration meant for this driver and request: the class's first, the claim's own last."""
    admin_access: bool = False
    """Others may have the device at the same time: look before you detach it."""
    report: Callable[[str, str], None] = field(default=say_nothing, repr=False, compare=False)
    """Call it with a reason (one CamelCase word) and a message; users see both in the claim."""

    @property
    def claim_key(self) -> ObjectKey:
        return self.claim.key

    @property
    def pool(self) -> str:
        return self.attachment.device.pool

    @property
    def device(self) -> str:
        return self.attachment.device.device

    @property
    def share_id(self) -> str:
        return self.attachment.device.share_id

    @property
    def node(self) -> str:
        return self.attachment.node

    def __str__(self) -> str:
        return f"{self.attachment} for {self.claim_key}"


def attach_requests(
    claim: ResourceClaim | None, driver: str, owned: Container[str] | None = None
) -> dict[Attachment, AttachRequest]:
    """What the claim's allocation asks of the driver's controller; empty if it waits for nothing.

    With `owned`, only those binding conditions are this controller's to set.
    """
    allocation = claim.status.allocation if claim is not None else None
    if claim is None or allocation is None:
        return {}
    requests: dict[Attachment, AttachRequest] = {}
    for result in allocation.devices.results:
        conditions = tuple(
            name for name in result.binding_conditions if owned is None or name in owned
        )
        if result.driver != driver or not conditions:
            continue
        attachment = Attachment(
            result.shared_device_id,
            single_node(allocation),
            claim.metadata.uid,
            allocation.allocation_timestamp,
        )
        if attachment not in requests:  # two requests may have got the same device
            requests[attachment] = AttachRequest(
                attachment,
                claim,
                result.request,
                conditions,
                result.binding_failure_conditions,
                tuple(_parameters(allocation, driver, result.request)),
                bool(result.admin_access),
            )
    return requests


def single_node(allocation: AllocationResult) -> str:
    """The node the allocation is tied to by name; empty if it could be used on several."""
    terms = allocation.node_selector.node_selector_terms if allocation.node_selector else ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return ""
    field_ = terms[0].match_fields[0]
    is_name = field_.key == "metadata.name" and field_.operator == "In"
    return field_.values[0] if is_name and len(field_.values) == 1 else ""


def _parameters(
    allocation: AllocationResult, driver: str, request: str
) -> Iterator[dict[str, Any]]:
    """A configuration for `gpu` is also for its alternative `gpu/big`."""
    names = {request, request.partition("/")[0]}
    for config in allocation.devices.config:
        opaque = config.opaque
        if opaque is None or opaque.driver != driver or not is_set(opaque.parameters):
            continue
        if not config.requests or not names.isdisjoint(config.requests):
            yield msgspec.json.decode(opaque.parameters, type=dict[str, Any])
