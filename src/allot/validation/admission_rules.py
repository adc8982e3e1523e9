"""What admission policies and webhooks have in common: rules that match requests, and match conditions."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from allot.cel import CelCompileError, types
from allot.cel.admission import Declared, admission_environment, compile_admission
from allot.cel.environment import Environment
from allot.cel.types import Type
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from allot.validation.formats import label_key_problems
from allot.validation.label_selector import validate_label_selector
from allot.validation.parts import Part, parts, text, texts

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES: Final = ("*", "Cluster", "Namespaced")
MAX_MATCH_CONDITIONS: Final = 64
BOOL: Final = (types.BOOL,)


# --- rules ---


def validate_match_resources(match: Part, path: FieldPath) -> Iterator[FieldError]:
    """`matchConstraints` of a policy, `matchResources` of a binding; selectors have defaults."""
    policy = text(match, "matchPolicy")
    if policy not in MATCH_POLICIES:
        yield not_supported(path / "matchPolicy", policy, MATCH_POLICIES)
    for name in ("namespaceSelector", "objectSelector"):
        yield from validate_label_selector(match.get(name) or {}, path / name)
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(parts(match, name)):
            yield from _validate_named_rule(rule, path / name @ index)


def _validate_named_rule(rule: Part, path: FieldPath) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, name in enumerate(texts(rule, "resourceNames")):
        for problem in path_segment_problems(name):
            yield invalid(path / "resourceNames" @ index, name, problem)
        if name in seen:
            yield duplicate(path / "resourceNames" @ index, name)
        seen.add(name)
    yield from validate_rule(rule, path)


def validate_rule(rule: Part, path: FieldPath) -> Iterator[FieldError]:
    operations = texts(rule, "operations")
    if not operations:
        yield required(path / "operations")
    if len(operations) > 1 and "*" in operations:
        yield _not_alone(path / "operations", operations, "operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield not_supported(path / "operations" @ index, operation, OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = texts(rule, name)
        if not values:
            yield required(path / name)
        if len(values) > 1 and "*" in values:
            yield _not_alone(path / name, values, what)
    for index, version in enumerate(texts(rule, "apiVersions")):
        if not version:
            yield required(path / "apiVersions" @ index)
    yield from _validate_resources(texts(rule, "resources"), path / "resources")
    scope = rule.get("scope")
    if scope is not None and scope not in SCOPES:
        yield not_supported(path / "scope", scope, SCOPES)


def _not_alone(path: FieldPath, values: tuple[str, ...], what: str) -> FieldError:
    return invalid(path, values, f"if '*' is present, must not specify other {what}")


def _validate_resources(resources: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    whole: set[str] = set()
    parts_of_all: set[str] = set()
    has_plain = False
    for index, resource in enumerate(resources):
        if not resource:
            yield required(path @ index)
            continue
        name, slash, part = resource.partition("/")
        if not slash:
            has_plain = resource != "*"
            continue
        for listed, wildcard in ((name in whole, f"{name}/*"), (part in parts_of_all, f"*/{part}")):
            if listed:
                problem = f"if '{wildcard}' is present, must not specify {resource}"
                yield invalid(path @ index, resource, problem)
        if part == "*":
            whole.add(name)
        if name == "*":
            parts_of_all.add(part)
    if len(resources) > 1 and "*/*" in resources:
        problem = "if '*/*' is present, must not specify other resources"
        yield invalid(path, resources, problem)
    if "*" in resources and has_plain:
        problem = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, problem)


# --- expressions ---


def validate_expression(
    expression: str, path: FieldPath, environment: Environment, allowed: tuple[Type, ...]
) -> Iterator[FieldError]:
    """That it compiles, to one of the allowed types."""
    try:
        compile_admission(expression, environment, allowed)
    except CelCompileError as error:
        yield compile_error(error, expression, path)


def compile_error(error: CelCompileError, expression: str, path: FieldPath) -> FieldError:
    return internal(path, error.text) if error.internal else invalid(path, expression, error.text)


def validate_match_conditions(
    conditions: list[Part], path: FieldPath, *, has_params: bool
) -> Iterator[FieldError]:
    if len(conditions) > MAX_MATCH_CONDITIONS:
        yield too_many(path, len(conditions), MAX_MATCH_CONDITIONS)
    environment = admission_environment(Declared(params=has_params))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        place = path @ index
        expression, name = text(condition, "expression").strip(), text(condition, "name")
        if not expression:
            yield required(place / "expression")
        else:
            yield from validate_expression(expression, place / "expression", environment, BOOL)
        if not name:
            yield required(place / "name")
            continue
        for problem in label_key_problems(name):
            yield invalid(place / "name", name, problem)
        if name in seen:
            yield duplicate(place / "name", name)
        seen.add(name)


def validate_choice(
    owner: Part, name: str, path: FieldPath, allowed: Container[str], listed: tuple[str, ...]
) -> Iterator[FieldError]:
    """A field that is one of a few words, if it is set."""
    value = owner.get(name)
    if value is not None and value not in allowed:
        yield not_supported(path / name, value, listed)
