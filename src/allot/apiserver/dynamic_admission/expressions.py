"""The expressions of one policy or webhook: compiled once, evaluated with a budget and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from allot.apiserver.auth.authentication import (
    SERVICE_ACCOUNT_PREFIX,
    User,
    service_account_groups,
)
from allot.apiserver.auth.authorization import Attributes, Authorizer
from allot.apiserver.dynamic_admission.review_request import Document, ReviewRequest
from allot.apiserver.pacing import (
    HUGE,
    LARGE,
    SLOW,
    Pacer,
    Workers,
    cpu_deadline,
    on_event_loop,
)
from allot.cel import CelCompileError, types
from allot.cel.admission import (
    AdmissionInput,
    AdmissionProgram,
    Declared,
    VariableTypes,
    admission_environment,
    compile_admission,
)
from allot.cel.errors import EvalError
from allot.cel.library import authorization
from allot.cel.library.authorization import AccessQuestion, Decision, ResourceCheck
from allot.cel.types import Type
from allot.cel.values import LazyMap, Value
from allot.deadline import Deadline, DeadlineExceededError

INLINE_SECONDS: Final = 0.005
"""The time after which an evaluation goes on in a thread."""
EVALUATION_SECONDS: Final = 5.0
"""CPU time of the expressions of one policy, for one request."""
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
INTERRUPTED: Final = "operation interrupted"

T = TypeVar("T")


class OutOfBudgetError(Exception):
    """The expressions of a policy cost more than its budget, or take longer than the deadline."""


class CostBudget:
    """What the expressions of a policy may still cost."""

    def __init__(self, remaining: int) -> None:
        self._remaining = remaining

    def spend(self, cost: int) -> None:
        if cost > self._remaining:
            raise OutOfBudgetError(OUT_OF_BUDGET)
        self._remaining -= cost


class Outcome(NamedTuple):
    """The value of an expression, or its error."""

    value: Value = None
    error: str = ""


class AdmissionExpression:
    """One compiled expression. A stored one that does not compile fails whenever it is evaluated."""

    def __init__(
        self,
        text: str,
        declared: Declared,
        allowed: tuple[Type, ...] = (),
        variables: VariableTypes | None = None,
    ) -> None:
        self.text = text
        self.type = types.DYN
        self._program: AdmissionProgram | None = None
        self._problem = ""
        try:
            self._program = compile_admission(
                text, admission_environment(declared, variables), allowed
            )
            self.type = self._program.output_type
        except CelCompileError as error:
            self._problem = f"compilation error: {error.text}"

    def evaluate(self, given: AdmissionInput, budget: CostBudget, deadline: Deadline) -> Outcome:
        """`OutOfBudgetError` if it costs more than the budget has."""
        deadline()  # there may be hundreds of expressions, none of which is long enough to ask
        if self._program is None:
            return Outcome(error=self._problem)
        result = self._program.evaluate(given, deadline)
        budget.spend(result.cost)
        if result.error is not None:
            return Outcome(error=f"expression '{self.text}' resulted in error: {result.error}")
        return Outcome(result.value)

    def compute(self, given: AdmissionInput, budget: CostBudget, deadline: Deadline) -> Value:
        """The value of a variable; EvalError if it has none."""
        if self._program is None:
            raise EvalError(self._problem)
        result = self._program.evaluate(given, deadline)
        budget.spend(result.cost)
        if result.error is not None:
            raise EvalError(result.error)
        return result.value


class Variables:
    """The variables of a policy, which its expressions and later variables may read."""

    def __init__(self, variables: Sequence[Mapping[str, Any]], declared: Declared) -> None:
        self.types: dict[str, Type] | None = {} if variables else None
        self._expressions: dict[str, AdmissionExpression] = {}
        for variable in variables:
            name = variable.get("name", "")
            known = dict(self.types or {})
            expression = AdmissionExpression(variable.get("expression", ""), declared, (), known)
            self._expressions[name] = expression
            self.types = {**known, name: expression.type}

    def bound(
        self, values: dict[str, Value], budget: CostBudget, deadline: Deadline
    ) -> dict[str, Value]:
        """The values, with the variables among them, which are computed when they are read."""
        if not self._expressions:
            return values
        given = AdmissionInput(values)

        def compute(name: str, expression: AdmissionExpression) -> Value:
            try:
                return expression.compute(given, budget, deadline)
            except EvalError as error:
                problem = f'composited variable "{name}" fails to evaluate: {error.message}'
                raise EvalError(problem) from None

        values["variables"] = LazyMap(
            {
                name: partial(compute, name, expression)
                for name, expression in self._expressions.items()
            }
        )
        return values


class MatchConditions:
    """Conditions that all must hold for a policy or webhook to apply."""

    def __init__(self, conditions: Sequence[Mapping[str, Any]], *, has_params: bool) -> None:
        declared = Declared(params=has_params)
        self._expressions = [
            AdmissionExpression(condition.get("expression", ""), declared, (types.BOOL,))
            for condition in conditions
        ]

    def __bool__(self) -> bool:
        return bool(self._expressions)

    def hold(self, given: AdmissionInput, budget: CostBudget, deadline: Deadline) -> bool | str:
        """Whether they hold; the error of one that fails if no other one is false."""
        problems: list[str] = []
        try:
            for expression in self._expressions:
                outcome = expression.evaluate(given, budget, deadline)
                if outcome.error:
                    problems.append(outcome.error)
                elif outcome.value is not True:
                    return False
        except OutOfBudgetError as error:
            return str(error)
        if not problems:
            return True
        return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


class RequestValues:
    """The values that expressions see of one request."""

    def __init__(
        self, request: ReviewRequest, namespace: Document | None, ask: authorization.Ask
    ) -> None:
        self._request = request
        self._namespace = namespace
        self._ask = ask
        self._by_version: dict[str, dict[str, Value]] = {}

    def of(self, request: ReviewRequest) -> RequestValues:
        """Those of the same request about a changed object."""
        return RequestValues(request, self._namespace, self._ask)

    def in_version(self, version: str, params: Document | None = None) -> dict[str, Value]:
        """The variables, with the objects in this version."""
        values = self._by_version.get(version)
        if values is None:
            request = self._request
            authorizer = authorization.Authorizer(self._ask)
            question = AccessQuestion(
                "",
                "",
                request.resource.group,
                request.resource.plural,
                request.info.subresource,
                request.namespace,
                request.name,
            )
            values = self._by_version[version] = {
                "object": None if request.new is None else request.new.document(version),
                "oldObject": None if request.old is None else request.old.document(version),
                "request": request.request(version),
                "namespaceObject": self._namespace,
                "authorizer": authorizer,
                "authorizer.requestResource": ResourceCheck(authorizer, question),
            }
        return {**values, "params": params}


class AuthorizerFunction:
    """Asks the server's authorizer, once for each question, and always on the event loop's thread."""

    def __init__(self, request: ReviewRequest, authorizer: Authorizer) -> None:
        caller = request.info.caller
        self._user = User(caller.name, caller.uid, caller.groups, caller.extra)
        self._authorizer = authorizer
        self._known: dict[AccessQuestion, Decision] = {}
        self._loop = asyncio.get_running_loop()

    def __call__(self, question: AccessQuestion) -> Decision:
        known = self._known.get(question)
        if known is None:
            decide = partial(self._decide, question)
            known = self._known[question] = on_event_loop(self._loop, decide)
        return known

    def _decide(self, question: AccessQuestion) -> Decision:
        user = self._user
        if question.service_account is not None:
            namespace, name = question.service_account
            full_name = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"
            user = User(full_name, groups=service_account_groups(namespace))
        resource = question.resource
        if question.subresource:
            resource = f"{resource}/{question.subresource}"
        attributes = Attributes(
            question.verb,
            question.path,
            question.group,
            resource,
            question.namespace,
            question.name,
            _field_values(question.field_selector),
        )
        allowed, reason = self._authorizer.authorize(user, attributes)
        return Decision(allowed, reason)


def _field_values(selector: str) -> tuple[tuple[str, str], ...]:
    """The equalities of a field selector, which the Node authorizer reads."""
    pairs = (term.replace("==", "=").partition("=") for term in selector.split(",") if term)
    return tuple((name.strip(), value.strip()) for name, equals, value in pairs if equals)


class Compilable(Protocol):
    """A policy or webhook: its expressions are compiled before it is evaluated for the first time."""

    is_compiled: bool

    @property
    def expressions_size(self) -> int:
        """The characters of all expressions."""

    def compile(self) -> None: ...


class Evaluations:
    """Runs the evaluations of one request: short ones at once, long ones in a thread, none longer than the time limit.

    Between short ones it yields to the event loop: there may be hundreds of policies about a request.
    """

    def __init__(self, workers: Workers, pacer: Pacer | None = None) -> None:
        self.workers = workers
        self._pacer = pacer or Pacer()

    async def pause(self) -> None:
        """Yield to the event loop if that is due."""
        if self._pacer.is_due:
            await self._pacer.pause()

    async def compiled(self, source: Compilable) -> None:
        """Returns when the expressions are compiled, in a thread: a single one may take a hundred milliseconds."""
        if not source.is_compiled:
            size = max(source.expressions_size * SLOW, LARGE + 1)
            await self.workers.run(size, source.compile)
            source.is_compiled = True

    async def run(self, evaluate: Callable[[Deadline], T]) -> T:
        """What `evaluate` returns, which may be called twice. `OutOfBudgetError` after the time limit."""
        await self.pause()
        try:
            return evaluate(cpu_deadline(INLINE_SECONDS))
        except DeadlineExceededError:
            pass
        try:
            # The time of the thread that evaluates counts.
            return await self.workers.run(HUGE, lambda: evaluate(cpu_deadline(EVALUATION_SECONDS)))
        except DeadlineExceededError:
            raise OutOfBudgetError(INTERRUPTED) from None
