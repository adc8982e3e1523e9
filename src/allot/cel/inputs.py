"""The parts of a device that a plan reads. Results can be cached by their values."""

from __future__ import annotations

from collections.abc import Iterable

from allot.cel.device import Place
from allot.cel.plan import (
    Access,
    Append,
    Bind,
    Choice,
    Const,
    ErrorNode,
    Fixed,
    Fold,
    Global,
    Invoke,
    Local,
    Logical,
    MakeList,
    MakeMap,
    MakeMessage,
    Membership,
    Node,
    OptionalOr,
    Path,
    Presence,
)

_DEEPEST = {"attributes": 3, "capacity": 3}
"""Maps that are read by domain and identifier; everything else is read as a whole."""


def places_read(root: Node) -> tuple[Place, ...]:
    """The parts of a device that the plan may read, none within another."""
    found: set[Place] = set()
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        domain = _domain_asked_for(node)
        if domain is not None:
            found.add(domain)
            continue
        place = _place(node)
        if place is not None:
            found.add(place)
        waiting.extend(parts(node))
    return tuple(
        sorted(place for place in found if not any(place[:n] in found for n in range(len(place))))
    )


def _domain_asked_for(node: Node) -> Place | None:
    """`"d" in device.attributes` reads only whether the domain exists."""
    match node:
        case Invoke(
            function="@in",
            arguments=(
                Const(value=str() as domain),
                Path(root=Global(), accesses=(Access(key=Const(value=str() as field)),)),
            ),
        ) if field in _DEEPEST:
            return (field, domain, "")
        case _:
            return None


def _place(node: Node) -> Place | None:
    match node:
        case Path(root=Global(), accesses=accesses):
            return _constant_prefix(accesses)
        case Presence(path=Path(root=Global(), accesses=accesses), field=field):
            prefix = _constant_prefix(accesses)
            limit = _DEEPEST.get((*prefix, field)[0], 1)
            is_whole = len(prefix) == len(accesses)
            return (*prefix, field)[:limit] if is_whole else prefix
        case _:
            return None


def _constant_prefix(accesses: tuple[Access, ...]) -> Place:
    steps: list[str] = []
    for access in accesses:
        if not isinstance(access.key, Const) or not isinstance(access.key.value, str):
            break
        steps.append(access.key.value)
        if len(steps) >= _DEEPEST.get(steps[0], 1):
            break
    return tuple(steps)


def parts(node: Node) -> Iterable[Node]:
    """The plans directly within a plan."""
    match node:
        case Const() | ErrorNode():
            return ()
        case Fixed():
            return (node.node,)
        case Path():
            keys = [access.key for access in node.accesses]
            return [*_root_parts(node.root), *keys]
        case Presence():
            return parts(node.path)
        case Invoke():
            return node.arguments
        case Logical():
            return node.terms
        case Membership():
            return (node.value,)
        case MakeList():
            return node.elements
        case MakeMap():
            return [part for key, value, _ in node.entries for part in (key, value)]
        case MakeMessage():
            return [value for _, value, _ in node.fields]
        case Append():
            return (node.element,)
        case Fold():
            return (node.range, node.initial, node.condition, node.step, node.result)
        case Bind():
            return (node.initial, node.result)
        case OptionalOr():
            return (node.optional, node.otherwise)


def _root_parts(root: Local | Global | Choice | Node) -> Iterable[Node]:
    match root:
        case Local() | Global():
            return ()
        case Choice():
            return (root.condition, root.when_true, root.when_false)
        case _:
            return (root,)
