"""`--at TIME`: questions about the past, of a recording or of what the API server still keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from allot.cli.errors import CommandError
from allot.cli.moments import FORMS, is_time_of_day, read_moment

if TYPE_CHECKING:
    from allot.client.snapshot import Snapshot
    from allot.questions.recording.reader import Recording

F = TypeVar("F", bound=Callable[..., Any])


class Moment(NamedTuple):
    """A time as it was written, and when."""

    text: str
    asked_at: datetime

    def of_cluster(self) -> datetime:
        """The time in a cluster; `CommandError` if it is in the future."""
        found = read_moment(self.text, self.asked_at)
        if found > self.asked_at:
            raise CommandError(f"--at {self.text} is in the future")
        return found

    def in_recording(self, recording: Recording) -> datetime:
        """The time in a recording: times of day are the last such time in it, durations count from its end."""
        found = read_moment(self.text, recording.ends)
        before = found - timedelta(days=1)
        if is_time_of_day(self.text) and found > recording.ends and before >= recording.begins:
            return before
        return found


class MomentType(click.ParamType[Moment]):
    """A click type: `Moment`s."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from allot.client.wall_clock import utc_now

        now = utc_now()
        try:
            read_moment(value, now)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return Moment(value, now)


def at_option(command: F) -> F:
    """The option; the function gets `at`, a `Moment` or None."""
    return click.option(
        "--at",
        type=MomentType(),
        metavar="TIME",
        help=f"Ask about this time, of a recording (`allot record`) or of what the API server keeps: {FORMS}.",
    )(command)


def snapshot_of_recording(path: str, at: Moment | None) -> Snapshot | None:
    """The cluster at a time, by default at the end; None if the file is not a recording.

    `CommandError` if it cannot be read, or does not have the time.
    """
    file = Path(path)
    from allot.questions.recording.detection import is_recording

    if not is_recording(file):
        return None
    from allot.questions.recording.lines import RecordingError
    from allot.questions.recording.reader import Recording

    try:
        with Recording.open(file) as recording:
            time = recording.ends if at is None else at.in_recording(recording)
            snapshot = recording.snapshot_at(time)
            snapshot.time, snapshot.notes = time, recording.notes_at(time)
            return snapshot
    except RecordingError as error:
        raise CommandError(str(error)) from None
