"""Writes recordings: appends changes, and folds old ones into the snapshot.

    header, snapshot ── changes ──────────────────────►
                     └─ older than `keep`, or more than `max_bytes`: folded into the snapshot

Header and snapshot are written to a file of their own, which then replaces the recording; changes are appended. A
process that is killed leaves at most one torn line at the end, which the next one removes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from allot.questions.recording.files import append_durably, replace_file
from allot.questions.recording.lines import (
    Header,
    Line,
    RecordedKey,
    encode_header,
    encode_line,
    encode_put,
    read_line,
)
from allot.questions.recording.reader import Recording

_SLACK: Final = 0.1
"""Changes are folded when they are this much older than they need to be, so that it happens seldom."""


class Limits(NamedTuple):
    """How much a recording keeps beside the snapshot."""

    keep: timedelta = timedelta(hours=24)
    max_bytes: int = 256 << 20


class RecordingWriter:
    """The only writer of a recording. Changes are durable after `flush`."""

    def __init__(self, path: Path, recording: Recording, limits: Limits) -> None:
        """Continue after the last complete line of the recording."""
        self.path = path
        self.header = recording.header
        self.bodies: dict[RecordedKey, bytes] = recording.bodies_at(recording.ends)
        """All objects as they were last recorded, encoded."""
        self.last = recording.ends
        self._limits = limits
        self._pending: list[bytes] = []
        self.repaired_bytes = recording.torn_bytes
        """The bytes of a torn line that were removed from the end."""
        self._oldest: datetime | None = next(iter(recording.times()), None)
        self._changes_bytes = path.stat().st_size - recording.changes_start

    @classmethod
    def create(
        cls,
        path: Path,
        header: Header,
        bodies: Mapping[RecordedKey, bytes],
        now: datetime,
        unread: Mapping[str, str] | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a value
    ) -> RecordingWriter:
        """A new recording that begins with these objects. Raises `OSError`."""
        replace_file(path, _snapshot_lines(header, bodies, now, unread or {}))
        with Recording(path) as recording:
            return cls(path, recording, limits)

    @classmethod
    def resume(cls, path: Path, limits: Limits = Limits()) -> RecordingWriter:  # noqa: B008 - a value
        """Continue a recording; a torn line at its end is removed. Raises `OSError`, `RecordingError`."""
        with Recording(path) as recording:
            torn = recording.torn_bytes
            if torn:
                os.truncate(path, path.stat().st_size - torn)
            writer = cls(path, recording, limits)
        path.chmod(0o600)
        return writer

    # --- changes ---

    def put(self, key: RecordedKey, body: bytes, at: datetime) -> None:
        """An object was created or changed; nothing is written if it is the same."""
        if self.bodies.get(key) == body:
            return
        self.bodies[key] = body
        self._append(encode_put(body, self._forward(at)), is_change=True)

    def delete(self, key: RecordedKey, at: datetime) -> None:
        if self.bodies.pop(key, None) is not None:
            line = Line(at=self._forward(at), delete=key.reference)
            self._append(encode_line(line), is_change=True)

    def mark(self, at: datetime) -> None:
        """Nothing has changed up to this time."""
        self._append(encode_line(Line(at=self._forward(at), mark=True)))

    def note_gap(self, ends: datetime, unread: Mapping[str, str]) -> None:
        """Nothing is known of the time since the last line."""
        begins = self.last
        line = Line(at=self._forward(ends), resumed=begins, unread=dict(unread))
        self._append(encode_line(line))

    def flush(self) -> None:
        """Write what is pending; it is durable when this returns. Raises `OSError`."""
        if self._pending:
            append_durably(self.path, self._pending)
            self._pending = []

    def _append(self, line: bytes, *, is_change: bool = False) -> None:
        self._pending.append(line)
        self._changes_bytes += len(line)
        if is_change and self._oldest is None:
            self._oldest = self.last

    def _forward(self, at: datetime) -> datetime:
        """Clocks may be set back; times in a recording never go back."""
        self.last = max(self.last, at)
        return self.last

    # --- folding ---

    @property
    def is_full(self) -> bool:
        """Whether old changes should be folded into the snapshot."""
        if self._changes_bytes > self._limits.max_bytes:
            return True
        keep = self._limits.keep
        return self._oldest is not None and self.last - self._oldest > keep + keep * _SLACK

    def fold(self) -> None:
        """Fold changes beyond the limits into the snapshot. Raises `OSError`."""
        self.flush()
        with Recording(self.path) as recording:
            cut = max(recording.begins, self.last - self._limits.keep)
            if self._changes_bytes > self._limits.max_bytes:
                cut = max(cut, recording.time_of_last(self._limits.max_bytes // 2))
            replace_file(self.path, _folded(recording, cut))
        with Recording(self.path) as recording:
            self._oldest = next(iter(recording.times()), None)
            self._changes_bytes = self.path.stat().st_size - recording.changes_start


def _snapshot_lines(
    header: Header,
    bodies: Mapping[RecordedKey, bytes],
    at: datetime,
    unread: Mapping[str, str],
) -> Iterator[bytes]:
    yield encode_header(header)
    yield encode_line(Line(at=at, base=len(bodies), unread=dict(unread)))
    for body in bodies.values():
        yield encode_put(body)


def _folded(recording: Recording, cut: datetime) -> Iterator[bytes]:
    """The recording with all changes up to `cut` in its snapshot. Of marks only the last is kept."""
    bodies, unread = recording.bodies_at(cut), recording.unread_at(cut)
    yield from _snapshot_lines(recording.header, bodies, cut, unread)
    mark = b""
    for _, encoded in recording.lines_after(cut):
        line = read_line(encoded)
        mark = encoded if line.mark else b""
        if not line.mark:
            yield encoded
    yield mark
