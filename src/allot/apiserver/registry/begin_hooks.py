"""Begin hooks: what the registries of some kinds add to an object that passed validation.

Jobs get the selector and labels that carry their uid. Services get addresses, see `service_addresses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import AdmissionAttributes, Handler, HandlerIndex
from allot.apiserver.kinds.job import with_job_selector
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named
from allot.storage.interface import Operation
from allot.validation.jobs import validate_generated_selector


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
        return bool(self._hooks.find(operation, resource))

    async def begin(self, attributes: AdmissionAttributes) -> Begun:
        operations: tuple[Operation, ...] = ()
        for hook in self._hooks.find(attributes.operation, attributes.resource):
            begun = await hook.begin(attributes)
            attributes = replace(attributes, new=begun.object)
            operations += begun.operations
        return Begun(attributes.new, operations)


class JobSelector:
    """Gives a new job the selector and labels that carry its uid; 422 if the client wants others."""

    def __init__(self) -> None:
        self._jobs = resource_named("batch", "jobs")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._jobs and operation == "create"

    async def begin(self, attributes: AdmissionAttributes) -> Begun:
        job: RawObject = attributes.new
        selecting = type(job)(with_job_selector(dict(job.data)))
        errors = list(validate_generated_selector(selecting))
        if errors:
            raise api_errors.invalid("batch", "Job", attributes.key.name, errors)
        return Begun(selecting)
