"""Strategies: the steps of a write that differ between kinds. Each kind overrides what is special about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from allot.api.base import ApiObject, replace
from allot.api.kinds import Kind
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.kinds.request import WriteRequest
from allot.validation.fields import FieldError, FieldPath

T = TypeVar("T", bound=ApiObject | RawObject)


class Strategy(ABC, Generic[T]):
    """The steps of a write that differ between kinds. All of them are pure."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    @abstractmethod
    def prepare_create(self, new: T, request: WriteRequest) -> T:
        """`new` with what clients may not set removed, and what the server sets filled in."""

    @abstractmethod
    def validate_create(self, new: T, request: WriteRequest) -> Iterator[FieldError]: ...

    @abstractmethod
    def prepare_update(self, new: T, old: T, request: WriteRequest) -> T:
        """`new` with what this endpoint does not change taken from `old`."""

    @abstractmethod
    def validate_update(self, new: T, old: T, request: WriteRequest) -> Iterator[FieldError]: ...

    def accepts_unconditional_update(self, version: str) -> bool:
        """Whether an update may come without a resourceVersion; otherwise that is all that is said about it."""
        return True

    def warnings(self, new: T) -> list[str]:
        """Warnings for the client about an object that is accepted."""
        return []

    def update_warnings(self, new: T) -> list[str]:
        """The same about an update."""
        return self.warnings(new)

    def with_metadata(self, obj: Any, metadata: ObjectMeta) -> Any:
        return replace(obj, metadata=metadata)

    def as_listed(self, errors: list[FieldError], request: WriteRequest) -> list[FieldError]:
        """The errors as an answer lists them, with the paths of the request's version.

        Declarative rules report fields of the request's version, and after handwritten ones, which report those of v1.
        """
        if request.version == "v1beta1":
            errors = [
                error._replace(path=FieldPath(self.flat_path(str(error.path))))
                if error.declared
                else error
                for error in errors
            ]
        return sorted(errors, key=lambda error: error.declared)

    def flat_path(self, path: str) -> str:
        """The path of a hub field in v1beta1, where requests and devices have one level less or more."""
        return path


class StatusStrategy(Strategy[T]):
    """The strategy of a kind whose status is a subresource."""

    @abstractmethod
    def prepare_status_update(self, new: T, old: T, request: WriteRequest) -> T:
        """`new` with everything but the status taken from `old`."""

    @abstractmethod
    def validate_status_update(
        self, new: T, old: T, request: WriteRequest
    ) -> Iterator[FieldError]: ...


def metadata_for_status_update(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """A status update leaves the metadata that clients write unchanged."""
    return replace(
        new,
        generation=old.generation,
        deletion_timestamp=old.deletion_timestamp,
        labels=old.labels,
        annotations=old.annotations,
        finalizers=old.finalizers,
        owner_references=old.owner_references,
        self_link=old.self_link,
    )
