"""Equivalence classes of nodes: nodes with equal devices of which the same are taken.

The same claims fit on all nodes of a class. Only nodes whose devices are all local have a class. Names of nodes and
pools do not matter to a search, but the order of pools does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

import msgspec

from allot.allocation import Ledger, TargetNode
from allot.allocation.pools import PoolId
from allot.api.base import replace
from allot.api.decoding import to_builtin
from allot.api.slices import ResourcePool, ResourceSlice

_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)


class _Slice:
    """The pool of a node-local slice, and the slice's content without names."""

    __slots__ = ("content", "pool")

    def __init__(self, slice_: ResourceSlice) -> None:
        spec = slice_.spec
        self.pool = PoolId(spec.driver, spec.pool.name)
        nameless = replace(spec.pool, name="")
        assert isinstance(nameless, ResourcePool)
        # Now, not when it is asked for: the first pod would wait for the slices of all nodes.
        self.content = _encoder.encode(replace(spec, pool=nameless, node_name=""))


class NodeEquivalence:
    """The node-local slices of each node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, _Slice]] = {}
        self._node_by_slice: dict[str, str] = {}
        self._nodes_by_pool: dict[PoolId, dict[str, int]] = {}
        self._common = 0
        """Slices that are not node-local."""

    def put(self, slice_: ResourceSlice) -> None:
        name = slice_.metadata.name
        self.remove(name)
        node = slice_.spec.node_name or ""
        self._node_by_slice[name] = node
        if not node:
            self._common += 1
            return
        known = _Slice(slice_)
        self._by_node.setdefault(node, {})[name] = known
        nodes = self._nodes_by_pool.setdefault(known.pool, {})
        nodes[node] = nodes.get(node, 0) + 1

    def remove(self, name: str) -> None:
        node = self._node_by_slice.pop(name, None)
        if node is None:
            return
        if not node:
            self._common -= 1
            return
        slices = self._by_node[node]
        pool = slices.pop(name).pool
        if not slices:
            del self._by_node[node]
        nodes = self._nodes_by_pool[pool]
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._nodes_by_pool[pool]

    def drivers(self, node: str) -> frozenset[str]:
        """The drivers with devices on the node."""
        return frozenset(known.pool.driver for known in self._by_node.get(node, {}).values())

    def pools(self, node: str) -> tuple[PoolId, ...]:
        """The node's pools, one for each slice, in the order of `class_of`."""
        return tuple([known.pool for _, known in _by_pool(self._by_node.get(node, {}))])

    def class_of(self, node: TargetNode, ledger: Ledger) -> Hashable | None:
        """Equal for nodes of one equivalence class; None for nodes without one."""
        if self._common:
            return None
        slices = self._by_node.get(node.name, {})
        parts: list[Hashable] = [node.declared_features]
        for name, known in _by_pool(slices):
            if len(self._nodes_by_pool[known.pool]) > 1:
                return None
            parts += (known.pool.driver, name if len(slices) > 1 else "", known.content)
            parts.append(_taken(known.pool, ledger))
        return tuple(parts)


def _by_pool(slices: Mapping[str, _Slice]) -> Iterable[tuple[str, _Slice]]:
    """The slices of a node by name, sorted by pool and name."""
    if len(slices) <= 1:
        return slices.items()
    return sorted(slices.items(), key=lambda item: (item[1].pool, item[0]))


def _taken(pool: PoolId, ledger: Ledger) -> Hashable:
    """The allocated devices and shares of a pool: by name alone if they are held as a whole."""
    names = ledger.taken(pool)
    if not names:
        return ()
    if not ledger.shared:
        return tuple(sorted(names))
    parts: list[Hashable] = []
    for name in sorted(names):
        held = ledger.held_as(pool.device_id(name))
        parts.append(name if held is True else (name, held))
    return tuple(parts)
