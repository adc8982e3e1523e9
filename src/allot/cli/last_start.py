"""What a data directory was last started with: its hardware and its storage.

`allot up` without options continues with the same hardware; a new directory gets the example hardware.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from allot.cli.data_directory import LAST_START, has_objects
from allot.cli.errors import CommandError

EXAMPLE_HARDWARE: Final = ("gpu-server=2", "shared-nic", "fabric")
"""Two GPU servers, a node with shared network cards, a rack of GPUs in a fabric: what `examples/` and `allot demo` use."""


class LastStart(NamedTuple):
    """The options that count for the next start, and for `allot down`."""

    hardware: tuple[str, ...]
    storage: str


def read_last_start(data_dir: Path) -> LastStart | None:
    """None for a directory that was not started yet; `CommandError` if the record is damaged."""
    path = data_dir / LAST_START
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return LastStart(tuple(map(str, record["hardware"])), str(record["storage"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path} is damaged: delete it, and name --hardware again") from error


def write_last_start(data_dir: Path, start: LastStart) -> None:
    path = data_dir / LAST_START
    try:
        path.write_text(json.dumps(start._asdict()) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def default_hardware(data_dir: Path) -> tuple[str, ...]:
    """The hardware without `--hardware`: as at the last start; in a new directory, that of the examples."""
    last = read_last_start(data_dir)
    if last is not None:
        return last.hardware
    return () if has_objects(data_dir) else EXAMPLE_HARDWARE


def with_absolute_paths(references: Sequence[str]) -> tuple[str, ...]:
    """The references as they are found from any directory."""
    from allot.driver.loading import profiles

    known = profiles()
    return tuple(
        reference
        if reference.partition("=")[0] in known
        else str(Path(reference).expanduser().absolute())
        for reference in references
    )


def where_state_is(storage: str, data_dir: Path) -> str:
    """Where the objects of a stopped cluster are; empty if they are gone."""
    kind, _, rest = storage.partition(":")
    if kind == "memory":
        return ""
    if kind == "etcd":
        return f"etcd at {rest}"
    return rest or str(data_dir)
