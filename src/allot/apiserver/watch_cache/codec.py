"""Codecs: what every codec can do. `codecs` and `custom_codec` have those of built-in kinds and of custom resources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from allot.api.meta import ObjectMeta
from allot.api.protobuf.envelope import has_protobuf, target_of
from allot.api.protobuf.writing import write_json
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import release_interpreter


class Codec(ABC):
    """How objects of one resource are read, written and looked into."""

    def __init__(self, resource: Resource, storage_version: str) -> None:
        self.resource = resource
        self.storage_version = storage_version
        self._has_protobuf: dict[str, bool] = {}

    @abstractmethod
    def decode(self, body: bytes, version: str, now: datetime) -> Any:
        """The object in a request body, with defaults. Raises `DecodeError`."""

    def decode_strictly(self, body: bytes, version: str, now: datetime) -> tuple[Any, list[str]]:
        """The object in a request body, and its unknown and duplicate fields. Raises `DecodeError`."""
        obj = self.decode(body, version, now)
        release_interpreter(len(body))
        return obj, self.strict_issues(body, version)

    def decode_known(self, body: bytes, version: str) -> Any:
        """What `decode_strictly` makes of a request body that says of which kind it is; None if it is not certain that it finds no mistakes.

        This is for what there is most of: objects made from one template, of which the first one was read by
        `decode_strictly`, and what our own components write.
        """
        return None

    @abstractmethod
    def decode_protobuf(self, content: bytes, version: str, now: datetime) -> Any:
        """The object in a protobuf message, with defaults. Raises `DecodeError`."""

    @abstractmethod
    def encode_protobuf(self, obj: Any, version: str) -> bytes:
        """The object's protobuf message, without an envelope."""

    def stored_to_protobuf(self, body: bytes, resource_version: str) -> bytes:
        """The protobuf message in the storage version, from bytes that `encode` wrote in it."""
        return write_json(
            body, target_of(self.resource.gvk(self.storage_version)), resource_version
        )

    def has_protobuf(self, version: str) -> bool:
        """Whether there is a message for objects in a version."""
        found = self._has_protobuf.get(version)
        if found is None:
            found = self._has_protobuf[version] = has_protobuf(self.resource.gvk(version))
        return found

    @abstractmethod
    def strict_issues(self, body: bytes, version: str) -> list[str]:
        """Unknown and duplicate fields of a body that decodes."""

    @abstractmethod
    def decode_stored(self, body: bytes) -> Any:
        """The object in bytes that `encode` wrote in the storage version."""

    keeps_written = False
    """Whether `as_stored` costs less than `decode_stored`."""

    def as_stored(self, obj: Any, metadata: ObjectMeta) -> Any:
        """What `decode_stored` makes of the object after it was encoded, with this metadata."""
        stored = self.decode_stored(self.encode(obj, self.storage_version))
        return self.with_metadata(stored, metadata)

    @abstractmethod
    def encode(self, obj: Any, version: str) -> bytes:
        """JSON without kind, apiVersion and resourceVersion; metadata first."""

    @abstractmethod
    def document(self, obj: Any, version: str) -> dict[str, Any]:
        """The whole object as plain JSON values, for patches. Opaque parts stay `Raw`."""

    def parts_of_new(self, obj: Any, version: str) -> dict[str, Any]:
        """The top-level fields of a new object. The metadata may be an `ObjectMeta` instead of JSON."""
        return self.document(obj, version)

    @abstractmethod
    def with_metadata(self, obj: Any, metadata: ObjectMeta) -> Any: ...

    @abstractmethod
    def field(self, obj: Any, path: str) -> str:
        """The value of a selectable field as a string; its zero value if it is not set."""

    def field_reader(self, path: str) -> Callable[[Any], str]:
        """The same as a function of the object, for one path and many objects."""
        return lambda obj: self.field(obj, path)


class PartialCodec(Codec):
    """A codec that can also read and replace single top-level fields of an object."""

    @abstractmethod
    def has_parts(self, names: Collection[str], version: str) -> bool:
        """Whether these top-level fields can be read and replaced without the rest of an object in a version."""

    @abstractmethod
    def parts(self, obj: Any, names: Collection[str], version: str) -> dict[str, Any]:
        """`document` with only these top-level fields."""

    @abstractmethod
    def with_parts(
        self, obj: Any, names: Collection[str], body: bytes, version: str, now: datetime
    ) -> tuple[Any, list[str]]:
        """The object with these top-level fields as they are in `body`, with defaults, and the unknown fields of `body`.

        `body` has been encoded here, so it has no field twice. Raises `DecodeError`.
        """
