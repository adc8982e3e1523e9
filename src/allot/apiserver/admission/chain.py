"""The admission chain: plugins that may change a write, reject it, or add to its transaction.

    decode, default ──► mutating plugins ──► write pipeline ──► validating plugins ──► quota ──► storage
                        `admit`              (prepare, validate)  `validate`

Policies and webhooks that users register are the last of the mutating and of the validating plugins.

A plugin that reads other objects adds operations that hold only if those did not change, so that its decision is
still true when the object is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.apiserver.kinds.request import RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.storage.interface import Operation


class AdmissionAttributes(msgspec.Struct, frozen=True):
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
    options: Any = None
    """The options of a delete."""


class Admitted(msgspec.Struct, frozen=True):
    """Operations for the same transaction, and warnings for the client."""

    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()

    def and_then(self, more: Admitted) -> Admitted:
        return Admitted(self.operations + more.operations, self.warnings + more.warnings)


ADMITTED = Admitted()


class Handler(Protocol):
    def handles(self, operation: str, resource: Resource) -> bool:
        """Whether it takes part in these writes; the result never changes."""


class Grown(NamedTuple):
    """An object to which a plugin has added much: what other objects say, perhaps in many places."""

    object: Any
    size: int
    """The work on what was added, in bytes of a plain object."""


@runtime_checkable
class MutatingPlugin(Handler, Protocol):
    async def admit(self, attributes: AdmissionAttributes) -> Any:
        """The object, possibly changed, or `Grown`; raises `ApiError` to reject the write."""


@runtime_checkable
class ValidatingPlugin(Handler, Protocol):
    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        """Accepts the write; raises `ApiError` to reject it."""


class Quota(ValidatingPlugin, Protocol):
    """The plugin that charges writes to quotas."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to charge, as far as that is known without waiting."""


class OfWholeObjects:
    """A mutating plugin that leaves writes of subresources as they are: it is not asked about them."""


AdmissionPlugin = MutatingPlugin | ValidatingPlugin


class DynamicMutation(NamedTuple):
    """What policies and webhooks make of an object in one round."""

    object: Any
    """The changed object; None if it did not change."""
    size: int = 0
    """The work on the objects after that, in bytes of JSON."""
    warnings: tuple[str, ...] = ()
    needs_second_round: bool = False
    reinvocation: Any = None


class Activity:
    """Whether anything is registered. An attribute: every write reads it."""

    __slots__ = ("is_idle",)

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle


