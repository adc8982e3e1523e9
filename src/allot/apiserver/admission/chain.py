"""The last word before a write: plugins that may change it, add to its transaction, or refuse it.

This is the seam for everything that depends on more than the object itself. A plugin that reads other objects
adds operations that hold only if those did not change, so that what it decided is still true when it
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from allot.api.identities import ObjectKey
from allot.apiserver.kinds.resources import Resource
from allot.storage.interface import Operation

if TYPE_CHECKING:
    from allot.apiserver.registry.object_store import Writer


class Attempt(NamedTuple):
    """A write that passed validation. `new` is None for a delete, `old` for a create."""

    verb: str
    resource: Resource
    key: ObjectKey
    new: Any
    old: Any
    writer: Writer
    subresource: str = ""


class Admitted(NamedTuple):
    """The write goes on with this object and, in the same transaction, these operations."""

    object: Any
    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()


class AdmissionPlugin(Protocol):
    def handles(self, verb: str, resource: Resource) -> bool:
        """Whether it has a say in these writes at all; the answer never changes."""

    async def admit(self, attempt: Attempt) -> Admitted:
        """Let it pass, perhaps changed; raises `ApiError` to refuse it."""


Turn = Callable[[str], AbstractAsyncContextManager[Any]]


class Admission:
    """Plugins in order, each seeing what the ones before it made of the object."""

    def __init__(
        self, plugins: Sequence[AdmissionPlugin] = (), turn: Turn = lambda _: nullcontext()
    ) -> None:
        """`turn` gives what to hold while something is created in a namespace, from admission to the write."""
        self._plugins = tuple(plugins)
        self._concerned: dict[tuple[str, Resource], tuple[AdmissionPlugin, ...]] = {}
        self.turn = turn

    async def admit(self, attempt: Attempt) -> Admitted:
        concerned = self._concerned.get((attempt.verb, attempt.resource))
        if concerned is None:
            concerned = self._find_concerned(attempt.verb, attempt.resource)
        operations: list[Operation] = []
        warnings: list[str] = []
        for plugin in concerned:
            admitted = await plugin.admit(attempt)
            if admitted.object is not attempt.new:
                attempt = attempt._replace(new=admitted.object)
            operations.extend(admitted.operations)
            warnings.extend(admitted.warnings)
        return Admitted(attempt.new, tuple(operations), tuple(warnings))

    def _find_concerned(self, verb: str, resource: Resource) -> tuple[AdmissionPlugin, ...]:
        concerned = tuple(plugin for plugin in self._plugins if plugin.handles(verb, resource))
        self._concerned[verb, resource] = concerned
        return concerned
