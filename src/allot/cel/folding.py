"""Constant folding: constant parts of a plan are evaluated once per program.

A part that reads neither the device nor an outer variable always has the same value or error, and cost.
It becomes a `Fixed`: evaluated on first use and cached. Large values are not cached, so that programs
stay small.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

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
    Once,
    OptionalOr,
    Path,
    Presence,
)

Free = frozenset[int] | None
"""The outer variables that a part reads; None if it reads the device."""

_NOTHING: Final[frozenset[int]] = frozenset()


def fold_constants(root: Node) -> Node:
    """The plan with its constant parts marked. The whole is never marked: its result is cached anyway."""
    return _folded(root)[0]


def _folded(node: Node) -> tuple[Node, Free]:
    match node:
        case Const() | ErrorNode():
            return node, _NOTHING
        case Path():
            return _path(node)
        case Presence():
            path, free = _path(node.path)
            return replace(node, path=path), free
        case Invoke():
            arguments, free = _parts(node.arguments)
            return replace(node, arguments=arguments), free
        case Logical():
            terms, free = _parts(node.terms)
            return replace(node, terms=terms), free
        case Membership():
            (value,), free = _parts((node.value,))
            return replace(node, value=value), free
        case MakeList():
            elements, free = _parts(node.elements)
            return replace(node, elements=elements), free
        case MakeMap():
            parts, free = _parts(
                tuple(part for key, value, _ in node.entries for part in (key, value))
            )
            entries = zip(parts[::2], parts[1::2], node.entries, strict=True)
            return MakeMap(tuple((key, value, old[2]) for key, value, old in entries)), free
        case MakeMessage():
            values, free = _parts(tuple(value for _, value, _ in node.fields))
            fields = zip(values, node.fields, strict=True)
            return replace(
                node, fields=tuple((old[0], value, old[2]) for value, old in fields)
            ), free
        case Append():
            (element,), free = _parts((node.element,), frozenset({node.accumulator.slot}))
            return replace(node, element=element), free
        case Fold():
            return _loop(node)
        case Bind():
            return _binding(node)
        case OptionalOr():
            (optional, otherwise), free = _parts((node.optional, node.otherwise))
            return replace(node, optional=optional, otherwise=otherwise), free
        case Fixed():
            return node, _NOTHING


def _parts(nodes: tuple[Node, ...], also: Free = _NOTHING) -> tuple[tuple[Node, ...], Free]:
    """The parts, marked where they are constant although the whole is not."""
    folded = [_folded(node) for node in nodes]
    free = _union(also, *(free for _, free in folded))
    return tuple(_marked(part, of, free) for part, of in folded), free


def _marked(node: Node, free: Free, free_of_whole: Free) -> Node:
    is_constant = free is not None and not free
    if is_constant and (free_of_whole is None or free_of_whole):
        return node if isinstance(node, Const | ErrorNode | Fixed) else Fixed(node, Once())
    return node


def _union(*frees: Free) -> Free:
    union: set[int] = set()
    for free in frees:
        if free is None:
            return None
        union |= free
    return frozenset(union) if union else _NOTHING


def _path(path: Path) -> tuple[Path, Free]:
    keys = [_folded(access.key) for access in path.accesses]
    key_frees = [free for _, free in keys]
    root = path.root
    match root:
        case Local():
            free = _union(frozenset({root.slot}), *key_frees)
        case Global():
            free = None
        case Choice():
            condition, when_true, when_false = map(
                _folded, (root.condition, root.when_true, root.when_false)
            )
            free = _union(condition[1], when_true[1], when_false[1], *key_frees)
            root = Choice(
                _marked(*condition, free), _resolved(*when_true, free), _resolved(*when_false, free)
            )
        case _:
            inner, of = _folded(root)
            free = _union(of, *key_frees)
            root = _marked(inner, of, free)
    accesses = tuple(
        Access(_resolved(*key, free), access.optional)
        for key, access in zip(keys, path.accesses, strict=True)
    )
    return Path(root, accesses), free


def _resolved(node: Node, free: Free, free_of_whole: Free) -> Node:
    """A branch or a key. A path costs less there than elsewhere, so it stays one."""
    return node if isinstance(node, Path) else _marked(node, free, free_of_whole)


def _loop(loop: Fold) -> tuple[Fold, Free]:
    own = {loop.accumulator, loop.variable}
    if loop.variable2 is not None:
        own.add(loop.variable2)
    over, initial, condition, step, result = map(
        _folded, (loop.range, loop.initial, loop.condition, loop.step, loop.result)
    )
    inside = _union(condition[1], step[1], result[1])
    free = _union(over[1], initial[1], None if inside is None else inside - own)
    turn = frozenset(
        own
    )  # constants in the body are marked, even if the whole loop is constant too
    folded = replace(
        loop,
        range=_marked(*over, free),
        initial=_marked(*initial, free) if loop.collects is None else loop.initial,
        condition=_marked(*condition, turn),
        step=_marked(*step, turn),
        result=_marked(*result, free),
    )
    return folded, free


def _binding(binding: Bind) -> tuple[Bind, Free]:
    initial, of_initial = _folded(binding.initial)
    result, of_result = _folded(binding.result)
    inner = None if of_result is None else of_result - {binding.slot}
    free = _union(of_initial, inner)
    folded = replace(
        binding,
        initial=_marked(initial, of_initial, free),
        result=_marked(result, of_result, free),
    )
    return folded, free
