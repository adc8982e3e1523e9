"""Network disks in the pod's spec, and which of them cannot be mounted on the same node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class InlineDisk(NamedTuple):
    """A disk by kind and identity. RBD images are also known by the monitors that serve them."""

    kind: str
    identity: tuple[str, ...]
    is_read_only: bool
    monitors: frozenset[str] = frozenset()

    def conflicts_with(self, other: InlineDisk) -> bool:
        """Whether the two must not be on the same node."""
        if self.kind != other.kind or self.identity != other.identity:
            return False
        if self.kind == "rbd" and not self.monitors & other.monitors:
            return False
        both_read_only = self.is_read_only and other.is_read_only
        return self.kind == "awsElasticBlockStore" or not both_read_only


def read_inline_disks(volumes: Iterable[Mapping[str, Any]]) -> tuple[InlineDisk, ...]:
    return tuple(disk for volume in volumes for disk in _disks(volume))


def _disks(volume: Mapping[str, Any]) -> Iterator[InlineDisk]:
    for kind, names in _IDENTITY_FIELDS.items():
        source = volume.get(kind)
        if source is not None:
            identity = tuple(source.get(name) or default for name, default in names)
            monitors = frozenset(source.get("monitors") or ()) if kind == "rbd" else frozenset()
            yield InlineDisk(kind, identity, bool(source.get("readOnly")), monitors)


_IDENTITY_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gcePersistentDisk": (("pdName", ""),),
    "awsElasticBlockStore": (("volumeID", ""),),
    "iscsi": (("iqn", ""),),
    "rbd": (("pool", "rbd"), ("image", "")),
}
