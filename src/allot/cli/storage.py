"""`allot storage`: looks whether a data directory is damaged, and saves what is intact."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from allot.cli.data_directory import occupant
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError, storage_error
from allot.cli.tables import output_option, print_document

if TYPE_CHECKING:
    from allot.storage.rescue import Examination

MAX_LINES: Final = 50
"""How many damaged records a table shows; JSON and YAML have all."""
CREDENTIALS: Final = "pki"


@click.group()
def storage() -> None:
    """Check a data directory for damage, and save what is intact."""


@storage.command()
@click.argument("data", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@output_option
def check(data: Path, output: str) -> int:
    """Verify every record in a data directory, or in an SQLite file, and name those that are damaged.

    Nothing is changed. The cluster must be stopped. The exit code is 1 if there is damage.
    """
    from allot.storage.interface import StorageError
    from allot.storage.rescue import examine

    path = _database_in(data)
    try:
        found = examine(path)
    except StorageError as error:
        raise storage_error(error) from error
    _print(found, path, None, output)
    return EXIT_OK if found.problem is None else EXIT_FINDINGS


@storage.command()
@click.argument("data", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="NEW",
    required=True,
    type=click.Path(path_type=Path),
    help="The directory to make; a file, if DIR is one.",
)
@output_option
def rescue(data: Path, target: Path, output: str) -> int:
    """Save what is intact in a damaged data directory into a new one, and list what is lost.

    Objects keep their resource versions; new ones are higher than any that was given out before. Credentials are copied
    too. The exit code is 1 if something is lost.
    """
    from allot.storage import rescue as rescuing
    from allot.storage.interface import StorageError
    from allot.storage.opening import DEFAULT_FILE

    path = _database_in(data)
    new = target / DEFAULT_FILE if data.is_dir() else target
    try:
        found = rescuing.rescue(path, new)
    except StorageError as error:
        raise storage_error(error) from error
    if data.is_dir():
        _copy_credentials(data, target)
    _print(found, path, new, output)
    return EXIT_FINDINGS if _is_incomplete(found) else EXIT_OK


def _database_in(data: Path) -> Path:
    """The file to verify; `CommandError` if it is in use."""
    from allot.storage.opening import DEFAULT_FILE

    if not data.is_dir():
        return data
    pid = occupant(data)
    if pid is not None:
        raise CommandError(
            f"a cluster (pid {pid}) works in {data}: stop it with `allot down --data-dir {data}` first"
        )
    path = data / DEFAULT_FILE
    if not path.exists():
        raise CommandError(f"no {DEFAULT_FILE} in {data}")
    return path


def _copy_credentials(data: Path, target: Path) -> None:
    source = data / CREDENTIALS
    try:
        if source.is_dir() and not (target / CREDENTIALS).exists():
            shutil.copytree(source, target / CREDENTIALS)
    except (OSError, shutil.Error) as error:
        raise CommandError(f"{source} cannot be copied: {error}") from error


def _is_incomplete(found: Examination) -> bool:
    lost = any(record.is_lost for record in found.damaged)
    return bool(lost or found.gaps or found.missing_old or found.unreadable_pages)


# --- output ---


def _print(found: Examination, path: Path, new: Path | None, output: str) -> None:
    if output == "table":
        for line in _lines(found, path, new):
            echo_text(line)
        return
    print_document(_document(found, path, new), output)


def _document(found: Examination, path: Path, new: Path | None) -> dict[str, Any]:
    return {
        "file": str(path),
        "newFile": str(new) if new else None,
        "problem": found.problem,
        "revision": found.revision,
        "objects": len(found.current),
        "intactRecords": found.intact,
        "damagedRecords": [
            {
                "key": record.key,
                "revision": record.revision,
                "knownRevision": record.known,
                "lost": record.is_lost,
            }
            for record in found.damaged
        ],
        "missingRevisions": [{"first": gap.first, "last": gap.last} for gap in found.gaps],
        "missingOldRecords": found.missing_old,
        "unreadablePages": list(found.unreadable_pages),
        "notes": list(found.notes),
    }


def _lines(found: Examination, path: Path, new: Path | None) -> list[str]:
    lines = [found.problem or f"{path} is intact"]
    lines.append(
        f"{len(found.current)} objects, {found.intact} intact records, revision {found.revision}"
    )
    if found.damaged:
        lines += ["", f"{'REVISION':>10}  {'STATE':<24}  KEY"]
        lines += [
            f"{record.revision:>10}  {_state(record):<24}  {record.key}"
            for record in found.damaged[:MAX_LINES]
        ]
        if len(found.damaged) > MAX_LINES:
            lines.append(f"... and {len(found.damaged) - MAX_LINES} more; -o json has all")
    lines += [
        f"missing: revision {gap.first}"
        if gap.first == gap.last
        else f"missing: revisions {gap.first} to {gap.last}"
        for gap in found.gaps[:MAX_LINES]
    ]
    if found.missing_old:
        lines.append(
            f"missing: {found.missing_old} objects that were written before history begins"
        )
    if found.unreadable_pages:
        lines.append(f"unreadable pages: {', '.join(map(str, found.unreadable_pages[:MAX_LINES]))}")
    lines += [f"note: {note}" for note in found.notes]
    if new is not None:
        lines.append(f"{len(found.current)} objects are in {new} now")
    return lines


def _state(record: Any) -> str:
    if not record.is_lost:
        return "superseded"
    return "lost" if record.known is None else f"lost, {record.known} is known"
