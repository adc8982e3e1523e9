"""Type checking of policies: which expressions cannot work on the kinds that a policy names.

Expressions of stored policies are untyped: an object may be of any kind. Here they are checked once more, with the types
of each kind that `matchConstraints` names without wildcards. The problems are warnings in the policy's status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, product
from typing import Any, Final

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.schemas.fields import Field
from allot.apiserver.schemas.types import type_named, type_of
from allot.cel import CelCompileError, types
from allot.cel.admission import Declared, admission_environment, compile_admission
from allot.cel.environment import Environment, MessageType
from allot.cel.types import Type, TypeKind

MAX_KINDS: Final = 10
"""Further kinds of a policy are not checked."""
MAX_NAMED: Final = 10_000
"""Combinations of groups, versions and resources that are looked up."""
_COMPILATION_FAILED: Final = "compilation failed: "
_EMPTY: Final = Type(TypeKind.STRUCT, "object")
_SCALARS: Final = {
    "string": types.STRING,
    "integer": types.INT,
    "number": types.DOUBLE,
    "boolean": types.BOOL,
    "bytes": types.BYTES,
    "time": types.TIMESTAMP,
    "microtime": types.TIMESTAMP,
    "int-or-string": types.DYN,
    "json": types.DYN,
    "schema-or": types.DYN,
    "strings": types.list_of(types.STRING),
}


def expression_warnings(policy: Mapping[str, Any], served: ServedResources) -> list[dict[str, str]]:
    """The `expressionWarnings` of a ValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    kinds = list(checked_kinds(spec, served))
    if not kinds:
        return []
    found = []
    for place, expression in _expressions(spec):
        problems = [
            f"{_shown(kind)}: {problem}\n"
            for kind in kinds
            if (problem := _problem(expression, spec, kind, served))
        ]
        if problems:
            found.append({"fieldRef": place, "warning": "\n".join(problems)})
    return found


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The expressions that are checked, and their places."""
    for index, validation in enumerate(spec.get("validations") or ()):
        for name in ("expression", "messageExpression"):
            if validation.get(name):
                yield f"spec.validations[{index}].{name}", validation[name]


def checked_kinds(spec: Mapping[str, Any], served: ServedResources) -> Iterator[GroupVersionKind]:
    """The kinds that the rules of a policy name, in order."""
    constraints = spec.get("matchConstraints") or {}
    named = (
        (group, version, plural)
        for rule in constraints.get("resourceRules") or ()
        for group, version, plural in product(
            *(rule.get(name) or () for name in ("apiGroups", "apiVersions", "resources"))
        )
    )
    found = {
        resource.gvk(version)
        for group, version, plural in islice(named, MAX_NAMED)
        if "*" not in (group, version) and "*" not in plural and "/" not in plural
        if (resource := served.find(GroupVersion(group, version), plural)) is not None
    }
    return iter(sorted(kind for kind in found if type_of(kind) is not None)[:MAX_KINDS])


def _shown(kind: GroupVersionKind) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"


def _problem(
    expression: str, spec: Mapping[str, Any], kind: GroupVersionKind, served: ServedResources
) -> str:
    """What is wrong with an expression about objects of one kind; empty if nothing is."""
    variables = spec.get("variables") or ()
    known: dict[str, Type] | None = {} if variables else None
    for variable in variables:
        assert known is not None
        environment = _typed(spec, kind, known, served)
        known = {**known, variable.get("name", ""): _type(variable, environment)}
    try:
        compile_admission(expression, _typed(spec, kind, known, served))
    except CelCompileError as error:
        return error.text.removeprefix(_COMPILATION_FAILED)
    return ""


def _type(variable: Mapping[str, Any], environment: Environment) -> Type:
    try:
        return compile_admission(variable.get("expression", ""), environment).output_type
    except CelCompileError:
        return types.DYN


def _typed(
    spec: Mapping[str, Any],
    kind: GroupVersionKind,
    variables: Mapping[str, Type] | None,
    served: ServedResources,
) -> Environment:
    """The environment of a policy's expressions, with the types of one kind."""
    parameters = spec.get("paramKind")
    base = admission_environment(Declared(params=parameters is not None), variables)
    object_type = _object_type(kind)
    declared = {**base.variables, "object": object_type, "oldObject": object_type}
    del declared["authorizer.requestResource"]
    if parameters is not None:
        text = f"{parameters.get('apiVersion', '')}/{parameters.get('kind', '')}"
        gvk = GroupVersionKind.parse(text)
        if served.find_kind(gvk) is not None and type_of(gvk) is not None:
            declared["params"] = _object_type(gvk)
    return replace(base, variables=declared, messages=SchemaMessages(base.messages))


def _object_type(kind: GroupVersionKind) -> Type:
    schema = type_of(kind)
    return types.DYN if schema is None else Type(TypeKind.STRUCT, schema.name)


class SchemaMessages(Mapping[str, MessageType]):
    """The messages of an environment, and the types of all schemas by their names."""

    def __init__(self, messages: Mapping[str, MessageType]) -> None:
        self._messages = messages

    def __getitem__(self, name: str) -> MessageType:
        found = self._messages.get(name)
        return _message(name) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)


@cache
def _message(name: str) -> MessageType:
    """`KeyError` if there is no such type."""
    if name == _EMPTY.name:
        return MessageType(_EMPTY, {})
    fields = {
        field_name: found
        for field_name, field in type_named(name).fields.items()
        if (found := _field_type(field)) is not None
    }
    return MessageType(Type(TypeKind.STRUCT, name), fields)


def _field_type(field: Field) -> Type | None:
    """The type of a field; None for quantities, which expressions with types do not know."""
    if field.is_type:
        inner: Type | None = Type(TypeKind.STRUCT, field.type)
    elif field.type == "any":
        inner = _EMPTY if field.format else types.DYN
    else:
        inner = _SCALARS.get(field.type)
    if inner is None:
        return None
    if field.container == "list":
        return types.list_of(inner)
    return types.map_of(types.STRING, inner) if field.container == "map" else inner


def checked_status(
    policy: Mapping[str, Any], generation: int, warnings: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The status of a policy after it was checked."""
    checking = {"expressionWarnings": list(warnings)} if warnings else {}
    status = dict(policy.get("status") or {})
    return status | {"observedGeneration": generation, "typeChecking": checking}
