"""Reads recordings: the cluster at any time, and what changed between two times.

The file is mapped into memory and only its lines are indexed; objects are decoded when a state is asked for. States
near each other share the objects that did not change, so that going through time in small steps is fast.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import msgspec

from allot.api.decoding import DecodeError
from allot.api.times import written_time
from allot.client.errors import ClientError
from allot.client.snapshot import Snapshot
from allot.questions.cluster_clone import read_configuration
from allot.questions.recording.lines import (
    Header,
    Line,
    RecordedKey,
    RecordingError,
    object_in,
    read_header,
    read_line,
)
from allot.questions.scheduling_fields import SCHEDULING_FIELDS

_STEP: Final = 4096
"""The index keeps the state after every so many lines."""
_SECOND: Final = timedelta(seconds=1)
"""People write times in whole seconds: the one in which a recording begins belongs to it, and so does the last."""
_RESOURCES: Final = {str(resource): resource for resource in SCHEDULING_FIELDS}


class Gap(NamedTuple):
    """A time without a recorder. The state at its end is known, and that at its beginning."""

    begins: datetime
    ends: datetime


class RecordedChange(NamedTuple):
    """An object at the time when it was created, changed or deleted."""

    at: datetime
    key: RecordedKey
    object: Any | None
    """None if it was deleted."""


class _Entry(NamedTuple):
    """A line: where it is, and which object it is about."""

    start: int
    end: int
    key: RecordedKey | None
    is_put: bool


_State = Mapping[RecordedKey, int]
"""Of each object, the number of the line that has it."""


class Recording:
    """An open recording. Lines that are written after it was opened are not seen."""

    def __init__(self, path: Path) -> None:
        """`RecordingError` if the file cannot be read as a recording."""
        self.path = path
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise RecordingError(f"{path} is empty, and not a recording") from None
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from error
        end = self._data.find(b"\n")
        self.header: Header = read_header(self._data[: end if end >= 0 else 65536], str(path))
        self._entries: list[_Entry] = []
        self._times: list[datetime] = []
        self._unread: list[tuple[datetime, Mapping[str, str]]] = []
        self._decoded: dict[int, Any] = {}
        self.gaps: tuple[Gap, ...] = ()
        self.torn_bytes = 0
        """The bytes of a last line that was not completely written."""
        self.changes_start = end + 1
        """Where the snapshot ends in the file, and changes begin."""
        self._base = 0
        self._read_lines(end + 1)
        self._checkpoints: list[_State] = [{}]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        return cls(Path(path))

    def close(self) -> None:
        self._data.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- times ---

    @property
    def begins(self) -> datetime:
        """The time of the snapshot, the first state that is known."""
        return self._times[0]

    @property
    def ends(self) -> datetime:
        """The last time of which the state is known."""
        return self._times[-1]

    def times(self) -> Sequence[datetime]:
        """The times of all changes, in order; some are equal."""
        return [
            time
            for time, entry in zip(
                self._times[self._base :], self._entries[self._base :], strict=True
            )
            if entry.key is not None
        ]

    def gap_at(self, time: datetime) -> Gap | None:
        """The gap that a time is in."""
        return next((gap for gap in self.gaps if gap.begins < time < gap.ends), None)

    # --- states and changes ---

    def snapshot_at(self, time: datetime) -> Snapshot:
        """The objects at a time; `RecordingError` if the recording does not have it."""
        self._check(time)
        state = self._state_at(time)
        decoded = {number: self._object(number) for number in state.values()}
        snapshot = Snapshot()
        for key, number in state.items():
            snapshot.put(key.resource, decoded[number])
        self._decoded = decoded
        header = self.header
        snapshot.server_version, snapshot.gates = read_configuration(
            {
                "serverVersion": header.server_version,
                "rules": header.rules,
                "featureGates": header.feature_gates,
            }
        )
        for since, unread in self._unread:
            if since <= time:
                snapshot.unread = {
                    _RESOURCES[name]: why for name, why in unread.items() if name in _RESOURCES
                }
        return snapshot

    def notes_at(self, time: datetime) -> tuple[str, ...]:
        """What to know about a state: whether it is that before a gap."""
        gap = self.gap_at(time)
        if gap is None:
            return ()
        between = f"from {written_time(gap.begins)} to {written_time(gap.ends)}"
        return (f"nothing was recorded {between}; this is the state before",)

    def changes(
        self, after: datetime | None = None, upto: datetime | None = None
    ) -> Iterator[RecordedChange]:
        """The changes after one time and up to another, in order."""
        first = self._base if after is None else bisect_right(self._times, after)
        last = len(self._times) if upto is None else bisect_right(self._times, upto)
        for number in range(max(first, self._base), last):
            entry = self._entries[number]
            if entry.key is not None:
                obj = self._object(number) if entry.is_put else None
                yield RecordedChange(self._times[number], entry.key, obj)

    # --- for the writer ---

    def bodies_at(self, time: datetime) -> dict[RecordedKey, bytes]:
        """The objects at a time, encoded."""
        self._check(time)
        state = self._state_at(time)
        return {key: object_in(self._line(number)) for key, number in state.items()}

    def lines_after(self, time: datetime) -> Iterator[tuple[datetime, bytes]]:
        """The lines after a time, with their times."""
        for number in range(bisect_right(self._times, time), len(self._times)):
            yield self._times[number], bytes(self._line(number)) + b"\n"

    def unread_at(self, time: datetime) -> Mapping[str, str]:
        """The resources that could not be read at a time, by name, and why."""
        known: Mapping[str, str] = {}
        for since, unread in self._unread:
            if since <= time:
                known = unread
        return known

    def time_of_last(self, size: int) -> datetime:
        """The time after which lines of at most so many bytes follow."""
        floor = self._entries[-1].end + 1 - size
        number = bisect_left(self._entries, floor, key=lambda entry: entry.start)
        return self._times[min(number, len(self._times)) - 1]

    # --- reading ---

    def _read_lines(self, start: int) -> None:
        """Index all lines. A last line that is not complete is left out."""
        data, size = self._data, len(self._data)
        gaps: list[Gap] = []
        left, number = 0, 1
        time: datetime | None = None
        while start < size:
            number += 1
            end = data.find(b"\n", start)
            try:
                if end < 0:
                    raise ValueError("the line has no end")
                line = read_line(data[start:end])
                time = self._time_of(line, time, is_in_base=left > 0)
            except ValueError as error:
                if end < 0 or end + 1 == size:
                    self.torn_bytes = size - start
                    break
                raise RecordingError(
                    f"{self.path}, line {number}: not a line of a recording: {error}"
                ) from None
            if line.base is not None:
                left = line.base + 1
            self._entries.append(_Entry(start, end, line.key, line.put is not None))
            self._times.append(time)
            if line.unread is not None:
                self._unread.append((time, line.unread))
            if line.resumed is not None:
                gaps.append(Gap(line.resumed, time))
            start = end + 1
            if left:
                left -= 1
                self._base, self.changes_start = len(self._entries), start
        if not self._entries or left:
            raise RecordingError(f"{self.path} has no complete snapshot of a cluster")
        self.gaps = tuple(gaps)

    def _time_of(self, line: Line, last: datetime | None, *, is_in_base: bool) -> datetime:
        """The time of a line; `ValueError` if it must not be here."""
        if last is None:
            if line.base is None or line.at is None:
                raise ValueError("a snapshot must come first")
            return line.at
        if line.base is not None:
            raise ValueError("a second snapshot")
        if is_in_base:
            if line.put is None:
                raise ValueError("not an object of the snapshot")
            return last
        if line.at is None or line.at < last:
            raise ValueError("its time is missing, or earlier than that of the line before")
        return line.at

    def _check(self, time: datetime) -> None:
        if time < self.begins - _SECOND:
            raise RecordingError(
                f"{self.path} begins at {written_time(self.begins)}, after {written_time(time)}"
            )
        if time > self.ends + _SECOND:
            raise RecordingError(
                f"{self.path} ends at {written_time(self.ends)}, before {written_time(time)}"
            )

    def _state_at(self, time: datetime) -> _State:
        return self._state_after(bisect_right(self._times, max(time, self.begins)))

    def _state_after(self, count: int) -> _State:
        """The state after so many lines."""
        checkpoints = self._checkpoints
        while len(checkpoints) <= count // _STEP:
            known = len(checkpoints) - 1
            checkpoints.append(self._advanced(checkpoints[-1], known * _STEP, (known + 1) * _STEP))
        nearest = count // _STEP
        return self._advanced(checkpoints[nearest], nearest * _STEP, count)

    def _advanced(self, state: _State, first: int, last: int) -> _State:
        advanced = dict(state)
        for number in range(first, last):
            entry = self._entries[number]
            if entry.key is None:
                continue
            if entry.is_put:
                advanced[entry.key] = number
            else:
                advanced.pop(entry.key, None)
        return advanced

    def _line(self, number: int) -> bytes:
        entry = self._entries[number]
        return self._data[entry.start : entry.end]

    def _object(self, number: int) -> Any:
        found = self._decoded.get(number)
        if found is None:
            key = self._entries[number].key
            assert key is not None
            try:
                found = key.resource.codec.decode(object_in(self._line(number)))
            except (DecodeError, ClientError, msgspec.DecodeError) as error:
                raise RecordingError(f"{self.path}: {key} cannot be decoded: {error}") from None
        return found
