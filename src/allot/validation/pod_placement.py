"""Pod placement: node selectors, affinity, topology spread, tolerations, scheduling gates.

Schedulers can rely on these being well-formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from allot.api.decoding import from_value
from allot.api.meta import NodeSelector, NodeSelectorTerm
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import label_key_problems, label_value_problems
from allot.validation.label_selector import validate_label_selector
from allot.validation.metadata import validate_labels
from allot.validation.names import validate_label, validate_label_key, validate_subdomain
from allot.validation.node_selector import validate_node_selector, validate_node_selector_term
from allot.validation.parts import Part, part, parts, texts

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS: Final = ("Equal", "Exists")
UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
POLICIES: Final = ("Honor", "Ignore")

CAN_NOT_BE_EMPTY: Final = "can not be empty"
GREATER_THAN_ZERO: Final = "must be greater than zero"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_pod_placement(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a pod or of a pod template."""
    yield from validate_labels(part(spec, "nodeSelector"), path / "nodeSelector")
    if spec.get("nodeName"):
        yield from validate_subdomain(spec["nodeName"], path / "nodeName")
    yield from _validate_affinity(part(spec, "affinity"), path / "affinity")
    for index, toleration in enumerate(parts(spec, "tolerations")):
        yield from validate_toleration(toleration, path / "tolerations" @ index)
    yield from _validate_spread(
        parts(spec, "topologySpreadConstraints"), path / "topologySpreadConstraints"
    )
    yield from _validate_gates(parts(spec, "schedulingGates"), path / "schedulingGates")


# --- tolerations and gates ---


def validate_toleration(toleration: Part, path: FieldPath) -> Iterator[FieldError]:
    """A toleration of node taints, of a pod or of a RuntimeClass."""
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    operator_path = path / "operator"
    if key:
        yield from validate_label_key(key, path / "key")
    elif operator != "Exists":
        yield invalid(
            operator_path,
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(
            path / "effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    match operator:
        case "" | "Equal":
            for problem in label_value_problems(value):
                yield invalid(operator_path, value, problem)
        case "Exists":
            if value:
                yield invalid(
                    operator_path, value, "value must be empty when `operator` is 'Exists'"
                )
        case _:
            yield not_supported(operator_path, operator, OPERATORS)
    if effect and effect not in EFFECTS:
        yield not_supported(path / "effect", effect, EFFECTS, is_ordered=True)


def _validate_gates(gates: list[Part], path: FieldPath) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        yield from validate_label_key(name, path @ index)
        if name in seen:
            yield duplicate(path @ index, name)
        seen.add(name)


# --- affinity ---


def _validate_affinity(affinity: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_node_affinity(part(affinity, "nodeAffinity"), path / "nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        yield from _validate_pod_affinity(part(affinity, field), path / field)


def _validate_node_affinity(affinity: Part, path: FieldPath) -> Iterator[FieldError]:
    selector = affinity.get(_REQUIRED)
    if isinstance(selector, dict):
        typed = msgspec.convert(selector, NodeSelector, dec_hook=from_value)
        yield from validate_node_selector(typed, path / _REQUIRED)
    for index, weighted in enumerate(parts(affinity, _PREFERRED)):
        term_path = path / _PREFERRED @ index
        yield from _validate_weight(weighted, term_path)
        preference = part(weighted, "preference")
        term = msgspec.convert(preference, NodeSelectorTerm, dec_hook=from_value)
        yield from validate_node_selector_term(term, term_path / "preference")


def _validate_pod_affinity(affinity: Part, path: FieldPath) -> Iterator[FieldError]:
    for index, term in enumerate(parts(affinity, _REQUIRED)):
        yield from _validate_pod_term(term, path / _REQUIRED @ index)
    for index, weighted in enumerate(parts(affinity, _PREFERRED)):
        term_path = path / _PREFERRED @ index
        yield from _validate_weight(weighted, term_path)
        yield from _validate_pod_term(
            part(weighted, "podAffinityTerm"), term_path / "podAffinityTerm"
        )


def _validate_weight(weighted: Part, path: FieldPath) -> Iterator[FieldError]:
    weight = weighted.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid(path / "weight", weight, "must be in the range 1-100")


def _validate_pod_term(term: Part, path: FieldPath) -> Iterator[FieldError]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from validate_label_selector(part(term, field), path / field)
    for name in term.get("namespaces") or ():
        yield from validate_label(name, path / "namespace")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        yield from _validate_label_keys(term, field, path)
    others = frozenset(texts(term, "mismatchLabelKeys"))
    for index, key in enumerate(texts(term, "matchLabelKeys")):
        if key in others:
            rule = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(path / "matchLabelKeys" @ index, key, rule)
    yield from _validate_topology_key(term, path)
    for problem in label_key_problems(term.get("topologyKey") or ""):
        yield invalid(path / "topologyKey", term.get("topologyKey") or "", problem)


def _validate_topology_key(owner: Part, path: FieldPath) -> Iterator[FieldError]:
    if not owner.get("topologyKey"):
        yield required(path / "topologyKey", CAN_NOT_BE_EMPTY)


# --- spread ---


def _validate_spread(constraints: list[Part], path: FieldPath) -> Iterator[FieldError]:
    pairs = [
        (constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or "")
        for constraint in constraints
    ]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, (constraint, pair) in enumerate(zip(constraints, pairs, strict=True)):
        one_path = path @ index
        yield from _validate_constraint(constraint, one_path)
        if last[pair] > index:
            yield duplicate(
                one_path / "{topologyKey, whenUnsatisfiable}", "{" + ", ".join(pair) + "}"
            )


def _validate_constraint(constraint: Part, path: FieldPath) -> Iterator[FieldError]:
    skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
    if skew <= 0:
        yield invalid(path / "maxSkew", skew, GREATER_THAN_ZERO)
    yield from _validate_topology_key(constraint, path)
    unsatisfiable = constraint.get("whenUnsatisfiable") or ""
    if unsatisfiable not in UNSATISFIABLE:
        yield not_supported(path / "whenUnsatisfiable", unsatisfiable, UNSATISFIABLE)
    if domains is not None:
        if domains <= 0:
            yield invalid(path / "minDomains", domains, GREATER_THAN_ZERO)
        if unsatisfiable != "DoNotSchedule":
            yield invalid(
                path / "minDomains",
                domains,
                f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}",
            )
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in POLICIES:
            yield not_supported(path / field, policy, POLICIES)
    yield from _validate_label_keys(constraint, "matchLabelKeys", path)
    yield from validate_label_selector(part(constraint, "labelSelector"), path / "labelSelector")


def _validate_label_keys(owner: Part, field: str, path: FieldPath) -> Iterator[FieldError]:
    """Keys of the pod's own labels that are added to a selector."""
    keys = texts(owner, field)
    if keys and owner.get("labelSelector") is None:
        yield forbidden(path / field, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        for problem in label_key_problems(key):
            yield invalid(path / field @ index, key, problem)
