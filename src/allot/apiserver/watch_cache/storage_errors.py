"""Translates errors of the store to errors of the API."""

from __future__ import annotations

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
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
        if isinstance(error, StorageError) and not isinstance(error, RevisionConflictError):
            raise api_error_for(error) from error


def api_error_for(error: StorageError) -> ApiError:
    """The error that a client gets for an error of the store."""
    match error:
        case CompactedError(revision=revision, oldest=oldest):
            return api_errors.too_old(revision, oldest)
        case FutureRevisionError(revision=revision, current=current):
            return api_errors.too_large(revision, current)
        case StoreFullError():
            return api_errors.unavailable(f"the storage is full: {error}")
        case StoreUnavailableError():
            return api_errors.unavailable(f"the storage does not answer: {error}")
    return api_errors.internal(str(error))
