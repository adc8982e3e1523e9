"""Evaluates MutatingAdmissionPolicies: each sees the changes of those before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from allot.api.decoding import DecodeError
from allot.apiserver import api_errors
from allot.apiserver.dynamic_admission.expressions import (
    AdmissionExpression,
    CostBudget,
    OutOfBudgetError,
)
from allot.apiserver.dynamic_admission.json_patching import (
    JsonPatchError,
    PatchTestError,
    apply_json_patch,
)
from allot.apiserver.dynamic_admission.patch_values import (
    MutationError,
    merged_configuration,
    operations_of,
)
from allot.apiserver.dynamic_admission.policies import BoundPolicy, MutatingPolicy, PolicyBinding
from allot.apiserver.dynamic_admission.policy_context import PolicyContext
from allot.apiserver.dynamic_admission.reinvocation import Reinvocation
from allot.apiserver.dynamic_admission.review_request import (
    Document,
    Replaced,
    ReviewedObject,
    StrictError,
)
from allot.apiserver.object_limits import check_object_size
from allot.cel.admission import MATCH_CONDITIONS_BUDGET, POLICY_BUDGET, AdmissionInput
from allot.cel.values import Value
from allot.deadline import Deadline

PATCH_COST: Final = 4
"""A byte of an object that is merged, encoded and decoded again counts as so many."""


class MutatingPolicies:
    """Applies the policies that may be about a request."""

    def __init__(self, context: PolicyContext, reinvocation: Reinvocation) -> None:
        self._context = context
        self._reinvocation = reinvocation
        self._problems: list[tuple[str, str]] = []
        self.object: Any = None
        """The changed object; None if it did not change."""

    async def mutate(self, policies: Sequence[BoundPolicy]) -> PolicyContext:
        """The context after all policies; raises `ApiError` if one of them cannot be applied."""
        for bound in policies:
            await self._apply(bound)
        if self._problems:
            _, reason = self._problems[0]
            messages = [message for message, _ in self._problems]
            raise self._context.request.refused(403, reason, messages[0], messages)
        return self._context

    async def _apply(self, bound: BoundPolicy) -> None:
        evaluations = self._context.evaluations_of(bound, self._configuration_failed)
        async for binding, version, params in evaluations:
            await self._invoke(bound.policy, binding, version, params)

    async def _invoke(
        self, policy: MutatingPolicy, binding: PolicyBinding, version: str, params: Document | None
    ) -> None:
        subject = self._context.request.new
        if subject is None:
            return
        metadata = (params or {}).get("metadata") or {}
        key = (policy.name, binding.name, metadata.get("namespace"), metadata.get("name"))
        held = await self._conditions_hold(policy, version, params)
        if isinstance(held, str):
            self._failed(policy, binding, held, "Invalid")
            return
        if not held or not self._reinvocation.should_invoke(key):
            return
        before = subject.document(version)
        for patch_type, expression in policy.mutations:
            try:
                await self._mutate(policy, patch_type, expression, version, params)
            except (MutationError, OutOfBudgetError) as error:
                self._failed(policy, binding, str(error), "Invalid")
            except (DecodeError, StrictError) as error:
                raise api_errors.internal(str(error)) from None
        after = self._context.request.new
        if after is not None and after is not subject:
            document = after.document(version)
            if await self._context.in_thread(lambda: document != before):
                self._reinvocation.changed()
        if policy.is_reinvoked:
            self._reinvocation.invoked(key)

    async def _conditions_hold(
        self, policy: MutatingPolicy, version: str, params: Document | None
    ) -> bool | str:
        if not policy.conditions:
            return True
        given = AdmissionInput(self._context.values.in_version(version, params))
        try:
            return await self._context.evaluations.run(
                lambda deadline: policy.conditions.hold(
                    given, CostBudget(MATCH_CONDITIONS_BUDGET), deadline
                )
            )
        except OutOfBudgetError as error:
            return str(error)

    async def _mutate(
        self,
        policy: MutatingPolicy,
        patch_type: str,
        expression: AdmissionExpression,
        version: str,
        params: Document | None,
    ) -> None:
        context = self._context
        values = context.values.in_version(version, params)

        def evaluate(deadline: Deadline) -> Value:
            budget = CostBudget(POLICY_BUDGET)
            given = AdmissionInput(policy.variables.bound(dict(values), budget, deadline))
            outcome = expression.evaluate(given, budget, deadline)
            if outcome.error:
                raise MutationError(outcome.error)
            return outcome.value

        value = await context.evaluations.run(evaluate)
        subject = context.request.new
        assert subject is not None
        document = subject.document(version)
        size = await context.in_thread(lambda: len(msgspec.json.encode(document)))
        check_object_size(size)
        changed = await context.evaluations.workers.run(
            size * PATCH_COST, partial(_patched, subject, document, version, patch_type, value)
        )
        if changed is not None:
            self.object, self._context = await context.changed(changed, version)

    def _configuration_failed(
        self, bound: BoundPolicy, binding: PolicyBinding | None, problem: str
    ) -> None:
        what = "policy" if binding is None else "binding"
        problem = f"failed to configure {what}: {problem}"
        self._failed(bound.policy, binding, problem, "Forbidden")

    def _failed(
        self, policy: MutatingPolicy, binding: PolicyBinding | None, problem: str, reason: str
    ) -> None:
        if policy.ignores_failures:
            return
        if binding is None:
            message = f"policy '{policy.name}' denied request: {problem}"
        else:
            message = (
                f"policy '{policy.name}' with binding '{binding.name}' denied request: {problem}"
            )
        self._problems.append((message, reason))


def _patched(
    subject: ReviewedObject, document: Document, version: str, patch_type: str, value: Value
) -> Replaced | None:
    """The object with what a mutation has evaluated to; None if a test says that there is nothing to change."""
    if patch_type == "ApplyConfiguration":
        type_ = subject.value_type(version)
        patched = merged_configuration(document, subject.kind(version), type_, value)
    else:
        try:
            patched = apply_json_patch(document, operations_of(value))
        except PatchTestError:
            return None
        except JsonPatchError as error:
            raise MutationError(f"JSON Patch: {error}") from None
    return subject.replaced(patched, version, strict=patch_type == "JSONPatch")
