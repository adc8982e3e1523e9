"""ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from allot.api.raw import RawObject
from allot.cel import CelCompileError, types
from allot.cel.admission import Declared, admission_environment, compile_admission
from allot.cel.environment import Environment
from allot.cel.library.patches import JSON_PATCH, OBJECT_TYPE
from allot.cel.types import Type
from allot.validation.admission_rules import (
    BOOL,
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    compile_error,
    validate_expression,
    validate_match_conditions,
    validate_match_resources,
)
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import (
    dns_1035_label_problems,
    label_key_problems,
    subdomain_problems,
)
from allot.validation.label_selector import validate_label_selector
from allot.validation.parts import Part, part, parts, text, texts

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS: Final = ("Audit", "Deny", "Warn")
PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
MUTATED_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
MAX_AUDIT_ANNOTATIONS: Final = 20
MAX_VALUE_EXPRESSION: Final = 5 * 1024

MESSAGE_TYPES: Final = (types.STRING,)
ANNOTATION_TYPES: Final = (types.STRING, types.NULL)
MUTATION_TYPES: Final[dict[str, tuple[Type, ...]]] = {
    "JSONPatch": (types.list_of(JSON_PATCH),),
    "ApplyConfiguration": (OBJECT_TYPE,),
}
MUTATION_FIELDS: Final = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}

_SPEC: Final = FieldPath("spec")
_AT_LEAST_ONE: Final = "validations or auditAnnotations must contain at least one item"
_BOTH_DENY_AND_WARN: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the "
    "API response and headers serves no purpose)"
)
_is_identifier: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)


# --- validating policies ---


def validate_validating_policy(
    policy: RawObject, old: RawObject | None = None
) -> Iterator[FieldError]:
    """`old` is the stored policy of an update: what it already says is not checked again."""
    spec = policy.get("spec", default={})
    has_params = spec.get("paramKind") is not None
    yield from _validate_common(spec, old, has_params)
    compiler = _Compiler(spec, has_params, patches=False)
    yield from compiler.validate_variables()
    validations, annotations = parts(spec, "validations"), parts(spec, "auditAnnotations")
    if not validations and not annotations:
        yield required(_SPEC / "validations", _AT_LEAST_ONE)
        yield required(_SPEC / "auditAnnotations", _AT_LEAST_ONE)
        return
    for index, validation in enumerate(validations):
        yield from _validate_validation(validation, compiler, _SPEC / "validations" @ index)
    yield from _validate_annotations(annotations, policy.metadata.name, compiler)


def _validate_common(spec: Part, old: RawObject | None, has_params: bool) -> Iterator[FieldError]:
    failure = text(spec, "failurePolicy")
    if failure not in FAILURE_POLICIES:
        yield not_supported(_SPEC / "failurePolicy", failure, FAILURE_POLICIES)
    if has_params:
        yield from _validate_param_kind(part(spec, "paramKind"), _SPEC / "paramKind")
    constraints, path = spec.get("matchConstraints"), _SPEC / "matchConstraints"
    if constraints is None:
        yield required(path)
    else:
        yield from validate_match_resources(constraints, path)
        if not parts(constraints, "resourceRules"):
            yield required(path / "resourceRules")
        elif "mutations" in spec:
            yield from _validate_mutated_operations(constraints, path)
    if not _has_same_conditions(spec, old):
        conditions = parts(spec, "matchConditions")
        yield from validate_match_conditions(
            conditions, _SPEC / "matchConditions", has_params=has_params
        )


def _has_same_conditions(spec: Part, old: RawObject | None) -> bool:
    if old is None:
        return False
    stored = old.get("spec", default={})
    return all(spec.get(name) == stored.get(name) for name in ("paramKind", "matchConditions"))


class _Compiler:
    """Compiles the expressions of one policy, in order: variables may use those before them."""

    def __init__(self, spec: Part, has_params: bool, *, patches: bool) -> None:
        self._variables = parts(spec, "variables")
        self._params = has_params
        self._patches = patches
        self._types: dict[str, Type] | None = {} if self._variables else None

    def environment(self, *, authorizer: bool = True, params: bool | None = None) -> Environment:
        has_params = self._params if params is None else params
        declared = Declared(has_params, authorizer, self._patches)
        return admission_environment(declared, self._types)

    def validate_variables(self) -> Iterator[FieldError]:
        for index, variable in enumerate(self._variables):
            path = _SPEC / "variables" @ index
            name, expression = text(variable, "name"), text(variable, "expression")
            if not name.strip():
                yield required(path / "name", "name is not specified")
            elif not _is_identifier(name) or name in _RESERVED:
                yield invalid(path / "name", name, "must be a valid CEL identifier")
            if not expression.strip():
                yield required(path / "expression", "expression is not specified")
                continue
            assert self._types is not None
            known = types.DYN
            try:
                known = compile_admission(expression, self.environment()).output_type
            except CelCompileError as error:
                yield compile_error(error, expression, path / "expression")
            self._types = {**self._types, name: known}


def _validate_validation(
    validation: Part, compiler: _Compiler, path: FieldPath
) -> Iterator[FieldError]:
    expression, message = text(validation, "expression"), text(validation, "message")
    if not expression.strip():
        yield required(path / "expression", "expression is not specified")
    else:
        environment = compiler.environment()
        yield from validate_expression(expression, path / "expression", environment, BOOL)
    wording = text(validation, "messageExpression")
    if wording and not wording.strip():
        yield invalid(path / "messageExpression", wording, "must be non-empty if specified")
    elif wording:
        yield from validate_expression(
            wording,
            path / "messageExpression",
            compiler.environment(authorizer=False),
            MESSAGE_TYPES,
        )
    if message and not message.strip():
        yield invalid(path / "message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield invalid(path / "message", message, "must not contain line breaks")
    reason = validation.get("reason")
    if reason is not None and reason not in REASONS:
        yield not_supported(path / "reason", reason, REASONS)


def _validate_annotations(
    annotations: list[Part], policy: str, compiler: _Compiler
) -> Iterator[FieldError]:
    path = _SPEC / "auditAnnotations"
    if len(annotations) > MAX_AUDIT_ANNOTATIONS:
        shown = [
            {"Key": text(each, "key"), "ValueExpression": text(each, "valueExpression")}
            for each in annotations
        ]
        problem = f"must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        yield invalid(path, shown, problem)
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        key, place = text(annotation, "key"), path @ index
        if policy:
            for problem in label_key_problems(f"{policy}/{key}"):
                yield invalid(place / "key", f"{policy}/{key}", problem)
        else:
            yield invalid(place / "key", key, "requires metadata.name be non-empty")
        yield from _validate_annotation_value(annotation, compiler, place / "valueExpression")
        if key in seen:
            yield duplicate(place / "key", key)
        seen.add(key)


def _validate_annotation_value(
    annotation: Part, compiler: _Compiler, path: FieldPath
) -> Iterator[FieldError]:
    expression = text(annotation, "valueExpression")
    if not expression.strip():
        yield required(path, "valueExpression is not specified")
    elif len(expression.strip().encode()) > MAX_VALUE_EXPRESSION:
        yield required(path, f"must not exceed {MAX_VALUE_EXPRESSION} bytes in length")
    else:
        environment = compiler.environment()
        try:
            compile_admission(expression.strip(), environment, ANNOTATION_TYPES)
        except CelCompileError as error:
            yield compile_error(error, expression, path)


def _validate_param_kind(kind: Part, path: FieldPath) -> Iterator[FieldError]:
    version, name = text(kind, "apiVersion"), text(kind, "kind")
    if not version:
        yield required(path / "apiVersion")
    elif version.count("/") > 1:
        problem = f"unexpected GroupVersion string: {version}"
        yield invalid(path / "apiVersion", version, problem)
    else:
        group, _, number = version.rpartition("/")
        problems = subdomain_problems(group) if group else []
        if problems:
            yield invalid(path / "apiVersion", group, ",".join(problems))
        if not number:
            yield invalid(path / "apiVersion", version, "version must be specified")
        elif problems := dns_1035_label_problems(number):
            yield invalid(path / "apiVersion", number, ",".join(problems))
    if not name:
        yield required(path / "kind")
    elif problems := dns_1035_label_problems(name.lower()):
        mixed = "may have mixed case, but should otherwise match: "
        yield invalid(path / "kind", name, mixed + ",".join(problems))


# --- mutating policies ---


def validate_mutating_policy(
    policy: RawObject, old: RawObject | None = None
) -> Iterator[FieldError]:
    spec = policy.get("spec", default={})
    has_params = spec.get("paramKind") is not None
    yield from _validate_common({"mutations": (), **spec}, old, has_params)
    compiler = _Compiler(spec, has_params, patches=True)
    yield from compiler.validate_variables()
    mutations = parts(spec, "mutations")
    if not mutations:
        yield required(_SPEC / "mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _validate_mutation(mutation, compiler, _SPEC / "mutations" @ index)
    again = text(spec, "reinvocationPolicy")
    if not again:
        yield required(_SPEC / "reinvocationPolicy")
    elif again not in REINVOCATION_POLICIES:
        yield not_supported(_SPEC / "reinvocationPolicy", again, REINVOCATION_POLICIES)


def _validate_mutated_operations(constraints: Part, path: FieldPath) -> Iterator[FieldError]:
    for rule in parts(constraints, "resourceRules"):
        for operation in texts(rule, "operations"):
            if operation == "DELETE":
                place = path / "resourceRules" / "operations"
                yield not_supported(place, operation, MUTATED_OPERATIONS)


def _validate_mutation(
    mutation: Part, compiler: _Compiler, path: FieldPath
) -> Iterator[FieldError]:
    patch_type = text(mutation, "patchType")
    if not patch_type:
        yield required(path / "patchType")
        return
    if patch_type not in PATCH_TYPES:
        yield not_supported(path / "patchType", patch_type, PATCH_TYPES)
        return
    for other, name in MUTATION_FIELDS.items():
        given = mutation.get(name)
        if other != patch_type and given is not None:
            problem = f"must not be specified when patchType is {patch_type}"
            yield invalid(path / name, f"{{{name}}}", problem)
    name = MUTATION_FIELDS[patch_type]
    given = mutation.get(name)
    if given is None:
        yield required(path / name, f"must be specified when patchType is {patch_type}")
        return
    expression = text(given, "expression")
    if not expression.strip():
        yield required(path / name / "expression")
        return
    allowed = MUTATION_TYPES[patch_type]
    place = path / name / "expression"
    yield from validate_expression(expression, place, compiler.environment(), allowed)


# --- bindings ---


def validate_validating_binding(binding: RawObject) -> Iterator[FieldError]:
    spec = binding.get("spec", default={})
    yield from validate_mutating_binding(binding)
    actions, path = texts(spec, "validationActions"), _SPEC / "validationActions"
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            yield not_supported(path @ index, action, ACTIONS)
        if action in seen:
            yield duplicate(path @ index, action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        yield invalid(path, actions, _BOTH_DENY_AND_WARN)
    if not seen:
        yield required(path)


def validate_mutating_binding(binding: RawObject) -> Iterator[FieldError]:
    spec = binding.get("spec", default={})
    policy = text(spec, "policyName")
    if not policy:
        yield required(_SPEC / "policyName")
    else:
        for problem in subdomain_problems(policy):
            yield invalid(_SPEC / "policyName", policy, problem)
    if spec.get("paramRef") is not None:
        yield from _validate_param_ref(spec["paramRef"], _SPEC / "paramRef")
    if spec.get("matchResources") is not None:
        yield from validate_match_resources(spec["matchResources"], _SPEC / "matchResources")


def _validate_param_ref(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    exclusive = "name and selector are mutually exclusive"
    name, selector = text(reference, "name"), reference.get("selector")
    if name:
        for problem in path_segment_problems(name):
            yield invalid(path / "name", name, problem)
        if selector is not None:
            yield forbidden(path / "name", exclusive)
    if selector is not None:
        yield from validate_label_selector(selector, path / "selector")
        if name:
            yield forbidden(path / "selector", exclusive)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = text(reference, "parameterNotFoundAction")
    if not action:
        yield required(path / "parameterNotFoundAction")
    elif action not in NOT_FOUND_ACTIONS:
        # Listed in this order, unlike other choices.
        listed = ", ".join(f'"{each}"' for each in NOT_FOUND_ACTIONS)
        error = not_supported(path / "parameterNotFoundAction", action, NOT_FOUND_ACTIONS)
        yield error._replace(detail=f"supported values: {listed}")


# --- status ---


def validate_policy_status(policy: RawObject) -> Iterator[FieldError]:
    """The warnings of type checking: each has a message and the field that it is about."""
    checking: dict[str, Any] = policy.get("status", "typeChecking", default={})
    path = FieldPath("status") / "typeChecking" / "expressionWarnings"
    for index, warning in enumerate(parts(checking, "expressionWarnings")):
        if not text(warning, "warning"):
            yield required(path @ index / "warning")
        if not text(warning, "fieldRef").strip():
            yield required(path @ index / "fieldRef")
