"""Webhooks: mutating ones are called one after the other, validating ones at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw

from allot.api.decoding import DecodeError
from allot.api.json_limits import MAX_VALUES, has_too_many_values
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.dynamic_admission.expressions import (
    CostBudget,
    MatchConditions,
    OutOfBudgetError,
)
from allot.apiserver.dynamic_admission.json_patching import JsonPatchError, apply_json_patch
from allot.apiserver.dynamic_admission.matching import webhook_match
from allot.apiserver.dynamic_admission.policy_context import PolicyContext
from allot.apiserver.dynamic_admission.reinvocation import Reinvocation
from allot.apiserver.dynamic_admission.review_request import Document, Replaced, ReviewRequest
from allot.apiserver.dynamic_admission.served_request import without_seat
from allot.apiserver.dynamic_admission.webhook_client import WebhookCallError, WebhookClient
from allot.apiserver.dynamic_admission.webhook_endpoints import WebhookEndpoints
from allot.apiserver.dynamic_admission.webhook_responses import (
    GROUP,
    InvalidResponseError,
    Verdict,
    read_review,
    read_verdict,
    rejection,
)
from allot.apiserver.object_limits import check_object_size
from allot.apiserver.registry.uids import new_uid
from allot.cel.admission import MATCH_CONDITIONS_BUDGET, AdmissionInput
from allot.validation.webhook_configurations import REVIEW_VERSIONS

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_SECONDS: Final = 10
PATCH_COST: Final = 4
"""A byte of a patch, and of an object that is patched and decoded again, counts as so many."""


class Webhook:
    """One webhook of a configuration."""

    def __init__(self, configuration: str, document: Mapping[str, Any]) -> None:
        self.name: str = document.get("name", "")
        self.key = f"{configuration}/{self.name}"
        self.configuration = configuration
        self.match = webhook_match(document)
        self.ignores_failures = document.get("failurePolicy") == "Ignore"
        self.is_reinvoked = document.get("reinvocationPolicy") == "IfNeeded"
        self.has_side_effects = document.get("sideEffects") not in ("None", "NoneOnDryRun")
        self.client: Mapping[str, Any] = document.get("clientConfig") or {}
        self.seconds: int = document.get("timeoutSeconds") or DEFAULT_TIMEOUT_SECONDS
        versions = document.get("admissionReviewVersions") or ()
        self.version = next((each for each in versions if each in REVIEW_VERSIONS), "v1")
        self._conditions = document.get("matchConditions") or ()
        self.is_compiled = False

    @property
    def expressions_size(self) -> int:
        return sum(len(each.get("expression", "")) for each in self._conditions)

    def compile(self) -> None:
        _ = self.conditions

    @cached_property
    def conditions(self) -> MatchConditions:
        return MatchConditions(self._conditions, has_params=False)


class _FailedCallError(Exception):
    """A webhook that could not be asked: by its failure policy, the request fails or not."""


class Webhooks:
    """Calls the webhooks that may be about a request."""

    def __init__(
        self, context: PolicyContext, client: WebhookClient, endpoints: WebhookEndpoints
    ) -> None:
        self._context = context
        self._client = client
        self._endpoints = endpoints
        self._workers = context.evaluations.workers
        self.object: Any = None
        """The changed object; None if it did not change."""

    # --- validating ---

    async def validate(self, hooks: Sequence[Webhook]) -> None:
        """Raises `ApiError` if one of them denies the request, or cannot be called."""
        called = [
            (hook, version)
            for hook in hooks
            if (version := await self._version_for(hook)) is not None
        ]
        if not called:
            return
        async with without_seat():
            answers = await asyncio.gather(
                *(self._validated(hook, version) for hook, version in called)
            )
        for refusal in answers:
            if refusal is not None:
                raise refusal

    async def _validated(self, hook: Webhook, version: str) -> ApiError | None:
        try:
            verdict = await self._ask(hook, version, mutates=False)
        except _FailedCallError as error:
            self._failed_open(hook, "validating", error)
            return None
        except ApiError as error:
            return error
        return None if verdict.allowed else rejection(hook.name, verdict.status)

    # --- mutating ---

    async def mutate(self, hooks: Sequence[Webhook], reinvocation: Reinvocation) -> PolicyContext:
        """The context after all webhooks."""
        for index, hook in enumerate(hooks):
            version = await self._version_for(hook)
            if version is None or not reinvocation.should_invoke(hook.key):
                continue
            try:
                async with without_seat():
                    verdict = await self._ask(hook, version, mutates=True)
                changed = await self._patched(hook, version, verdict)
            except _FailedCallError as error:
                self._failed_open(hook, "mutating", error)
                changed = False
            self._annotate_mutation(hook, index, reinvocation, changed=changed)
            if changed:
                reinvocation.changed()
            if hook.is_reinvoked:
                reinvocation.invoked(hook.key)
        return self._context

    async def _patched(self, hook: Webhook, version: str, verdict: Verdict) -> bool:
        """Whether the answer changes the object."""
        if not verdict.allowed:
            raise rejection(hook.name, verdict.status)
        if not verdict.patch:
            return False
        try:
            operations = await self._workers.run(len(verdict.patch), lambda: _operations(verdict))
        except InvalidResponseError as error:
            self._fail(hook, f"received undecodable patch in webhook response: {error}")
        if not operations:
            return False
        subject = self._context.request.new
        if subject is None:
            raise api_errors.internal(
                f'admission webhook "{hook.name}" attempted to modify the object, '
                "which is not supported for this operation"
            )
        if verdict.patch_type != "JSONPatch":
            self._fail(hook, f'unsupported patch type "{verdict.patch_type}"')
        before = subject.document(version)

        def patched() -> Replaced:
            return subject.replaced(apply_json_patch(before, operations), version, strict=False)

        size = await self._context.in_thread(lambda: len(msgspec.json.encode(before)))
        size += len(verdict.patch)
        check_object_size(size)
        try:
            changed = await self._workers.run(size * PATCH_COST, patched)
        except (JsonPatchError, DecodeError) as error:
            raise api_errors.internal(str(error)) from None
        self.object, self._context = await self._context.changed(changed, version)
        after = self._context.request.new
        if after is None:
            return False
        changed_document = after.document(version)
        return await self._context.in_thread(lambda: changed_document != before)

    # --- both ---

    async def _version_for(self, hook: Webhook) -> str | None:
        """The version that the webhook sees; None if it is not to be called."""
        context = self._context
        version = context.version_for(hook.match)
        if version is not None:
            await context.convert(version)
            await context.evaluations.compiled(hook)
        if version is None or not hook.conditions:
            return version
        given = AdmissionInput(context.values.in_version(version))
        held: bool | str
        try:
            held = await context.evaluations.run(
                lambda deadline: hook.conditions.hold(
                    given, CostBudget(MATCH_CONDITIONS_BUDGET), deadline
                )
            )
        except OutOfBudgetError as error:
            held = str(error)
        if isinstance(held, str):
            if hook.ignores_failures:
                return None
            raise context.request.denied(held)
        return version if held else None

    async def _ask(self, hook: Webhook, version: str, *, mutates: bool) -> Verdict:
        """The verdict. `_FailedCallError` without one if failures are ignored, else `ApiError`."""
        request, notes = self._context.request, self._context.notes
        if request.info.dry_run and hook.has_side_effects:
            raise api_errors.bad_request(
                f'admission webhook "{hook.name}" does not support dry run'
            )
        uid = new_uid()
        await self._context.evaluations.pause()
        review = self._review(request, hook, version, uid)
        body = await self._context.in_thread(lambda: encode_review(review))
        try:
            endpoint = await self._endpoints.find(hook.client, hook.seconds)
            bundle = hook.client.get("caBundle") or ""
            response = await self._client.call(hook.key, endpoint, bundle, body, hook.seconds)
            verdict = await self._workers.run(
                len(response.body),
                lambda: read_verdict(read_review(response), uid, hook.version, mutates=mutates),
            )
        except WebhookCallError as error:
            self._fail(hook, f"failed to call webhook: {error}")
        except InvalidResponseError as error:
            self._fail(hook, f"received invalid webhook response: {error}")
        for key, value in verdict.annotations.items():
            notes.annotate(f"{hook.name}/{key}", str(value))
        for text in verdict.warnings:
            notes.warn(text)
        return verdict

    def _review(self, request: ReviewRequest, hook: Webhook, version: str, uid: str) -> Document:
        asked = request.request(version)
        objects = {
            "object": None if request.new is None else request.new.document(version),
            "oldObject": None if request.old is None else request.old.document(version),
        }
        return {
            "kind": "AdmissionReview",
            "apiVersion": f"{GROUP}/{hook.version}",
            "request": {"uid": uid, **asked, **objects},
        }

    def _fail(self, hook: Webhook, problem: str) -> Any:
        text = f'failed calling webhook "{hook.name}": {problem}'
        if hook.ignores_failures:
            raise _FailedCallError(text)
        raise api_errors.internal(text)

    def _failed_open(self, hook: Webhook, kind: str, error: _FailedCallError) -> None:
        log.warning("%s; the request goes on (failurePolicy: Ignore)", error)
        prefix = "mutation" if kind == "mutating" else "validating"
        key = f"failed-open.{prefix}.webhook.admission.k8s.io/round_0_index_0"
        self._context.notes.annotate(key, hook.name)

    def _annotate_mutation(
        self, hook: Webhook, index: int, reinvocation: Reinvocation, *, changed: bool
    ) -> None:
        place = f"round_{int(reinvocation.is_second_round)}_index_{index}"
        value = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
        self._context.notes.annotate(
            f"mutation.webhook.admission.k8s.io/{place}", msgspec.json.encode(value).decode()
        )


def encode_review(review: Document) -> bytes:
    """As JSON, each of the two objects in a call of its own: they may be large."""
    request = dict(review["request"])
    for name in ("object", "oldObject"):
        request[name] = Raw(msgspec.json.encode(request[name]))
    return msgspec.json.encode({**review, "request": request})


def _operations(verdict: Verdict) -> list[Document]:
    """The operations of a patch; `InvalidResponseError` if it is none."""
    try:
        if has_too_many_values(verdict.patch):
            raise InvalidResponseError(f"the patch has more than {MAX_VALUES} values")
        return msgspec.json.decode(verdict.patch, type=list[Document])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = verdict.patch.lstrip()[:1].decode("latin-1")
        problem = f"invalid character '{text}' looking for beginning of value"
        raise InvalidResponseError(problem) from None
