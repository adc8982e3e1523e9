"""Begin hooks: what the registries of some kinds add to an object that passed validation.

Services get addresses, see `service_addresses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from allot.api.base import replace
from allot.apiserver.admission.chain import AdmissionAttributes, Handler
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
        self._hooks = tuple(hooks)

    def of(self, operation: str, resource: Resource) -> tuple[BeginHook, ...]:
        """Those of such writes, which are always the same."""
        return tuple(hook for hook in self._hooks if hook.handles(operation, resource))


async def begin(hooks: Sequence[BeginHook], attributes: AdmissionAttributes) -> Begun:
    """What the hooks make of a write, each of what those before it have made."""
    operations: tuple[Operation, ...] = ()
    for hook in hooks:
        begun = await hook.begin(attributes)
        attributes = replace(attributes, new=begun.object)
        operations += begun.operations
    return Begun(attributes.new, operations)
