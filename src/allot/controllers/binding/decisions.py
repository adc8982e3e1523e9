"""The actions for one claim, from its status and from the attachments in progress.

(unknown) ── Attach ──► ATTACHING ──► ATTACHED
    │                       │    └──► FAILED
    └─ Adopt: the claim says ATTACHED or FAILED already
the allocation ended: ENDED ── Detach ──► DETACHING ──► (unknown)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.identities import SharedDeviceId
from allot.controllers.binding.attachments import Attachment, AttachRequest, attach_requests
from allot.controllers.binding.conditions import DeviceReport, has_failed, is_ready, with_reports


class Phase(Enum):
    """The phase of an attachment."""

    FOUND = "found"
    """In a claim's allocation when the controller started; an earlier instance may have begun attaching it."""
    ATTACHING = "attaching"
    ATTACHED = "attached"
    FAILED = "failed"
    ENDED = "ended"
    """Its allocation ended, even if the claim was allocated the same device again since."""
    DETACHING = "detaching"


class AttachmentState(NamedTuple):
    """The state of an attachment: its phase, and the report that the claim's status must have."""

    phase: Phase
    report: DeviceReport | None = None


class Attach(NamedTuple):
    """Start attaching the device."""

    request: AttachRequest


class Adopt(NamedTuple):
    """Record an attachment that the claim's status already reports, such as by an earlier instance."""

    request: AttachRequest
    phase: Phase


class WriteReport(NamedTuple):
    """Write the report to the claim's status."""

    attachment: Attachment
    report: DeviceReport


class Detach(NamedTuple):
    """Cancel attaching, and detach the device."""

    attachment: Attachment


Action = Attach | Adopt | WriteReport | Detach

_ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


def decide(
    claim: ResourceClaim | None,
    driver: str,
    known: Mapping[Attachment, AttachmentState],
    *,
    leaving: Container[SharedDeviceId] = (),
    owned: Container[str] | None = None,
) -> list[Action]:
    """All actions that are possible now, detaching first.

    A device is not attached before it has been detached for its previous claim: `leaving` are the devices
    that are still being detached for other claims.
    """
    requests = attach_requests(claim, driver, owned)
    actions: list[Action] = []
    busy: set[SharedDeviceId] = set()
    for attachment, (phase, _) in known.items():
        if phase is Phase.DETACHING:
            busy.add(attachment.device)
        elif phase is Phase.ENDED or attachment not in requests:
            busy.add(attachment.device)
            actions.append(Detach(attachment))
    for attachment, request in requests.items():
        assert claim is not None
        if attachment.device in busy or attachment.device in leaving:
            continue
        before = known.get(attachment)
        if before is not None and before.phase is not Phase.FOUND:
            actions += _report_actions(claim, driver, attachment, before.report, owned)
        elif has_failed(claim, request):
            actions.append(Adopt(request, Phase.FAILED))
        elif is_ready(claim, request):
            actions.append(Adopt(request, Phase.ATTACHED))
        else:
            actions.append(Attach(request))
    return actions


def orphans(found: Iterable[Attachment], held: Iterable[Attachment]) -> list[Attachment]:
    """Attached devices without a claim."""
    by_device: dict[SharedDeviceId, list[Attachment]] = {}
    for attachment in held:
        by_device.setdefault(attachment.device, []).append(attachment)
    return [
        attachment
        for attachment in dict.fromkeys(found)
        if not any(map(attachment.is_covered_by, by_device.get(attachment.device, ())))
    ]


def _report_actions(
    claim: ResourceClaim,
    driver: str,
    attachment: Attachment,
    report: DeviceReport | None,
    owned: Container[str] | None,
) -> list[Action]:
    if report is None:
        return []
    if with_reports(claim, driver, {attachment: report}, _ANY_TIME, owned) is claim:
        return []
    return [WriteReport(attachment, report)]
