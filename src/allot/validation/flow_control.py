"""Kinds of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log2
from typing import Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import label_problems, subdomain_problems
from allot.validation.parts import Part, part, parts, text, texts

SPEC: Final = FieldPath("spec")
EXEMPT: Final = "exempt"
MAX_PRECEDENCE: Final = 10_000
MAX_QUEUES: Final = 10_000_000
MAX_ENTROPY_BITS: Final = 60
_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_has_space: Final = re.compile(r"\s").search


def validate_flow_schema(schema: RawObject) -> Iterator[FieldError]:
    spec = schema.get("spec", default={})
    precedence = spec.get("matchingPrecedence") or 0
    path = SPEC / "matchingPrecedence"
    if precedence <= 0:
        yield invalid(path, precedence, "must be a positive value")
    if precedence > MAX_PRECEDENCE:
        yield invalid(path, precedence, f"must not be greater than {MAX_PRECEDENCE}")
    if precedence == 1 and schema.metadata.name != EXEMPT:
        yield invalid(
            path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"
        )
    method = spec.get("distinguisherMethod")
    if method is not None and text(method, "type") not in ("ByNamespace", "ByUser"):
        yield not_supported(
            SPEC / "distinguisherMethod" / "type",
            {"Type": text(method, "type")},
            ("ByNamespace", "ByUser"),
        )
    name = text(part(spec, "priorityLevelConfiguration"), "name")
    path = SPEC / "priorityLevelConfiguration" / "name"
    if not name:
        yield required(path, "must reference a priority level")
    else:
        for problem in subdomain_problems(name):
            yield invalid(path, name, problem)
    for index, rule in enumerate(parts(spec, "rules")):
        yield from _validate_rule(rule, SPEC / "rules" @ index)


def _validate_rule(rule: Part, path: FieldPath) -> Iterator[FieldError]:
    subjects = parts(rule, "subjects")
    if not subjects:
        yield required(path / "subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        yield from _validate_subject(subject, path / "subjects" @ index)
    resources, others = parts(rule, "resourceRules"), parts(rule, "nonResourceRules")
    if not resources and not others:
        yield required(
            path, "at least one of resourceRules and nonResourceRules has to be non-empty"
        )
    for index, item in enumerate(resources):
        yield from _validate_resource_rule(item, path / "resourceRules" @ index)
    for index, item in enumerate(others):
        place = path / "nonResourceRules" @ index
        yield from _validate_verbs(texts(item, "verbs"), place / "verbs")
        yield from _validate_urls(texts(item, "nonResourceURLs"), place / "nonResourceURLs")


def _validate_subject(subject: Part, path: FieldPath) -> Iterator[FieldError]:
    kind = text(subject, "kind")
    if kind not in _SUBJECTS:
        yield not_supported(path / "kind", kind, tuple(_SUBJECTS))
        return
    for other, field in _SUBJECTS.items():
        if other != kind and subject.get(field) is not None:
            yield forbidden(
                path / field, f"{field} is forbidden when subject kind is not '{other}'"
            )
    field = _SUBJECTS[kind]
    if subject.get(field) is None:
        yield required(path / field, f"{field} is required when subject kind is '{kind}'")
        return
    who = part(subject, field)
    if not text(who, "name"):
        yield required(path / field / "name")
    if kind == "ServiceAccount":
        namespace = text(who, "namespace")
        if not namespace:
            yield required(path / field / "namespace", "must specify namespace for service account")
        for problem in label_problems(namespace) if namespace else ():
            yield invalid(path / field / "namespace", namespace, problem)


def _validate_verbs(verbs: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            yield invalid(path, list(verbs), "if '*' is present, must not specify other verbs")
    elif not set(verbs) <= set(_VERBS):
        yield not_supported(path, list(verbs), _VERBS)


def _validate_resource_rule(rule: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_verbs(texts(rule, "verbs"), path / "verbs")
    for field, called, others in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = texts(rule, field)
        if not values:
            yield required(path / field, f"resource rules must supply at least one {called}")
        elif "*" in values and len(values) > 1:
            yield invalid(
                path / field, list(values), f"if '*' is present, must not specify other {others}"
            )
    namespaces = texts(rule, "namespaces")
    if not namespaces and not rule.get("clusterScope"):
        yield required(
            path / "namespaces",
            "resource rules that are not cluster scoped must supply at least one namespace",
        )
    elif "*" in namespaces and len(namespaces) > 1:
        problem = "if '*' is present, must not specify other namespaces"
        yield invalid(path / "namespaces", list(namespaces), problem)
    else:
        for index, namespace in enumerate(namespaces):
            for problem in () if namespace == "*" else label_problems(namespace):
                yield invalid(
                    path / "namespaces" @ index,
                    namespace,
                    f"each member of this list must be '*' or a DNS-1123 label; {problem}",
                )


def _validate_urls(urls: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    if not urls:
        yield required(path, "nonResourceURLs must contain at least one value")
    for index, url in enumerate(urls):
        if url == "*":
            continue
        place = path @ index
        if not url:
            yield invalid(place, url, "must not be empty")
        elif _has_space(url):
            yield invalid(place, url, "must not contain white-space")
        elif not url.startswith("/"):
            yield invalid(place, url, "must start with slash")
        elif "//" in url:
            yield invalid(place, url, "must not contain double slash")
        elif "*" in url.removesuffix("/*"):
            yield invalid(place, url, "wildcard can only do suffix matching")


def validate_priority_level(level: RawObject) -> Iterator[FieldError]:
    spec, name = level.get("spec", default={}), level.metadata.name
    type_, path = text(spec, "type"), SPEC / "type"
    if not type_:
        yield required(path)
        if spec.get("limited") is not None:
            yield forbidden(SPEC / "limited", "")
        return
    if (name == EXEMPT) != (type_ == "Exempt") and type_ in ("Exempt", "Limited"):
        yield invalid(path, type_, "must be 'Exempt' if and only if `name` is 'exempt'")
    if type_ not in ("Exempt", "Limited"):
        yield not_supported(path, type_, ("Exempt", "Limited"))
    if type_ == "Limited":
        if spec.get("exempt") is not None:
            yield forbidden(SPEC / "exempt", "")
        if spec.get("limited") is None:
            yield required(SPEC / "limited")
        else:
            yield from _validate_limited(part(spec, "limited"), SPEC / "limited")
    elif spec.get("limited") is not None:
        yield forbidden(SPEC / "limited", "")


def _validate_limited(limited: Part, path: FieldPath) -> Iterator[FieldError]:
    shares = limited.get("nominalConcurrencyShares")
    if isinstance(shares, int) and shares < 0:
        yield invalid(path / "nominalConcurrencyShares", shares, "must be a non-negative integer")
    response, place = part(limited, "limitResponse"), path / "limitResponse"
    type_, queuing = text(response, "type"), response.get("queuing")
    if not type_:
        yield required(place / "type")
    elif type_ == "Queue":
        if queuing is None:
            yield required(place / "queuing")
        else:
            yield from _validate_queuing(part(response, "queuing"), place / "queuing")
    else:
        if type_ != "Reject":
            yield not_supported(place / "type", type_, ("Queue", "Reject"))
        if queuing is not None:
            yield forbidden(place / "queuing", "")
    lendable = limited.get("lendablePercent")
    if isinstance(lendable, int) and not 0 <= lendable <= 100:
        yield invalid(path / "lendablePercent", lendable, "must be between 0 and 100, inclusive")
    borrowing = limited.get("borrowingLimitPercent")
    if isinstance(borrowing, int) and borrowing < 0:
        yield invalid(
            path / "borrowingLimitPercent",
            borrowing,
            "if specified, must be a non-negative integer",
        )


def _validate_queuing(queuing: Part, path: FieldPath) -> Iterator[FieldError]:
    length, queues, hand = (
        queuing.get(field) or 0 for field in ("queueLengthLimit", "queues", "handSize")
    )
    if length <= 0:
        yield invalid(path / "queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield invalid(path / "queues", queues, "must be positive")
    elif queues > MAX_QUEUES:
        yield invalid(path / "queues", queues, f"must not be greater than {MAX_QUEUES}")
    if hand <= 0:
        yield invalid(path / "handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid(path / "handSize", hand, f"should not be greater than queues ({queues})")
    elif sum(log2(queues - dealt) for dealt in range(hand)) > MAX_ENTROPY_BITS:
        yield invalid(
            path / "handSize",
            hand,
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater"
            f" than {MAX_ENTROPY_BITS}",
        )
