"""Translates errors of the store to errors of the API."""

from __future__ import annotations

from allot.apiserver import api_errors
from allot.storage.interface import (
    CompactedError,
    FutureRevisionError,
    RevisionConflictError,
    StorageError,
    StoreFullError,
    StoreUnavailableError,
)


class api_errors_for_storage:  # noqa: N801 - used like a function
    """Raises storage errors of a block as API errors. Conflicts are left to the caller to resolve."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        match error:
            case None | RevisionConflictError():
                return
            case CompactedError(revision=revision, oldest=oldest):
                raise api_errors.too_old(revision, oldest) from error
            case FutureRevisionError(revision=revision, current=current):
                raise api_errors.too_large(revision, current) from error
            case StoreFullError():
                raise api_errors.unavailable(f"the storage is full: {error}") from error
            case StoreUnavailableError():
                raise api_errors.unavailable(f"the storage does not answer: {error}") from error
            case StorageError():
                raise api_errors.internal(str(error)) from error
