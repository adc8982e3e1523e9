"""The conformance interface: one JSON object in, one out, as the project's vectors are written.

An input says what it is by its keys: `operation` (a write), `to` (a conversion), `classes` (quota),
`op` (quantities and versions); what has an object and none of these asks for a table row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from allot.api.base import ApiObject
from allot.api.core import Pod, PodParts
from allot.api.decoding import DecodeError, decode
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.quantity import (
    Quantity,
)
from allot.api.scheme import UnknownKindError, decode_object, encode_object, lookup
from allot.api.strictness import strict_issues
from allot.apiserver.kinds import pod_strategy
from allot.apiserver.kinds.request import Caller, Permission, WriteRequest
from allot.apiserver.kinds.resources import find_kind
from allot.apiserver.printers.column import UNKNOWN
from allot.apiserver.registry.write_pipeline import Accepted, Refused, Rejected, pipeline_for
from allot.cli.number_vectors import answer_quantity, answer_version, kind_of_line
from allot.cli.vector_lines import Answer, Vector, decoder
from allot.features import EXTENDED_RESOURCE, KUBERNETES_DEFAULTS, FeatureGates
from allot.quota.claims import ClaimEntries, claim_usage, extended_name_by_class
from allot.rules import RuleSet
from allot.validation.cel_checker import CelChecker
from allot.validation.expressions import ExpressionChecker
from allot.validation.fields import WITHOUT_VALUE, FieldError, show_value

# Placeholders for times and generated names in answers.
NOW: Final = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
NAME_SUFFIX: Final = "bcdfg"


class VectorAnswerer:
    """Answers vectors one after the other.

    Texts of quantities and of versions come in lines that look alike. The key `texts` of a line says which they
    are, or the argument `texts`; otherwise the lines so far decide, and `texts_read_as` is what they decided.
    """

    def __init__(
        self,
        expressions: ExpressionChecker | None = None,
        texts: str | None = None,
        rules: RuleSet = RuleSet.V1_38,
    ) -> None:
        self._gates = KUBERNETES_DEFAULTS.with_rules(rules)
        self._expressions = expressions or CelChecker()
        self._texts = texts
        self._seen_texts = "quantity"
        self.texts_read_as = ""
        """What the last `parse` or `cmp` line was read as without having been told; empty if none was."""

    def answer(self, line: bytes) -> Answer:
        """The answer to one input line; what is wrong with the line itself goes into `error`."""
        try:
            vector = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return {"error": f"not a vector: {error}"}
        try:
            return self._answer(vector)
        except (UnknownKindError, DecodeError, ValueError) as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - one line must not take the others with it
            return {"error": f"internal error: {type(error).__name__}: {error}"}

    def _answer(self, vector: Vector) -> Answer:
        if vector.operation:
            return _write(vector, self._expressions, self._gates.switched(vector.features))
        if vector.to:
            return _convert(vector)
        if vector.classes is not None or vector.items is not None:
            return _quota(vector, self._gates.switched(vector.features))
        if vector.op:
            return self._number(vector)
        if bytes(vector.object):
            return _table(vector)
        return {"error": "not a vector: no operation, to, classes, op or object"}

    def _number(self, vector: Vector) -> Answer:
        if vector.texts not in ("", "quantity", "semver"):
            return {"error": f"not a vector: texts {vector.texts!r} is not quantity or semver"}
        texts = vector.texts or self._texts
        if texts is None:
            self._seen_texts = kind_of_line(vector, self._seen_texts)
            if vector.op in ("parse", "cmp"):
                self.texts_read_as = self._seen_texts
        if (texts or self._seen_texts) == "semver":
            return answer_version(vector)
        return answer_quantity(vector)


# --- writes ---


def _write(vector: Vector, expressions: ExpressionChecker, gates: FeatureGates) -> Answer:
    granted = (
        None
        if vector.permissions is None
        else {
            Permission(item["verb"], item["resource"], item["namespace"], item["name"])
            for item in vector.permissions
        }
    )

    def may(permission: Permission) -> bool:
        return granted is None or permission in granted

    gvk = GroupVersionKind.parse(vector.gvk)
    request = WriteRequest(
        gates=gates,
        version=gvk.version,
        expressions=expressions,
        now=NOW,
        new_name_suffix=lambda: NAME_SUFFIX,
        caller=Caller(vector.user, vector.user_extra, may),
        verb=vector.verb,
        namespace_labels=vector.namespace_labels,
    )
    answer: Answer = {"id": vector.id}
    try:
        if gvk.kind == "Pod":
            answer |= _write_pod(vector, request)
        else:
            answer |= _write_object(vector, gvk, request)
    except DecodeError as error:
        answer |= {"decodeError": str(error), "errors": []}
    return answer


def _write_object(vector: Vector, gvk: GroupVersionKind, request: WriteRequest) -> Answer:
    _, version = lookup(gvk)
    resource = find_kind(gvk)
    assert resource is not None
    pipeline = pipeline_for(resource)
    answer = _strict_errors(vector, version.kubernetes_cls or version.cls)
    new = decode_object(bytes(vector.object), gvk, NOW)
    if vector.operation == "create":
        outcome = pipeline.create(new, request)
    else:
        old = decode_object(bytes(vector.old), gvk, NOW)
        write = pipeline.update if vector.operation == "update" else pipeline.update_status
        outcome = write(new, old, request)
    match outcome:
        case Accepted(stored, warnings):
            body = encode_object(stored, gvk, type_meta=False)
            answer |= {"errors": [], "object": _masked(msgspec.json.decode(body))}
            if warnings:
                answer["warnings"] = warnings
        case Rejected(errors):
            answer["errors"] = [_error(error) for error in errors]
        case Refused(_, reason, message):
            answer |= {"errors": [], "requestError": f"{reason}: {message}"}
    return answer


def _write_pod(vector: Vector, request: WriteRequest) -> Answer:
    answer = _strict_errors(vector, PodParts)
    decode(bytes(vector.object), PodParts, "v1")
    new = Pod.from_json(bytes(vector.object))
    if vector.operation == "create":
        prepared = pod_strategy.prepare_create(new, request)
        errors = pod_strategy.validate_create(prepared, request)
    else:
        old = Pod.from_json(bytes(vector.old))
        if vector.operation == "update":
            prepared = pod_strategy.prepare_update(new, old, request)
            errors = pod_strategy.validate_update(prepared, old, request)
        else:
            prepared = pod_strategy.prepare_status_update(new, old, request)
            errors = pod_strategy.validate_status_update(prepared, old, request)
    answer["errors"] = [_error(error) for error in errors]
    if not errors:
        answer["object"] = _masked(dict(prepared.data))
    return answer


def _strict_errors(vector: Vector, cls: type[ApiObject | msgspec.Struct]) -> Answer:
    issues = strict_issues(bytes(vector.object), cls)
    return {"strictErrors": [str(issue) for issue in issues]} if issues else {}


def _error(error: FieldError) -> Answer:
    answer = {
        "type": error.type.type_name,
        "field": str(error.path),
        "detail": error.detail,
    }
    if error.type not in WITHOUT_VALUE:
        answer["badValue"] = _bad_value(error.value)
    return answer


def _bad_value(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(NAME_SUFFIX, "?????")
    if value is None or isinstance(value, bool | int):
        return value
    return {"text": show_value(value)}


def _masked(value: Any) -> Any:
    """The answer with the time and the generated suffix replaced by what vectors write for them."""
    match value:
        case dict():
            return {name: _masked(item) for name, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case str() if value.endswith(NAME_SUFFIX):
            return value.removesuffix(NAME_SUFFIX) + "?????"
        case "2001-02-03T04:05:06Z":
            return "NOW"
    return value


# --- conversion, tables, quota ---


def _convert(vector: Vector) -> Answer:
    gvk = GroupVersionKind.parse(vector.gvk)
    target = GroupVersionKind(*GroupVersion.parse(vector.to), gvk.kind)
    try:
        hub = decode_object(bytes(vector.object), gvk, NOW)
        body = encode_object(hub, target, type_meta=False)
    except UnknownKindError as error:
        return {"convertError": str(error)}
    return {"object": _masked(msgspec.json.decode(body))}


def _table(vector: Vector) -> Answer:
    gvk = GroupVersionKind.parse(vector.gvk)
    hub = decode_object(bytes(vector.object), gvk, NOW)
    resource = find_kind(gvk)
    assert resource is not None
    columns = [column._asdict() for column in resource.table.columns]
    return {"cells": resource.table.row(hub, _age), "columns": columns}


def _age(time: datetime | None) -> str:
    """The age is a placeholder: vectors have no times."""
    return "AGE" if time else UNKNOWN


def _quota(vector: Vector, gates: FeatureGates) -> Answer:
    extended = EXTENDED_RESOURCE in gates
    class_kind = GroupVersionKind("resource.k8s.io", "v1", "DeviceClass")
    classes = [decode_object(bytes(body), class_kind, NOW) for body in vector.classes or ()]
    if vector.items is not None:
        matching = ClaimEntries(classes, extended_resources=extended).among(vector.items)
        return {"matching": matching}
    claim = decode_object(bytes(vector.claim), GroupVersionKind.parse(vector.gvk), NOW)
    usage = claim_usage(claim, extended_name_by_class(classes), extended_resources=extended)
    return {"usage": {name: str(Quantity.of(count)) for name, count in usage.items()}}
