"""Attachments that the controller has started and not yet detached, by claim and by device. In memory only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from allot.api.identities import ObjectKey, SharedDeviceId
from allot.controllers.binding.attachments import Attachment
from allot.controllers.binding.decisions import AttachmentState, Phase

K = TypeVar("K")
I = TypeVar("I")  # noqa: E741 - an item
V = TypeVar("V")

_NOTHING: Mapping[Attachment, AttachmentState] = {}


class ActualState:
    """The state of every attachment."""

    def __init__(self) -> None:
        self._by_claim: dict[ObjectKey, dict[Attachment, AttachmentState]] = {}
        self._by_device: dict[SharedDeviceId, dict[tuple[ObjectKey, Attachment], None]] = {}

    def of(self, claim: ObjectKey) -> Mapping[Attachment, AttachmentState]:
        return self._by_claim.get(claim, _NOTHING)

    def phase(self, claim: ObjectKey, attachment: Attachment) -> Phase | None:
        known = self.of(claim).get(attachment)
        return known.phase if known is not None else None

    def of_device(self, device: SharedDeviceId) -> Iterator[tuple[ObjectKey, Attachment]]:
        """The claims and attachments of a device."""
        return iter(tuple(self._by_device.get(device, ())))

    def put(self, claim: ObjectKey, attachment: Attachment, known: AttachmentState) -> None:
        self._by_claim.setdefault(claim, {})[attachment] = known
        self._by_device.setdefault(attachment.device, {})[claim, attachment] = None

    def drop(self, claim: ObjectKey, attachment: Attachment) -> None:
        _drop(self._by_claim, claim, attachment)
        _drop(self._by_device, attachment.device, (claim, attachment))

    def __len__(self) -> int:
        return sum(map(len, self._by_claim.values()))

    def __iter__(self) -> Iterator[tuple[ObjectKey, Attachment, AttachmentState]]:
        for claim, known_by_attachment in self._by_claim.items():
            for attachment, known in known_by_attachment.items():
                yield claim, attachment, known


def _drop(index: dict[K, dict[I, V]], key: K, item: I) -> None:
    index[key].pop(item, None)
    if not index[key]:
        del index[key]
