"""The admission chain: plugins that may change a write, reject it, or add to its transaction.

    decode, default ──► mutating plugins ──► write pipeline ──► validating plugins ──► storage
                        `admit`              (prepare, validate)  `validate`, quota last

A plugin that reads other objects adds operations that hold only if those did not change, so that its decision is
still true when the object is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from allot.api.identities import ObjectKey
from allot.apiserver.kinds.request import RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.storage.interface import Operation


class AdmissionAttributes(NamedTuple):
    """A write as admission plugins see it."""

    operation: str
    """create, update or delete."""
    resource: Resource
    key: ObjectKey
    """On create the name is `generateName` until the write pipeline has generated a name."""
    new: Any
    """The object to write; None for a delete."""
    old: Any
    """The stored object; None for a create."""
    info: RequestInfo
    is_removal: bool = False
    """Whether the write removes the object from storage: a delete, or an update that removes the last finalizer."""


class Admitted(NamedTuple):
    """Operations for the same transaction, and warnings for the client."""

    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()


ADMITTED = Admitted()


class Handler(Protocol):
    def handles(self, operation: str, resource: Resource) -> bool:
        """Whether it takes part in these writes; the result never changes."""


@runtime_checkable
class MutatingPlugin(Handler, Protocol):
    async def admit(self, attributes: AdmissionAttributes) -> Any:
        """The object, possibly changed; raises `ApiError` to reject the write."""


@runtime_checkable
class ValidatingPlugin(Handler, Protocol):
    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        """Accepts the write; raises `ApiError` to reject it."""


AdmissionPlugin = MutatingPlugin | ValidatingPlugin
HandlerT = TypeVar("HandlerT", bound=Handler)


class HandlerIndex(Generic[HandlerT]):
    """The handlers of each operation on each resource, in order."""

    def __init__(self, handlers: Sequence[HandlerT]) -> None:
        self._handlers = tuple(handlers)
        self._found: dict[tuple[str, Resource], tuple[HandlerT, ...]] = {}

    def find(self, operation: str, resource: Resource) -> tuple[HandlerT, ...]:
        if resource.custom is not None:  # it comes and goes: its handlers are kept with it
            key = (self, operation)
            if key not in resource.derived:
                resource.derived[key] = self._handlers_of(operation, resource)
            kept: tuple[HandlerT, ...] = resource.derived[key]
            return kept
        found = self._found.get((operation, resource))
        if found is None:
            found = self._found[operation, resource] = self._handlers_of(operation, resource)
        return found

    def _handlers_of(self, operation: str, resource: Resource) -> tuple[HandlerT, ...]:
        return tuple(handler for handler in self._handlers if handler.handles(operation, resource))


CreationLock = Callable[[str], AbstractAsyncContextManager[Any]]


class Admission:
    """The chain. A plugin that has both phases takes part in both."""

    def __init__(
        self,
        plugins: Sequence[AdmissionPlugin] = (),
        creation_lock: CreationLock = lambda _: nullcontext(),
    ) -> None:
        """`creation_lock` is held during a create in a namespace, from admission to the write."""
        self._mutating = HandlerIndex[MutatingPlugin](
            [plugin for plugin in plugins if isinstance(plugin, MutatingPlugin)]
        )
        self._validating = HandlerIndex[ValidatingPlugin](
            [plugin for plugin in plugins if isinstance(plugin, ValidatingPlugin)]
        )
        self.creation_lock = creation_lock

    def mutates(self, operation: str, resource: Resource) -> bool:
        """Whether there are mutating plugins for these writes."""
        return bool(self._mutating.find(operation, resource))

    async def mutate(self, attributes: AdmissionAttributes) -> Any:
        """The object after all mutating plugins; each sees the changes of those before it."""
        for plugin in self._mutating.find(attributes.operation, attributes.resource):
            new = await plugin.admit(attributes)
            if new is not attributes.new:
                attributes = attributes._replace(new=new)
        return attributes.new

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        """The operations and warnings of all validating plugins."""
        plugins = self._validating.find(attributes.operation, attributes.resource)
        if not plugins:
            return ADMITTED
        operations: list[Operation] = []
        warnings: list[str] = []
        for plugin in plugins:
            admitted = await plugin.validate(attributes)
            operations.extend(admitted.operations)
            warnings.extend(admitted.warnings)
        return Admitted(tuple(operations), tuple(warnings))
