"""Node selectors: whether a node matches, and what is wrong with selectors that cannot be read."""

from __future__ import annotations

import re
from typing import Final

from allot.allocation.errors import AllocationError
from allot.allocation.kubernetes_texts import node_selector_text, quoted
from allot.allocation.problem import TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.api.meta import NodeSelector, NodeSelectorRequirement

METADATA_NAME: Final = "metadata.name"

_EXPRESSION_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_is_integer: Final = re.compile(r"[+-]?[0-9]+").fullmatch


def selects_node(
    node: TargetNode,
    node_name: str | None,
    all_nodes: bool | None,
    selector: NodeSelector | None,
    meter: WorkMeter | None = None,
) -> bool:
    """Whether devices with this node selection can be used on `node`; nothing set selects nothing.

    `AllocationError` if the selector cannot be read.
    """
    if node_name:
        return node_name == node.name
    if all_nodes:
        return True
    return selector is not None and _matches(selector, node, meter or WorkMeter())


def _matches(selector: NodeSelector, node: TargetNode, meter: WorkMeter) -> bool:
    problems = _problems(selector, meter)
    if problems:
        joined = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise AllocationError(
            f"failed to parse node selector {node_selector_text(selector)}: {joined}"
        )
    for term in selector.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        meter.spend(2 * (len(term.match_expressions) + len(term.match_fields)))
        labels = all(_holds(need, node.labels.get(need.key)) for need in term.match_expressions)
        if labels and all(_holds(need, node.name) for need in term.match_fields):
            return True
    return False


def _holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or _integer(value) is None:
        return False
    limit = int(requirement.values[0])
    return int(value) > limit if requirement.operator == "Gt" else int(value) < limit


def _integer(text: str) -> int | None:
    number = int(text) if text.isascii() and _is_integer(text) and len(text) <= 20 else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _problems(selector: NodeSelector, meter: WorkMeter) -> list[str]:
    found: list[str] = []
    for index, term in enumerate(selector.node_selector_terms):
        path = f"nodeSelectorTerms[{index}]"
        for at, requirement in enumerate(term.match_expressions):
            meter.spend(2)
            found += _expression_problems(requirement, f"{path}.matchExpressions[{at}]")
        for at, requirement in enumerate(term.match_fields):
            meter.spend(2)
            found += _field_problems(requirement, f"{path}.matchFields[{at}]")
    return found


def _unsupported(path: str, value: str, supported: tuple[str, ...]) -> str:
    listed = ", ".join(map(quoted, supported))
    return f"{path}: Unsupported value: {quoted(value)}: supported values: {listed}"


def _expression_problems(requirement: NodeSelectorRequirement, path: str) -> list[str]:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                return [
                    f"{path}.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                ]
        case "Exists" | "DoesNotExist":
            if values:
                shown = "[" + ",".join(map(quoted, values)) + "]"
                return [
                    f"{path}.values: Invalid value: {shown}: values set must be empty for exists and does not exist"
                ]
        case "Gt" | "Lt":
            if len(values) != 1:
                shown = "[" + ",".join(map(quoted, values)) + "]"
                return [
                    f"{path}.values: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required"
                ]
            if _integer(values[0]) is None:
                return [
                    f"{path}.values[0]: Invalid value: {quoted(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer"
                ]
        case operator:
            return [_unsupported(f"{path}.operator", operator, _EXPRESSION_OPERATORS)]
    return []


def _field_problems(requirement: NodeSelectorRequirement, path: str) -> list[str]:
    if requirement.operator not in _FIELD_OPERATORS:
        return [_unsupported(f"{path}.operator", requirement.operator, _FIELD_OPERATORS)]
    if len(requirement.values) != 1:
        shown = "[" + ",".join(map(quoted, requirement.values)) + "]"
        return [f"{path}.values: Invalid value: {shown}: must have one element"]
    if requirement.key != METADATA_NAME:
        return [_unsupported(f"{path}.key", requirement.key, (METADATA_NAME,))]
    return []
