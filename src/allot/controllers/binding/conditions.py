"""Conditions of devices in a claim's status, and how reports change them.

Only entries of the driver's own devices are modified, and in them only the conditions that a report is
about. All other fields of the status have other owners.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from allot.api.base import replace, whole_seconds
from allot.api.claims import AllocatedDeviceStatus, ResourceClaim
from allot.api.identities import SharedDeviceId
from allot.api.meta import Condition
from allot.controllers.binding.attachments import Attachment, AttachRequest, attach_requests

MAX_REASON: Final = 128
MAX_MESSAGE: Final = 1024
"""Shorter than the API's limits, for readability."""


class DeviceReport(NamedTuple):
    """The state of one device as written to the claim's status.

    Ready or not, for all its binding conditions. `failure` names the failure condition that is True.
    """

    ready: bool
    reason: str
    message: str = ""
    failure: str = ""


def is_ready(claim: ResourceClaim, request: AttachRequest) -> bool:
    """Whether the claim's status reports the device as ready."""
    true = _true_conditions(claim, request)
    return all(name in true for name in request.binding_conditions)


def has_failed(claim: ResourceClaim, request: AttachRequest) -> bool:
    """Whether the claim's status reports a failure of the device."""
    true = _true_conditions(claim, request)
    return any(name in true for name in request.failure_conditions)


def failure_condition(request: AttachRequest, *preferred: str) -> str:
    """The first of `preferred` among the device's failure conditions; otherwise the first of them."""
    names = request.failure_conditions
    return next((name for name in (*preferred, *names) if name in names), "")


def with_reports(
    claim: ResourceClaim,
    driver: str,
    reports: Mapping[Attachment, DeviceReport],
    today: datetime,
    owned: Container[str] | None = None,
) -> ResourceClaim:
    """The claim with these reports; the same object if nothing changes.

    Reports about attachments that the claim does not have, or no longer has, are ignored.
    """
    requests = attach_requests(claim, driver, owned)
    statuses = {status.shared_device_id: status for status in claim.status.devices}
    changed = False
    for attachment, report in reports.items():
        request = requests.get(attachment)
        if request is None:
            continue
        before = statuses.get(attachment.device)
        old = before.conditions if before is not None else ()
        new = _conditions(old, request, report, claim.metadata.generation, today)
        if new != old:
            changed = True
            entry = before or _empty_status(attachment.device)
            statuses[attachment.device] = replace(entry, conditions=new)
    if not changed:
        return claim
    return replace(claim, status=replace(claim.status, devices=tuple(statuses.values())))


def _conditions(
    old: tuple[Condition, ...],
    request: AttachRequest,
    report: DeviceReport,
    generation: int,
    today: datetime,
) -> tuple[Condition, ...]:
    by_type = {condition.type: condition for condition in old}
    wanted = dict.fromkeys(request.binding_conditions, "True" if report.ready else "False")
    if report.failure:
        wanted[report.failure] = "True"
    reason, message = _valid_reason(report.reason), report.message[:MAX_MESSAGE]
    for type_, status in wanted.items():
        before = by_type.get(type_)
        if before is not None and (before.status, before.reason, before.message) == (
            status,
            reason,
            message,
        ):
            continue
        stays = before is not None and before.status == status
        since = before.last_transition_time if before is not None and stays else None
        by_type[type_] = Condition(
            type_, status, generation, since or whole_seconds(today), reason, message
        )
    return tuple(by_type.values())


def _valid_reason(text: str) -> str:
    """A valid condition reason: a letter, then letters, digits and underscores."""
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", text)[:MAX_REASON]
    return cleaned if cleaned[:1].isalpha() else f"Reason_{cleaned}"


def _true_conditions(claim: ResourceClaim, request: AttachRequest) -> frozenset[str]:
    for status in claim.status.devices:
        if status.shared_device_id == request.attachment.device:
            return frozenset(
                condition.type for condition in status.conditions if condition.status == "True"
            )
    return frozenset()


def _empty_status(device: SharedDeviceId) -> AllocatedDeviceStatus:
    driver, pool, name, share_id = device
    return AllocatedDeviceStatus(driver, pool, name, share_id or None)
