"""Dynamic admission of one server: what the admission chain and the handlers of subresources ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allot.apiserver.admission.chain import AdmissionAttributes, DynamicMutation
from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authorization import Authorizer
from allot.apiserver.dynamic_admission.configuration import (
    Candidates,
    Configuration,
)
from allot.apiserver.dynamic_admission.expressions import (
    AuthorizerFunction,
    Evaluations,
    RequestValues,
)
from allot.apiserver.dynamic_admission.mutating_policies import MutatingPolicies
from allot.apiserver.dynamic_admission.params import Params
from allot.apiserver.dynamic_admission.policy_context import Notes, PolicyContext
from allot.apiserver.dynamic_admission.reinvocation import Reinvocation
from allot.apiserver.dynamic_admission.review_request import (
    OWN_KINDS,
    Document,
    ReviewRequest,
    document_request,
    review_request,
)
from allot.apiserver.dynamic_admission.validating_policies import ValidatingPolicies
from allot.apiserver.dynamic_admission.webhook_client import WebhookClient
from allot.apiserver.dynamic_admission.webhook_endpoints import WebhookEndpoints
from allot.apiserver.dynamic_admission.webhooks import Webhooks
from allot.apiserver.kinds.request import RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Workers
from allot.apiserver.registry.conversion import Converter
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.watch_cache.caches import Caches


class DynamicAdmission:
    """Policies and webhooks."""

    def __init__(
        self,
        caches: Caches,
        served: ServedResources,
        authorizer: Authorizer,
        converter: Converter,
    ) -> None:
        self._workers = workers = Workers()
        self._configuration = configuration = Configuration(caches, workers)
        self.activity = configuration.activity
        self._caches = caches
        self._authorizer = authorizer
        self._converter = converter
        self._params = Params(caches, served, workers)
        self._client = WebhookClient()
        self._endpoints = WebhookEndpoints(caches)

    async def start(self) -> None:
        await self._configuration.start()

    def close(self) -> None:
        self._workers.close()

    # --- writes to the registry ---

    async def prepare(self, operation: str, resource: Resource, info: RequestInfo) -> None:
        if info.subresource not in OWN_KINDS:
            await self._configuration.prepare(operation.upper(), resource, info.subresource)

    def mutates(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        return self._candidates(operation, resource, info).mutate

    def calls_webhooks(self, operation: str, resource: Resource, info: RequestInfo) -> bool:
        return self._candidates(operation, resource, info).call_webhooks

    async def mutate(self, attributes: AdmissionAttributes) -> DynamicMutation:
        """The first round; the answer says whether there has to be a second one."""
        candidates = await self._candidates_of(attributes)
        return await self._mutate(review_request(attributes), candidates, Reinvocation())

    async def mutate_again(
        self, attributes: AdmissionAttributes, before: DynamicMutation
    ) -> DynamicMutation:
        """The second round, after built-in plugins have seen the changes of the first one."""
        reinvocation: Reinvocation = before.reinvocation
        reinvocation.begin_second_round(object_changed=attributes.new is not before.object)
        return await self._mutate(
            review_request(attributes), await self._candidates_of(attributes), reinvocation
        )

    async def validate(self, attributes: AdmissionAttributes) -> tuple[str, ...]:
        candidates = await self._candidates_of(attributes)
        if not candidates.validate:
            return ()
        return await self._validate(review_request(attributes), candidates)

    async def _candidates_of(self, attributes: AdmissionAttributes) -> Candidates:
        await self.prepare(attributes.operation, attributes.resource, attributes.info)
        return self._candidates(attributes.operation, attributes.resource, attributes.info)

    def _candidates(self, operation: str, resource: Resource, info: RequestInfo) -> Candidates:
        if info.subresource in OWN_KINDS:
            return Candidates()
        return self._configuration.candidates(operation.upper(), resource, info.subresource)

    # --- subresources with a kind of their own ---

    async def admit_document(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        document: Document,
        info: RequestInfo,
    ) -> tuple[Document, tuple[str, ...]]:
        """A Binding, an Eviction or a TokenRequest to create, after admission, and warnings."""
        await self._configuration.prepare("CREATE", resource, info.subresource)
        candidates = self._configuration.candidates("CREATE", resource, info.subresource)
        warnings: tuple[str, ...] = ()
        request = document_request(resource, namespace, name, document, info)
        if candidates.mutate:
            reinvocation = Reinvocation()
            mutated = await self._mutate(request, candidates, reinvocation)
            if mutated.object is not None:
                request, document = request.with_object(mutated.object), mutated.object
            if reinvocation.is_needed:
                reinvocation.begin_second_round(object_changed=False)
                again = await self._mutate(request, candidates, reinvocation)
                if again.object is not None:
                    request, document = request.with_object(again.object), again.object
            warnings = mutated.warnings
        if candidates.validate:
            warnings = (*warnings, *await self._validate(request, candidates))
        return document, warnings

    # --- both ---

    async def _mutate(
        self, request: ReviewRequest, candidates: Candidates, reinvocation: Reinvocation
    ) -> DynamicMutation:
        notes = Notes()
        context = await self._context(request, notes)
        try:
            policies = MutatingPolicies(context, reinvocation)
            if candidates.mutating_policies:
                context = await policies.mutate(candidates.mutating_policies)
            webhooks = Webhooks(context, self._client, self._endpoints)
            if candidates.mutating_webhooks:
                context = await webhooks.mutate(candidates.mutating_webhooks, reinvocation)
        except ApiError as error:
            raise _with_warnings(error, notes) from None
        return DynamicMutation(
            policies.object if webhooks.object is None else webhooks.object,
            context.size,
            tuple(notes.warnings),
            reinvocation.is_needed,
            reinvocation,
        )

    async def _validate(self, request: ReviewRequest, candidates: Candidates) -> tuple[str, ...]:
        notes = Notes()
        context = await self._context(request, notes)
        try:
            if candidates.validating_policies:
                await ValidatingPolicies(context).validate(candidates.validating_policies)
            if candidates.validating_webhooks:
                webhooks = Webhooks(context, self._client, self._endpoints)
                await webhooks.validate(candidates.validating_webhooks)
        except ApiError as error:
            raise _with_warnings(error, notes) from None
        return tuple(notes.warnings)

    async def _context(self, request: ReviewRequest, notes: Notes) -> PolicyContext:
        namespace = await self._namespace(request)
        labels: Mapping[str, str] | None = None
        if request.is_about_namespace and request.operation != "DELETE":
            labels = request.labels()[0]
        elif namespace is not None:
            labels = (namespace.get("metadata") or {}).get("labels") or {}
        shown = None if request.is_about_namespace else namespace
        ask = AuthorizerFunction(request, self._authorizer)
        values = RequestValues(request, shown, ask)
        return PolicyContext(
            request,
            labels,
            values,
            self._params,
            Evaluations(self._workers),
            notes,
            self._converter,
            request.info.size,
        )

    async def _namespace(self, request: ReviewRequest) -> Document | None:
        """The namespace of the request, as expressions see it."""
        if not request.namespace:
            return None
        stored = await self._caches.namespace(request.namespace)
        if stored is None:
            return None
        data: Mapping[str, Any] = stored.object.data
        metadata = {
            name: value
            for name, value in data["metadata"].items()
            if name not in ("managedFields", "ownerReferences", "uid")
        }
        return {**data, "metadata": metadata | {"resourceVersion": str(stored.revision)}}


def _with_warnings(error: ApiError, notes: Notes) -> ApiError:
    error.warnings[:0] = notes.warnings
    return error
