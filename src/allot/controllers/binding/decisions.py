"""What is to be done about one claim, given what it says and what the controller has begun.

(unknown) ── Attach ──► ATTACHING ──► ATTACHED
    │                       │    └──► FAILED
    └─ Adopt: the claim says ATTACHED or FAILED already
the allocation went away: ENDED ── Detach ──► DETACHING ──► (unknown)
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
    """How far an attachment has come."""

    FOUND = "found"
    """A claim had it when the controller started, so an earlier life may have begun with it."""
    ATTACHING = "attaching"
    ATTACHED = "attached"
    FAILED = "failed"
    ENDED = "ended"
    """The allocation it was for is over; it was seen to go away even if one like it came since."""
    DETACHING = "detaching"


class AttachmentState(NamedTuple):
    """What the controller remembers of an attachment: its phase, and what the claim shall say."""

    phase: Phase
    report: DeviceReport | None = None


class Attach(NamedTuple):
    """Begin to make the device ready."""

    request: AttachRequest


class Adopt(NamedTuple):
    """Somebody did it before us, perhaps an earlier life of this controller: just remember it."""

    request: AttachRequest
    phase: Phase


class WriteReport(NamedTuple):
    """Write the report into the claim."""

    attachment: Attachment
    report: DeviceReport


class Detach(NamedTuple):
    """Stop what is under way, and undo it."""

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
    """All that can be done now, detaching first.

    A device is not attached before everybody who had it has let go: `leaving` are those that other
    claims still have to let go of.
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
            actions += _say(claim, driver, attachment, before.report, owned)
        elif has_failed(claim, request):
            actions.append(Adopt(request, Phase.FAILED))
        elif is_ready(claim, request):
            actions.append(Adopt(request, Phase.ATTACHED))
        else:
            actions.append(Attach(request))
    return actions


def orphans(found: Iterable[Attachment], held: Iterable[Attachment]) -> list[Attachment]:
    """What is attached although no claim has it."""
    by_device: dict[SharedDeviceId, list[Attachment]] = {}
    for attachment in held:
        by_device.setdefault(attachment.device, []).append(attachment)
    return [
        attachment
        for attachment in dict.fromkeys(found)
        if not any(map(attachment.is_covered_by, by_device.get(attachment.device, ())))
    ]


def _say(
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
