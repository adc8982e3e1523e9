"""Expressions of admission policies and match conditions: their variables, and programs compiled once per policy.

object, oldObject, request, namespaceObject    always
params                                         where the policy has a kind of parameters
authorizer, authorizer.requestResource         where users may be asked about
variables                                      where the policy declares some
Object{}, JSONPatch{}                          in mutations
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from allot.cel import types
from allot.cel.checker import check
from allot.cel.environment import Environment, MessageType
from allot.cel.errors import CelCompileError
from allot.cel.evaluator import COST_LIMIT, EvaluationResult, Evaluator
from allot.cel.kubernetes import typed_environment
from allot.cel.library import patches
from allot.cel.parser import parse
from allot.cel.planner import plan
from allot.cel.recursion import recursion_room
from allot.cel.source import Source
from allot.cel.syntax import Expression, depth
from allot.cel.types import Type, TypeKind
from allot.cel.validators import check_literals
from allot.cel.values import Value
from allot.deadline import Deadline, no_deadline

POLICY_BUDGET: Final = 10_000_000
"""The limit of the cost of all expressions of a policy, for one request."""
MATCH_CONDITIONS_BUDGET: Final = 2_500_000
"""The limit of the cost of all match conditions of a policy or webhook, for one request."""


def _struct(name: str) -> Type:
    return Type(TypeKind.STRUCT, name)


_STRINGS: Final = types.list_of(types.STRING)
_LABELS: Final = types.map_of(types.STRING, types.STRING)
_KIND: Final = _struct("kubernetes.GroupVersionKind")
_RESOURCE: Final = _struct("kubernetes.GroupVersionResource")
_USER: Final = _struct("kubernetes.UserInfo")
_REQUEST: Final = _struct("kubernetes.AdmissionRequest")
_NAMESPACE: Final = _struct("kubernetes.Namespace")
_METADATA: Final = _struct("kubernetes.NamespaceMetadata")
_SPEC: Final = _struct("kubernetes.NamespaceSpec")
_STATUS: Final = _struct("kubernetes.NamespaceStatus")
_CONDITION: Final = _struct("kubernetes.NamespaceCondition")
_VARIABLES: Final = _struct("kubernetes.variables")


def _strings(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, types.STRING)


_FIELDS: Final[dict[Type, dict[str, Type]]] = {
    _KIND: _strings("group", "version", "kind"),
    _RESOURCE: _strings("group", "version", "resource"),
    _USER: {
        **_strings("username", "uid"),
        "groups": _STRINGS,
        "extra": types.map_of(types.STRING, _STRINGS),
    },
    _REQUEST: {
        **_strings("subResource", "requestSubResource", "name", "namespace", "operation"),
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
    _CONDITION: {
        **_strings("status", "type", "message", "reason"),
        "lastTransitionTime": types.TIMESTAMP,
    },
    _STATUS: {"conditions": types.list_of(_CONDITION), "phase": types.STRING},
    _SPEC: {"finalizers": _STRINGS},
    _METADATA: {
        **_strings("name", "generateName", "namespace", "UID", "resourceVersion"),
        "labels": _LABELS,
        "annotations": _LABELS,
        "creationTimestamp": types.TIMESTAMP,
        "deletionTimestamp": types.TIMESTAMP,
        "deletionGracePeriodSeconds": types.INT,
        "generation": types.INT,
        "finalizers": _STRINGS,
    },
    _NAMESPACE: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
}
_MESSAGES: Final = {type_.name: MessageType(type_, fields) for type_, fields in _FIELDS.items()}


class Declared(NamedTuple):
    """What an expression may use, beyond what all may."""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


VariableTypes = Mapping[str, Type]
"""The variables of a policy, by name."""


def admission_environment(
    declared: Declared, variables: VariableTypes | None = None
) -> Environment:
    """The environment of an expression. Without `variables` the policy has none."""
    if variables is None:
        return _environment(declared)
    known = {**_MESSAGES, _VARIABLES.name: MessageType(_VARIABLES, variables)}
    return _made(declared, {"variables": _VARIABLES}, known)


@cache
def _environment(declared: Declared) -> Environment:
    return _made(declared, {}, _MESSAGES)


def _made(
    declared: Declared, more: Mapping[str, Type], known: Mapping[str, MessageType]
) -> Environment:
    variables = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "request": _REQUEST,
        "namespaceObject": _NAMESPACE,
        **more,
    }
    if declared.params:
        variables["params"] = types.DYN
    if declared.authorizer:
        variables["authorizer"] = types.AUTHORIZER
        variables["authorizer.requestResource"] = types.RESOURCE_CHECK
    made = typed_environment(variables, known, patches.FUNCTIONS if declared.patches else ())
    if not declared.patches:
        return made
    return replace(made, messages=patches.PatchMessages(made.messages))


class AdmissionInput(NamedTuple):
    """The values of the variables."""

    variables: Mapping[str, Value]


class AdmissionProgram:
    """A compiled expression. Safe to share between threads."""

    def __init__(self, expression: str, output_type: Type, evaluator: Evaluator) -> None:
        self.expression = expression
        self.output_type = output_type
        self._evaluator = evaluator

    def evaluate(self, given: AdmissionInput, deadline: Deadline = no_deadline) -> EvaluationResult:
        """The value or the error, and the cost. `DeadlineExceededError` if the deadline passes first."""
        return self._evaluator.evaluate(given, COST_LIMIT, deadline)


def compile_admission(
    expression: str, environment: Environment, allowed: Iterable[Type] = ()
) -> AdmissionProgram:
    """The program, or CelCompileError. `allowed` are the types it may have; any type if there are none."""
    source = Source(expression)
    syntax = parse(source, environment.macros)
    with recursion_room(depth(syntax)):
        return _program(syntax, source, environment, tuple(allowed))


def _program(
    syntax: Expression, source: Source, environment: Environment, allowed: tuple[Type, ...]
) -> AdmissionProgram:
    checked = check(syntax, source, environment)
    check_literals(checked, source)
    output_type = checked.types[syntax]
    if allowed and output_type not in allowed:
        raise CelCompileError(_unexpected(output_type, allowed))
    # Costs are always counted: they are charged to the budget of the policy.
    evaluator = Evaluator(plan(checked, environment), may_be_expensive=True)
    return AdmissionProgram(source.text, output_type, evaluator)


def _unexpected(found: Type, allowed: tuple[Type, ...]) -> str:
    if len(allowed) == 1:
        return f"must evaluate to {allowed[0]} but got {found}"
    return f"must evaluate to one of [{' '.join(map(str, allowed))}] but got {found}"