class DynamicPlugin(Protocol):
    """Policies and webhooks that users register."""

    @property
    def activity(self) -> Activity: ...

    async def prepare(self, operation: str, resource: Resource, info: RequestInfo) -> None:
        """Before a write asks anything else: read what has been registered meanwhile."""

    def mutates(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        """Whether any may change such writes, or reject them before they are validated."""

    def calls_webhooks(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        """Whether such writes may wait long for others."""

    async def mutate(self, attributes: AdmissionAttributes) -> DynamicMutation: ...

    async def mutate_again(
        self, attributes: AdmissionAttributes, before: DynamicMutation
    ) -> DynamicMutation: ...

    async def validate(self, attributes: AdmissionAttributes) -> tuple[str, ...]:
        """Warnings; raises `ApiError` to reject the write."""


class NoDynamicPlugin:
    """A server without policies and webhooks."""

    def __init__(self) -> None:
        self.activity = Activity(is_idle=True)

    async def prepare(self, operation: str, resource: Resource, info: RequestInfo) -> None:
        """There is nothing to read."""

    def mutates(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        return False

    def calls_webhooks(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        return False

    async def mutate(self, attributes: AdmissionAttributes) -> DynamicMutation:
        return DynamicMutation(None)

    async def mutate_again(
        self, attributes: AdmissionAttributes, before: DynamicMutation
    ) -> DynamicMutation:
        return before

    async def validate(self, attributes: AdmissionAttributes) -> tuple[str, ...]:
        return ()


class Mutated(msgspec.Struct, frozen=True):
    """The object after the mutating plugins, and warnings for the client."""

    object: Any
    warnings: tuple[str, ...] = ()
    changed_size: int = 0
    """The work on it if policies or webhooks changed it, in bytes of JSON: it may be much larger than the request."""
    grown_by: int = 0
    """The work on what other plugins have added to it."""


CreationLock = Callable[[str], asyncio.Lock | None]


class Chain:
    """The plugins for one operation on one resource. One that has both phases takes part in both."""

    __slots__ = (
        "_dynamic",
        "_mutating",
        "_mutating_parts",
        "_operation",
        "_quota",
        "_resource",
        "_validating",
        "activity",
    )

    def __init__(
        self,
        operation: str,
        resource: Resource,
        plugins: Sequence[AdmissionPlugin],
        dynamic: DynamicPlugin,
        quota: Quota | None,
    ) -> None:
        self._operation = operation
        self._resource = resource
        handlers = [plugin for plugin in plugins if plugin.handles(operation, resource)]
        mutating = [plugin for plugin in handlers if isinstance(plugin, MutatingPlugin)]
        self._mutating = tuple(mutating)
        self._mutating_parts = tuple(
            plugin for plugin in mutating if not isinstance(plugin, OfWholeObjects)
        )
        self._validating = tuple(
            plugin for plugin in handlers if isinstance(plugin, ValidatingPlugin)
        )
        self._dynamic = dynamic
        self.activity = dynamic.activity
        """Whether there are policies and webhooks at all, which writes `prepare` for."""
        is_charged = quota is not None and quota.handles(operation, resource)
        self._quota = quota if is_charged else None

    async def prepare(self, info: RequestInfo) -> None:
        """Before a write asks anything else: policies and webhooks are read in short stretches."""
        if not self.activity.is_idle:
            await self._dynamic.prepare(self._operation, self._resource, info)

    def mutates(self, info: RequestInfo) -> bool:
        """Whether there are mutating plugins for these writes."""
        if self._mutating_parts if info.subresource else self._mutating:
            return True
        dynamic = self._dynamic
        return not self.activity.is_idle and dynamic.mutates(self._operation, self._resource, info)

    def calls_webhooks(self, info: RequestInfo) -> bool:
        """Whether such writes may wait long for others, so that they must not hold what others wait for."""
        if self.activity.is_idle:
            return False
        return self._dynamic.calls_webhooks(self._operation, self._resource, info)

    async def mutate(self, attributes: AdmissionAttributes) -> Mutated:
        """The object after all mutating plugins; each sees the changes of those before it.

        If policies or webhooks change it, the built-in plugins see it again, and then those that ask for it.
        """
        attributes, grown_by = await self._admit(attributes)
        dynamic = self._dynamic
        if self.activity.is_idle or not dynamic.mutates(
            self._operation, self._resource, attributes.info
        ):
            return Mutated(attributes.new, grown_by=grown_by)
        first = await dynamic.mutate(attributes)
        if first.object is None:
            return Mutated(attributes.new, first.warnings, grown_by=grown_by)
        info = replace(attributes.info, size=max(attributes.info.size, first.size))
        changed, more = await self._admit(replace(attributes, new=first.object, info=info))
        grown_by += more
        if not first.needs_second_round:
            return Mutated(changed.new, first.warnings, first.size, grown_by)
        second = await dynamic.mutate_again(changed, first)
        new = changed.new if second.object is None else second.object
        warnings = (*first.warnings, *second.warnings)
        return Mutated(new, warnings, max(first.size, second.size), grown_by)

    async def _admit(self, attributes: AdmissionAttributes) -> tuple[AdmissionAttributes, int]:
        """The write after the built-in plugins, and the work on what they have added."""
        grown_by = 0
        if self._operation == "delete":
            return attributes, grown_by
        for plugin in self._mutating_parts if attributes.info.subresource else self._mutating:
            new = await plugin.admit(attributes)
            if new is attributes.new:
                continue
            if new.__class__ is Grown:
                grown_by += new.size
                info = replace(attributes.info, size=attributes.info.size + new.size)
                attributes = replace(attributes, new=new.object, info=info)
            else:
                attributes = replace(attributes, new=new)
        return attributes, grown_by

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        """The operations and warnings of all validating plugins; policies and webhooks come last."""
        result = ADMITTED
        for plugin in self._validating:
            admitted = await plugin.validate(attributes)
            if admitted is not ADMITTED:
                result = admitted if result is ADMITTED else result.and_then(admitted)
        if not self.activity.is_idle:
            result = result.and_then(Admitted((), await self._dynamic.validate(attributes)))
        return result

    def validates(self) -> bool:
        """Whether such writes have to be validated."""
        return bool(self._validating) or not self.activity.is_idle

    def charges(self) -> bool:
        """Whether such writes may have to be charged."""
        return self._quota is not None and not self._quota.is_idle

    async def charge(self, attributes: AdmissionAttributes) -> Admitted:
        """The operations that charge the write to quotas."""
        return ADMITTED if self._quota is None else await self._quota.validate(attributes)


class Admission:
    """The chains of one API server."""

    def __init__(
        self,
        plugins: Sequence[AdmissionPlugin] = (),
        creation_lock: CreationLock = lambda _: None,
        dynamic: DynamicPlugin = NoDynamicPlugin(),  # noqa: B008 - nothing changes it
        quota: Quota | None = None,
    ) -> None:
        """`creation_lock` is held during a create in a namespace, if there is one, from `charge` to the write.

        `quota` is last: what another plugin rejects is not counted.
        """
        self._plugins = tuple(plugins)
        self._dynamic = dynamic
        self._quota = quota
        self.creation_lock = creation_lock

    def chain(self, operation: str, resource: Resource) -> Chain:
        """The chain for such writes; it never changes."""
        return Chain(operation, resource, self._plugins, self._dynamic, self._quota)
