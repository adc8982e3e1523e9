"""What a strategy can do. Each kind overrides what is special about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from allot.api.base import ApiObject, replace
from allot.api.meta import ObjectMeta
from allot.apiserver.kinds.request import WriteRequest
from allot.validation.fields import FieldError

T = TypeVar("T", bound=ApiObject)


class Strategy(ABC, Generic[T]):
    """The steps of a write that differ between kinds. All of them are pure."""

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
        """Whether an update may come without a resourceVersion."""
        return True

    def warnings(self, new: T) -> list[str]:
        """What the client should hear about, although it is allowed."""
        return []


class StatusStrategy(Strategy[T]):
    """The same for kinds whose status is written apart from the rest."""

    @abstractmethod
    def prepare_status_update(self, new: T, old: T, request: WriteRequest) -> T:
        """`new` with everything but the status taken from `old`."""

    @abstractmethod
    def validate_status_update(
        self, new: T, old: T, request: WriteRequest
    ) -> Iterator[FieldError]: ...


def metadata_for_status_update(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """A status update leaves what people write in the metadata as it was."""
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
