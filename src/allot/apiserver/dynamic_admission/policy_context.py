"""What the policies about one request share: its values, its parameters, and what they leave for the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from allot.api.raw import RawObject
from allot.apiserver.dynamic_admission.expressions import Evaluations, RequestValues
from allot.apiserver.dynamic_admission.matching import Match
from allot.apiserver.dynamic_admission.params import (
    BindingConfigurationError,
    Params,
    PolicyConfigurationError,
)
from allot.apiserver.dynamic_admission.policies import BoundPolicy, PolicyBinding
from allot.apiserver.dynamic_admission.review_request import Document, Replaced, ReviewRequest
from allot.apiserver.dynamic_admission.served_request import REQUEST
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE
from allot.apiserver.registry.conversion import Converter, is_converted

T = TypeVar("T")

MAX_WARNINGS: Final = 1_000
"""More than clients are told of."""


class Notes:
    """Warnings for the client, and annotations for the audit log."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        request = REQUEST.get()
        if request is not None:
            request.annotate(key, value)


class _Matched(NamedTuple):
    """The bindings that match a request with the versions they see, and the resource of parameters."""

    bindings: list[tuple[PolicyBinding, str]]
    param_resource: tuple[Resource, str] | None = None


ConfigurationFailed = Callable[[BoundPolicy, PolicyBinding | None, str], None]


class PolicyContext:
    """One request, for its policies."""

    def __init__(
        self,
        request: ReviewRequest,
        namespace_labels: Mapping[str, str] | None,
        values: RequestValues,
        params: Params,
        evaluations: Evaluations,
        notes: Notes,
        converter: Converter,
        size: int = 0,
    ) -> None:
        """`size` is the work on the objects of the request, in bytes of JSON."""
        self.request = request
        self.size = size
        self._namespace_labels = namespace_labels
        self.values = values
        self.params = params
        self.evaluations = evaluations
        self.notes = notes
        self._converter = converter

    async def convert(self, version: str) -> None:
        """Have the objects in a version: those that a webhook converts, and large ones, which are not made on the event loop."""
        for subject in (self.request.new, self.request.old):
            if subject is None or subject.has_document(version):
                continue
            await subject.convert(version, self._converter)
            if self.size > LARGE:
                await self.in_thread(partial(subject.document, version))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What `work` on the objects returns: in a thread if they are large."""
        return await self.evaluations.workers.run(self.size, work)

    async def changed(self, replaced: Replaced, version: str) -> tuple[Any, PolicyContext]:
        """A changed object that may be in another version, and the same about it."""
        resource = self.request.resource
        new, size = replaced
        if is_converted(resource) and isinstance(new, RawObject):
            new = await self._converter.in_version(resource, new, self.request.info.version)
            size = max(size, LARGE + 1)  # a webhook may have made it much larger
        context = self._with_object(new, size)
        await context.convert(version)
        return new, context

    def _with_object(self, new: Any, size: int) -> PolicyContext:
        """The same about a changed object, which may be much larger."""
        request = self.request.with_object(new)
        return PolicyContext(
            request,
            self._namespace_labels,
            self.values.of(request),
            self.params,
            self.evaluations,
            self.notes,
            self._converter,
            max(self.size, size),
        )

    def version_for(self, match: Match) -> str | None:
        """The version that is seen of the object; None if the request does not match."""
        return match.version_for(self.request, self._namespace_labels)

    async def _matched(self, bound: BoundPolicy, failed: ConfigurationFailed) -> _Matched:
        """What of a policy is about the request; `failed` is told if it cannot be evaluated."""
        policy = bound.policy
        await self.evaluations.pause()
        version = self.version_for(policy.match)
        if version is None:
            return _Matched([])
        await self.convert(version)
        await self.evaluations.compiled(policy)
        resource = None
        if policy.param_kind is not None:
            try:
                resource = self.params.resource(policy.param_kind)
            except PolicyConfigurationError as error:
                failed(bound, None, str(error))
                return _Matched([])
        bindings = [
            (binding, version)
            for binding in bound.bindings
            if binding.match is None or self.version_for(binding.match) is not None
        ]
        return _Matched(bindings, resource)

    async def evaluations_of(
        self, bound: BoundPolicy, failed: ConfigurationFailed
    ) -> AsyncIterator[tuple[PolicyBinding, str, Document | None]]:
        """Each binding that is about the request, with the version that is seen, for each of its params."""
        matched = await self._matched(bound, failed)
        for binding, version in matched.bindings:
            try:
                found = await self.params.collect(
                    matched.param_resource, binding.param_ref, self.request.namespace
                )
            except BindingConfigurationError as error:
                failed(bound, binding, str(error))
                continue
            for params in found:
                yield binding, version, params
