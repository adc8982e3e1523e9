"""The tables of an SQLite store, and migrations from every earlier schema version.

A migration is one transaction: if it is interrupted, the file is unchanged, and the next opening starts over.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from typing import Final

from allot.storage.checksums import (
    added,
    progress_checksum,
    record_checksum,
    time_checksum,
)
from allot.storage.interface import DamagedStoreError, StorageError

APPLICATION_ID: Final = 0x616C6F74  # "alot"
POSITION_BITS: Final = 16

MIGRATIONS: Final = (
    (
        """CREATE TABLE log (
            place INTEGER PRIMARY KEY,  -- revision << 16 | position in the write
            key TEXT NOT NULL,
            created INTEGER NOT NULL,   -- 0 if the key was deleted
            previous INTEGER NOT NULL,  -- revision of the key's row before; 0 if it did not exist
            value BLOB                  -- NULL if the key was deleted
        )""",
        # At `time` the last revision was `revision`.
        "CREATE TABLE times (revision INTEGER PRIMARY KEY, time REAL NOT NULL)",
        "CREATE TABLE progress (compacted INTEGER NOT NULL)",
        "INSERT INTO progress VALUES (0)",
    ),
    (
        "ALTER TABLE log RENAME TO log_1",
        """CREATE TABLE log (
            place INTEGER PRIMARY KEY,  -- revision << 16 | position in the write
            key TEXT NOT NULL,
            created INTEGER NOT NULL,   -- 0 if the key was deleted
            previous INTEGER NOT NULL,  -- revision of the key's row before; 0 if it did not exist
            changes INTEGER NOT NULL,   -- how many rows the write has; 0 if not known
            checksum INTEGER NOT NULL,
            value BLOB                  -- NULL if the key was deleted
        )""",
        f"""INSERT INTO log
            SELECT place, key, created, previous, changes,
                record_checksum(place, key, created, previous, changes, value), value
            FROM (
                SELECT l.*, CASE WHEN place >> {POSITION_BITS} <= compacted THEN 0 ELSE (
                    SELECT count(*) FROM log_1 w
                    WHERE w.place >= l.place >> {POSITION_BITS} << {POSITION_BITS}
                        AND w.place < (l.place >> {POSITION_BITS}) + 1 << {POSITION_BITS}
                ) END AS changes
                FROM progress CROSS JOIN log_1 l ORDER BY place
            )""",  # noqa: S608
        "DROP TABLE log_1",
        "ALTER TABLE times RENAME TO times_1",
        """CREATE TABLE times (
            revision INTEGER PRIMARY KEY,
            time REAL NOT NULL,
            checksum INTEGER NOT NULL
        )""",
        "INSERT INTO times SELECT revision, time, time_checksum(revision, time) FROM times_1",
        "DROP TABLE times_1",
        "ALTER TABLE progress RENAME TO progress_1",
        """CREATE TABLE progress (
            compacted INTEGER NOT NULL,
            kept INTEGER NOT NULL,      -- how many rows are left up to `compacted`
            kept_sum INTEGER NOT NULL,  -- the sum of their checksums
            checksum INTEGER NOT NULL
        )""",
        f"""INSERT INTO progress
            SELECT compacted, kept, kept_sum, progress_checksum(compacted, kept, kept_sum)
            FROM (
                SELECT compacted, count(place) AS kept, sum_of_checksums(checksum) AS kept_sum
                FROM progress_1 LEFT JOIN log ON place >> {POSITION_BITS} <= compacted
            )""",  # noqa: S608
        "DROP TABLE progress_1",
    ),
)
"""The statements from each schema version to the next, beginning with an empty file."""


class _SumOfChecksums:
    """The sum of a column, in 64 bits."""

    def __init__(self) -> None:
        self._total = 0

    def step(self, checksum: int | None) -> None:
        self._total = added(self._total, checksum or 0)

    def finalize(self) -> int:
        return self._total


def read_version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version, 0 if the file is empty. Raises `StorageError` if it belongs to another program."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    rows = connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
    tables = [sql for (sql,) in rows]
    is_new = not tables and version == application == 0
    if application != APPLICATION_ID and not is_new:
        if tables and tables in map(tables_of, range(1, len(MIGRATIONS) + 1)):
            raise DamagedStoreError("its header does not say that it is one of ours")
        raise StorageError(f"{path} is a database of another program")
    if version > len(MIGRATIONS):
        raise StorageError(
            f"{path} was written by a newer version of allot (schema {version}, this one knows"
            f" {len(MIGRATIONS)}); use that version"
        )
    if version < 0 or tables != tables_of(version):
        raise DamagedStoreError(f"its tables are not those of schema {version}")
    return version


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate from `version` to the current schema in one transaction."""
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _run(connection, MIGRATIONS[version:])
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@cache
def tables_of(version: int) -> list[str]:
    """The CREATE statements of a schema version, as SQLite stores them."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _run(connection, MIGRATIONS[:version])
        found = connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
    finally:
        connection.close()
    return [sql for (sql,) in found]


def _run(connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...]) -> None:
    connection.create_function("record_checksum", 6, record_checksum, deterministic=True)
    connection.create_function("time_checksum", 2, time_checksum, deterministic=True)
    connection.create_function("progress_checksum", 3, progress_checksum, deterministic=True)
    connection.create_aggregate("sum_of_checksums", 1, _SumOfChecksums)
    for statements in migrations:
        for statement in statements:
            connection.execute(statement)
