"""What is wrong with a document of a raw kind, in the words Kubernetes uses.

This walk is slow and exact. It is taken only for documents that the fast check in `strictness` refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from allot.api.decoding import DecodeError, go_time_problem
from allot.api.quantity import QuantityError, quantity_from_json
from allot.apiserver.schemas.fields import JSON_SCHEMA, Field, Type
from allot.apiserver.schemas.types import type_named

INT_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_MICRO_FRACTION: Final = re.compile(r"\.\d{6}(?!\d)")
_WHOLE_SECONDS: Final = len("2006-01-02T15:04:05")
_RFC3339_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_RESOURCE_LIST: Final = "v1.ResourceList"
_GO_SCALARS: Final = {
    "string": "string", "boolean": "bool", "bytes": "[]uint8", "number": "float64", "strings": "[]string",
    "quantity": "resource.Quantity", "time": "v1.Time", "microtime": "v1.MicroTime",
    "int-or-string": "intstr.IntOrString", "any": "runtime.RawExtension", "json": "v1.JSON",
    "schema-or": "v1.JSONSchemaProps",
}  # fmt: skip
_GO_NAMES: Final = {
    "Container.imagePullPolicy": "v1.PullPolicy",
    "DaemonSetUpdateStrategy.type": "v1.DaemonSetUpdateStrategyType",
    "DeploymentStrategy.type": "v1.DeploymentStrategyType",
    "StatefulSetUpdateStrategy.type": "v1.StatefulSetUpdateStrategyType",
    "ContainerPort.protocol": "v1.Protocol",
    "EndpointPort.protocol": "v1.Protocol",
    "EndpointSlice.addressType": "v1.AddressType",
    "LabelSelectorRequirement.operator": "v1.LabelSelectorOperator",
    "NodeSelectorRequirement.operator": "v1.NodeSelectorOperator",
    "ObjectMeta.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "PodCondition.status": "v1.ConditionStatus",
    "PodSpec.dnsPolicy": "v1.DNSPolicy",
    "PodSpec.restartPolicy": "v1.RestartPolicy",
    "PodStatus.phase": "v1.PodPhase",
    "Secret.type": "v1.SecretType",
    "ServicePort.protocol": "v1.Protocol",
    "ServiceSpec.type": "v1.ServiceType",
    "Taint.effect": "v1.TaintEffect",
    "Toleration.effect": "v1.TaintEffect",
    "Toleration.operator": "v1.TolerationOperator",
}
"""Texts with a type of their own in Go, as far as people are likely to get them wrong."""
NAMED_STRINGS: Final = frozenset(_GO_NAMES.values())


class _Where(NamedTuple):
    """Where a value is: the struct and the path to it as Go says it, and the path with indexes and keys."""

    owner: str
    path: str
    field: str = ""

    def child(self, owner: str, name: str) -> _Where:
        dot = "." if self.path else ""
        return _Where(owner, f"{self.path}{dot}{name}", f"{self.field}{dot}{name}")

    def item(self, key: int | str) -> _Where:
        return self._replace(field=f"{self.field}[{key}]")


def first_mismatch(data: Any, schema: Type) -> DecodeError | None:
    """The first value that does not fit its type; None if all do."""
    return _in_object(data, schema, _Where("", ""))


def _in_object(data: Any, schema: Type, where: _Where) -> DecodeError | None:
    if not isinstance(data, Mapping):
        return _error(_mismatch(data, _go_type(schema.name), where), data, where)
    owner = schema.name.rpartition(".")[2]
    for name, value in data.items():
        field = schema.fields.get(name)
        if field is None or value is None:
            continue
        problem = _in_field(value, field, where.child(owner, name))
        if problem:
            return problem
    return None


def _in_field(value: Any, field: Field, where: _Where) -> DecodeError | None:
    items: Iterable[tuple[int | str, Any]]
    match field.container:
        case "list" if isinstance(value, list):
            items = enumerate(value)
        case "map" if isinstance(value, Mapping):
            items = value.items()
        case "":
            return _in_value(value, field, where)
        case _:
            return _error(_mismatch(value, _go_name(field, where), where), value, where)
    for key, item in items:
        if item is not None and (problem := _in_value(item, field, where.item(key))):
            return problem
    return None


def _in_value(value: Any, field: Field, where: _Where) -> DecodeError | None:
    if field.type == "schema-or" and isinstance(value, Mapping):
        return _in_object(value, type_named(JSON_SCHEMA), where)
    if field.is_type:
        return _in_object(value, type_named(field.type), where)
    problem = _in_scalar(value, field, where)
    return _error(problem, value, where) if problem else None


def _error(problem: str, value: Any, where: _Where) -> DecodeError:
    shown = "(not shown)" if where.owner == "Secret" else json.dumps(value, ensure_ascii=False)
    return DecodeError(problem, where.field, value=shown)


def _in_scalar(value: Any, field: Field, where: _Where) -> str | None:
    match field.type:
        case "any" | "json" | "schema-or":
            return None
        case "string" | "boolean" | "strings" | "number":
            wanted = _PYTHON_TYPES[field.type]
            fits = isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)
            if fits and field.type == "strings":
                return next(
                    (_mismatch(v, "string", where) for v in value if type(v) is not str), None
                )
            return None if fits else _mismatch(value, _go_item(field, where), where)
        case "integer":
            return _not_an_integer(value, field.format, where)
        case "int-or-string":
            if isinstance(value, str) or not _not_an_integer(value, "int32", where):
                return None
            return _mismatch(value, "int32", _Where("", ""))
        case "bytes":
            return _not_bytes(value, where)
        case "quantity":
            return _not_a_quantity(value)
        case "time" | "microtime":
            return not_a_time(value, micro=field.type == "microtime")
    raise AssertionError(field.type)


_PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "string": str, "boolean": bool, "strings": list, "number": (int, float),
}  # fmt: skip


def _not_an_integer(value: Any, size: str, where: _Where) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _mismatch(value, size, where)
    limit = INT_RANGES[size]
    if isinstance(value, int) and -limit <= value < limit:
        return None
    return _mismatch(value, size, where, literal=True)


def _not_bytes(value: Any, where: _Where) -> str | None:
    if not isinstance(value, str):
        return _mismatch(value, "[]uint8", where)
    text = value.replace("\r", "").replace("\n", "")
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        wrong = re.search(r"[^A-Za-z0-9+/]", text)
        at = wrong.start() if wrong else len(text) // 4 * 4
        return f"illegal base64 data at input byte {at}"
    return None


def _not_a_quantity(value: Any) -> str | None:
    try:
        quantity_from_json(repr(value) if isinstance(value, float) else value)
    except QuantityError as error:
        return str(error)
    return None


_Time = Annotated[datetime, msgspec.Meta(tz=True)]


def not_a_time(value: Any, *, micro: bool) -> str | None:
    """Why a value is not a time; one with microseconds must have all six digits of them."""
    if not isinstance(value, str):
        return _mismatch(value, "string", _Where("", ""))
    try:
        msgspec.convert(value, _Time)
    except msgspec.ValidationError:
        shown, problem = json.dumps(value, ensure_ascii=False), go_time_problem(value)
        return f"parsing time {shown}{problem.replace(_RFC3339_LAYOUT, _MICRO_LAYOUT) if micro else problem}"
    if micro and not _MICRO_FRACTION.match(value, _WHOLE_SECONDS):
        shown = json.dumps(value, ensure_ascii=False)
        rest = json.dumps(value[_WHOLE_SECONDS:])
        return f'parsing time {shown} as "{_MICRO_LAYOUT}": cannot parse {rest} as ".000000"'
    return None


def _mismatch(value: Any, go_type: str, where: _Where, *, literal: bool = False) -> str:
    kind = _json_kind(value)
    found = f"{kind} {json.dumps(value)[:64]}" if literal else kind
    place = f"Go struct field {where.owner}.{where.path}" if where.path else "Go value"
    return f"json: cannot unmarshal {found} into {place} of type {go_type}"


def _json_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case Mapping():
            return "object"
        case None:
            return "null"
    return "array"


def _go_type(name: str) -> str:
    package, _, short = name.rpartition(".")
    return f"{package.rpartition('.')[2]}.{short}"


def _go_item(field: Field, where: _Where) -> str:
    if field.is_type:
        return _go_type(field.type)
    if field.type == "integer":
        return field.format
    return _GO_NAMES.get(f"{where.owner}.{where.path.rpartition('.')[2]}", _GO_SCALARS[field.type])


def _go_name(field: Field, where: _Where) -> str:
    item = _go_item(field, where)
    if field.container == "list":
        return f"[]{item}"
    return _RESOURCE_LIST if field.type == "quantity" else f"map[string]{item}"
