"""Evaluates ValidatingAdmissionPolicies: decisions, and what happens to them by the actions of a binding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from allot.apiserver.api_errors import ApiError
from allot.apiserver.dynamic_admission.expressions import (
    AdmissionExpression,
    CostBudget,
    OutOfBudgetError,
)
from allot.apiserver.dynamic_admission.policies import (
    BoundPolicy,
    PolicyBinding,
    ValidatingPolicy,
    Validation,
)
from allot.apiserver.dynamic_admission.policy_context import PolicyContext
from allot.apiserver.dynamic_admission.review_request import Document
from allot.cel.admission import MATCH_CONDITIONS_BUDGET, POLICY_BUDGET, AdmissionInput
from allot.deadline import Deadline

MAX_MESSAGE: Final = 5 * 1024
"""Longer messages of a messageExpression are not used."""
MAX_ANNOTATION: Final = 10 * 1024
FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
_CODES: Final = {
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
    "Unauthorized": 401,
}


class Denial(NamedTuple):
    """One rule that does not hold, or cannot be evaluated."""

    message: str
    expression_index: int = 0
    reason: str = "Invalid"


class _Result(NamedTuple):
    denials: list[Denial]
    annotations: list[tuple[str, str]]
    annotation_problems: list[str]


_NOTHING: Final = _Result([], [], [])


class ValidatingPolicies:
    """Evaluates the policies that may be about a request."""

    def __init__(self, context: PolicyContext) -> None:
        self._context = context
        self._refusal: ApiError | None = None

    async def validate(self, policies: Sequence[BoundPolicy]) -> None:
        """Raises `ApiError` if one of them denies the request: the first one."""
        for bound in policies:
            await self._validate(bound)
        if self._refusal is not None:
            raise self._refusal

    async def _validate(self, bound: BoundPolicy) -> None:
        context, policy = self._context, bound.policy
        annotations: dict[str, list[str]] = {}
        evaluations = context.evaluations_of(bound, self._configuration_failed)
        async for binding, version, params in evaluations:
            await self._evaluate(policy, binding, version, params, annotations)
        for key, values in annotations.items():
            context.notes.annotate(f"{policy.name}/{key}", ", ".join(values))

    async def _evaluate(
        self,
        policy: ValidatingPolicy,
        binding: PolicyBinding,
        version: str,
        params: Document | None,
        annotations: dict[str, list[str]],
    ) -> None:
        context = self._context
        values = context.values.in_version(version, params)
        try:
            result = await context.evaluations.run(
                lambda deadline: evaluate(policy, dict(values), deadline)
            )
        except OutOfBudgetError as error:
            result = _failed(policy, str(error))
        for denial in result.denials:
            self._act(policy, binding, denial)
        for key, value in result.annotations:
            known = annotations.setdefault(key, [])
            if value[:MAX_ANNOTATION] not in known:
                known.append(value[:MAX_ANNOTATION])
        for problem in result.annotation_problems:
            self._refuse(policy.name, binding.name, Denial(problem))

    def _act(self, policy: ValidatingPolicy, binding: PolicyBinding, denial: Denial) -> None:
        notes = self._context.notes
        for action in binding.actions:
            match action:
                case "Deny":
                    self._refuse(policy.name, binding.name, denial)
                case "Warn":
                    notes.warn(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' "
                        f"with binding '{binding.name}': {denial.message}"
                    )
                case "Audit":
                    failure = {
                        "message": denial.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": denial.expression_index,
                        "validationActions": list(binding.actions),
                    }
                    notes.annotate(FAILURE_ANNOTATION, msgspec.json.encode([failure]).decode())
                case _:
                    pass

    def _configuration_failed(
        self, bound: BoundPolicy, binding: PolicyBinding | None, problem: str
    ) -> None:
        if bound.policy.ignores_failures:
            return
        what = "policy" if binding is None else "binding"
        name = "" if binding is None else binding.name
        denial = Denial(f"failed to configure {what}: {problem}")
        self._refuse(bound.policy.name, name, denial)

    def _refuse(self, policy: str, binding: str, denial: Denial) -> None:
        if self._refusal is not None:
            return
        bound = f" with binding '{binding}'" if binding else ""
        message = f"ValidatingAdmissionPolicy '{policy}'{bound} denied request: {denial.message}"
        refused = self._context.request.denied(message)
        code = _CODES.get(denial.reason, 422)
        self._refusal = self._context.request.refused(
            code, denial.reason, refused.message, [message]
        )


def evaluate(
    policy: ValidatingPolicy, values: Document, deadline: Deadline, limit: int = POLICY_BUDGET
) -> _Result:
    """The decisions of a policy about a request. `limit` is the cost of all its expressions together."""
    if policy.conditions:
        budget = CostBudget(MATCH_CONDITIONS_BUDGET)
        held = policy.conditions.hold(AdmissionInput(values), budget, deadline)
        if held is False:
            return _NOTHING
        if isinstance(held, str):
            return _failed(policy, held)
    budget = CostBudget(limit)
    given = AdmissionInput(policy.variables.bound(values, budget, deadline))
    try:
        denials = _denials(policy, given, budget, deadline)
        annotations, problems = _annotations(policy, given, deadline)
    except OutOfBudgetError as error:
        return _failed(policy, str(error))
    return _Result(denials, annotations, [] if policy.ignores_failures else problems)


def _failed(policy: ValidatingPolicy, problem: str) -> _Result:
    return _Result([] if policy.ignores_failures else [Denial(problem)], [], [])


def _denials(
    policy: ValidatingPolicy, given: AdmissionInput, budget: CostBudget, deadline: Deadline
) -> list[Denial]:
    outcomes = [
        (index, each, each.expression.evaluate(given, budget, deadline))
        for index, each in enumerate(policy.validations)
    ]
    denials: list[Denial] = []
    for index, validation, outcome in outcomes:
        if outcome.error:
            if not policy.ignores_failures:
                denials.append(Denial(outcome.error, index))
        elif outcome.value is not True:
            message = _message(validation, given, budget, deadline)
            denials.append(Denial(message, index, validation.reason))
    return denials


def _message(
    validation: Validation, given: AdmissionInput, budget: CostBudget, deadline: Deadline
) -> str:
    """What the policy says about a rule that does not hold."""
    expression = validation.message_expression
    if expression is not None:
        try:
            outcome = expression.evaluate(given, budget, deadline)
        except OutOfBudgetError as error:
            return f"failed messageExpression: {error}"
        text = outcome.value.strip() if isinstance(outcome.value, str) else ""
        if text and len(text.encode()) <= MAX_MESSAGE and "\n" not in text:
            return text
    return validation.message or f"failed expression: {validation.expression.text.strip()}"


def _annotations(
    policy: ValidatingPolicy, given: AdmissionInput, deadline: Deadline
) -> tuple[list[tuple[str, str]], list[str]]:
    """Keys and values of audit annotations, and the problems of those without a value."""
    found: list[tuple[str, str]] = []
    problems: list[str] = []
    budget = CostBudget(POLICY_BUDGET)
    for key, expression in policy.annotations:
        outcome = _annotation(expression, given, budget, deadline)
        if outcome is None:
            continue
        value, problem = outcome
        if problem:
            problems.append(problem)
        elif value:
            found.append((key, value))
    return found, problems


def _annotation(
    expression: AdmissionExpression, given: AdmissionInput, budget: CostBudget, deadline: Deadline
) -> tuple[str, str] | None:
    outcome = expression.evaluate(given, budget, deadline)
    if outcome.error:
        return "", outcome.error
    return (outcome.value.strip(), "") if isinstance(outcome.value, str) else None
