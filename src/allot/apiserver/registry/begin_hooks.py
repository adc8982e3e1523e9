"""Begin hooks: what the registries of some kinds add to an object that passed validation.

Services get addresses, see `service_addresses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from allot.api.base import replace
from allot.apiserver.admission.chain import AdmissionAttributes, Handler, HandlerIndex
from allot.apiserver.kinds.resources import Resource
from allot.storage.interface import Operation


class Begun(msgspec.Struct, frozen=True):
    """The object to write and, in the same transaction, these operations."""

    object: Any
    operations: tuple[Operation, ...] = ()


class BeginHook(Handler, Protocol):
    async def begin(self, attributes: AdmissionAttributes) -> Begun: ...


class BeginHooks:
    """The hooks of all kinds."""

    def __init__(self, hooks: Sequence[BeginHook] = ()) -> None:
        self._hooks = HandlerIndex(hooks)

    def are_for(self, operation: str, resource: Resource) -> bool:
        """Whether there are any for such writes."""
        return bool(self._hooks[operation, resource])

    async def begin(self, attributes: AdmissionAttributes) -> Begun:
        operations: tuple[Operation, ...] = ()
        for hook in self._hooks[attributes.operation, attributes.resource]:
            begun = await hook.begin(attributes)
            attributes = replace(attributes, new=begun.object)
            operations += begun.operations
        return Begun(attributes.new, operations)
