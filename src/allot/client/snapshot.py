"""A cluster at one moment: objects that were listed once, or that come from files. Nothing follows the server.

What may not be read, or is not there to be read, is noted and does not stop the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from allot.api.identities import ObjectKey
from allot.client.resources import Resource
from allot.client.server_gates import ServerGates

T = TypeVar("T")


class Snapshot:
    """Objects by resource, and why some are missing."""

    def __init__(self) -> None:
        self._objects: dict[Resource[Any], dict[ObjectKey, Any]] = {}
        self.unread: dict[Resource[Any], str] = {}
        """Resources of which not everything is here, and why."""
        self.server_version = ""
        """What the API server says it is; empty for files, and for a server that does not say it."""
        self.gates = ServerGates()
        """What is switched on there, if that was asked for."""
        self.time: datetime | None = None
        """The time that it shows; None for now."""
        self.notes: tuple[str, ...] = ()
        """What to know about the objects of that time."""

    def put(self, resource: Resource[T], obj: T) -> None:
        """Add an object, or take another version of it."""
        self._objects.setdefault(resource, {})[resource.codec.key(obj)] = obj

    def remove(self, resource: Resource[Any], key: ObjectKey) -> None:
        self._objects.get(resource, {}).pop(key, None)

    def copy(self) -> Snapshot:
        """The same objects, in a snapshot of its own."""
        copy = Snapshot()
        copy._objects = {resource: dict(objects) for resource, objects in self._objects.items()}
        copy.unread, copy.server_version, copy.gates = (
            dict(self.unread),
            self.server_version,
            self.gates,
        )
        copy.time, copy.notes = self.time, self.notes
        return copy

    def of(self, resource: Resource[T]) -> Sequence[T]:
        return tuple(self._objects.get(resource, {}).values())

    def get(self, resource: Resource[T], key: ObjectKey) -> T | None:
        return self._objects.get(resource, {}).get(key)
