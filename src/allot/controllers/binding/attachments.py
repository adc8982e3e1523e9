"""Attachments of a claim to a driver's devices, and requests to attach them.

An attachment is one device, or one share of it, for one allocation of one claim. A new allocation of the claim is
another attachment, even of the same device on the same node.
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
    """A device that is attached, or to be attached, for a claim.

    `node` is empty if the allocation does not name exactly one. In the result of `Attacher.attached`
    a driver may leave out every field that it does not know, except the device.
    """

    device: SharedDeviceId
    node: str = ""
    claim_uid: str = ""
    allocated_at: datetime | None = None

    @property
    def whole_device(self) -> DeviceId:
        """The device without its share, as slices and taints name it."""
        return self.device.device_id

    def is_covered_by(self, held: Attachment) -> bool:
        """Whether this matches `held` in all known fields."""
        return (
            self.device == held.device
            and self.node in ("", held.node)
            and self.claim_uid in ("", held.claim_uid)
            and self.allocated_at in (None, held.allocated_at)
        )

    def __str__(self) -> str:
        device = "/".join(part for part in self.device if part)
        return f"{device} on {self.node}" if self.node else device


def ignore_progress(reason: str, message: str) -> None:
    """For requests whose progress is not reported."""


@dataclass(frozen=True)
class AttachRequest:
    """Everything an attacher needs to attach one device."""

    attachment: Attachment
    claim: ResourceClaim = field(repr=False, compare=False)
    """The claim at the time of the decision. It may have changed since."""
    request: str
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    parameters: tuple[dict[str, Any], ...] = ()
    """Opaque configuration for this driver and request: from the class first, then from the claim."""
    admin_access: bool = False
    """Other claims may use the device at the same time: check before detaching it."""
    report: Callable[[str, str], None] = field(default=ignore_progress, repr=False, compare=False)
    """Reports progress: a reason (one CamelCase word) and a message, both shown in the claim's status."""

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
    """The attachments that the claim's allocation needs from the driver's controller.

    With `owned`, only these binding conditions belong to this controller.
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
        if attachment not in requests:  # two requests may be allocated the same device
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
    """The node that the allocation names; empty if it is usable on several nodes."""
    terms = allocation.node_selector.node_selector_terms if allocation.node_selector else ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return ""
    field_ = terms[0].match_fields[0]
    is_name = field_.key == "metadata.name" and field_.operator == "In"
    return field_.values[0] if is_name and len(field_.values) == 1 else ""


def _parameters(
    allocation: AllocationResult, driver: str, request: str
) -> Iterator[dict[str, Any]]:
    """A configuration for the request `gpu` also applies to its subrequest `gpu/big`."""
    names = {request, request.partition("/")[0]}
    for config in allocation.devices.config:
        opaque = config.opaque
        if opaque is None or opaque.driver != driver or not is_set(opaque.parameters):
            continue
        if not config.requests or not names.isdisjoint(config.requests):
            yield msgspec.json.decode(opaque.parameters, type=dict[str, Any])
