"""Node selectors of slices and allocations: whether a node matches, and what is wrong with malformed ones."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.allocation.errors import AllocationError
from allot.allocation.kubernetes_texts import node_selector_text, quoted
from allot.allocation.problem import TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.api.meta import NodeSelector, NodeSelectorRequirement
from allot.api.selectors import (
    METADATA_NAME,
    NodeSelection,
    read_integer,
    typed_node_selection,
)
from allot.lru_cache import LRUCache

_EXPRESSION_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")


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


class _Compiled(NamedTuple):
    """A node selector, compiled, or what is wrong with it."""

    selection: NodeSelection
    problems: tuple[str, ...]
    requirements: int
    values: int


_MAX_SELECTORS: Final = 1_024
_MAX_VALUES: Final = 16_384

_compiled: Final[LRUCache[NodeSelector, _Compiled]] = LRUCache(
    _MAX_SELECTORS, _MAX_VALUES, lambda compiled: compiled.values
)


def _matches(selector: NodeSelector, node: TargetNode, meter: WorkMeter) -> bool:
    compiled = _compiled.get_or_make(selector, lambda: _compile(selector))
    meter.spend(2 * compiled.requirements)
    problems = compiled.problems
    if problems:
        joined = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise AllocationError(
            f"failed to parse node selector {node_selector_text(selector)}: {joined}"
        )
    for term in compiled.selection.terms:
        meter.spend(2 * (len(term.expressions) + len(term.fields)))
        if term.matches(node.name, node.labels):
            return True
    return False


def _compile(selector: NodeSelector) -> _Compiled:
    terms = selector.node_selector_terms
    values = [
        len(requirement.values)
        for term in terms
        for requirement in (*term.match_expressions, *term.match_fields)
    ]
    selection, problems = typed_node_selection(selector), tuple(_problems(selector))
    return _Compiled(selection, problems, len(values), len(terms) + sum(values))


def _problems(selector: NodeSelector) -> list[str]:
    found: list[str] = []
    for index, term in enumerate(selector.node_selector_terms):
        path = f"nodeSelectorTerms[{index}]"
        for at, requirement in enumerate(term.match_expressions):
            found += _expression_problems(requirement, f"{path}.matchExpressions[{at}]")
        for at, requirement in enumerate(term.match_fields):
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
            if read_integer(values[0]) is None:
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
