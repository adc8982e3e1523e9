"""`--at` on recordings: which time is meant, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from allot.cli.errors import CommandError
from allot.cli.main import allot
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.observed_cluster import KINDS
from allot.questions.recording.recorder import observed, open_log
from allot.questions.recording.writer import Limits
from allot.testing.builders import a_device, a_slice

END = datetime.now(UTC).replace(microsecond=0)
START = END - timedelta(hours=26)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A device from the beginning, another one an hour before the end."""
    path = tmp_path / "c.rec"
    log = open_log(
        path, observed(Snapshot(), KINDS, anonymized=False), Limits(timedelta(days=9)), b""
    )
    log.put(resources.RESOURCE_SLICES, a_slice(a_device("gpu-0")), START)
    log.begin(START)
    slice_ = a_slice(a_device("gpu-0"), a_device("gpu-1"))
    log.put(resources.RESOURCE_SLICES, slice_, END - timedelta(hours=1))
    log.end(END)
    return path


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(allot, [*map(str, arguments), "-o", "json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", ["devices", "status"])
@pytest.mark.parametrize(
    ("at", "count"),
    [
        (None, 2),
        ("-30m", 2),
        ("-90m", 1),
        ((END - timedelta(minutes=30)).isoformat(), 2),
        ((END - timedelta(minutes=90)).isoformat(), 1),
        ((END + timedelta(minutes=30)).astimezone().strftime("%H:%M"), 1),
        ((END - timedelta(minutes=30)).astimezone().strftime("%H:%M"), 2),
    ],
    ids=["end", "ago-late", "ago-early", "rfc-late", "rfc-early", "of-the-day-before", "of-the-day"],
)  # fmt: skip
def test_times_of_a_recording(recording: Path, command: str, at: str | None, count: int) -> None:
    found = run(command, "-f", recording, *(["--at", at] if at else []))
    devices = found["devices"] if command == "devices" else found["total"]["totalDevices"]
    assert (len(devices) if command == "devices" else devices) == count


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "-30h"], "begins at"),
        (["--at", "2090-01-01T00:00:00Z"], "ends at"),
        (["-f", "other.yaml"], "a recording is a whole cluster"),
    ],
)
def test_what_is_refused(recording: Path, arguments: list[str], said: str) -> None:
    (recording.parent / "other.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
    )
    given = [str(recording.parent / each) if each.endswith(".yaml") else each for each in arguments]
    with pytest.raises(CommandError, match=said):
        run("status", "-f", recording, *given)


def test_files_have_no_past(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    with pytest.raises(CommandError, match=r"--at needs a recording, and .*x.yaml is none"):
        run("status", "-f", tmp_path / "x.yaml", "--at", "10:00")


def test_hardware_has_no_past() -> None:
    with pytest.raises(CommandError, match="--at needs a recording or a cluster"):
        run("devices", "--hardware", "gpu-server", "--at", "10:00")


def test_watching_the_past_is_refused(recording: Path) -> None:
    with pytest.raises(CommandError, match="--watch follows"):
        run("devices", "--watch", "--at", "10:00")
