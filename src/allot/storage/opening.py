"""Opens a store by its name on the command line: `sqlite:PATH`, `etcd:URL[,URL...]` or `memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from allot.storage.interface import StorageError, Store

REPRESENTATIONS: Final = "sqlite, sqlite:PATH, etcd:URL[,URL...] or memory"
DEFAULT_FILE: Final = "allot.db"


async def open_store(
    spec: str, data_dir: Path | None, *, shows_pending_writes: bool = False
) -> Store:
    """The store that `spec` names. The SQLite file is in `data_dir` by default.

    `shows_pending_writes`: SQLite shows writes while they are committed.
    """
    kind, _, place = spec.partition(":")
    if spec == "memory":
        from allot.storage.memory import MemoryStore

        return await MemoryStore.open()
    if kind == "sqlite":
        from allot.storage.sqlite import SqliteStore

        return await SqliteStore.open(
            _sqlite_path(spec, place, data_dir), shows_pending_writes=shows_pending_writes
        )
    if kind == "etcd":
        try:
            from allot.storage.etcd import EtcdStore
        except ModuleNotFoundError as error:
            raise StorageError(
                f"storage {spec!r} needs the packages grpcio and protobuf: install allot[etcd]"
            ) from error

        return await EtcdStore.connect([url for url in place.split(",") if url])
    raise StorageError(f"storage {spec!r} is not one of: {REPRESENTATIONS}")


def _sqlite_path(spec: str, place: str, data_dir: Path | None) -> Path:
    if place:
        return Path(place).expanduser()
    if spec != "sqlite":
        raise StorageError(f"storage {spec!r} has no path")
    if data_dir is None:
        raise StorageError("storage 'sqlite' needs a path or a data directory")
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{data_dir} cannot be made: {error.strerror}") from error
    return data_dir / DEFAULT_FILE
