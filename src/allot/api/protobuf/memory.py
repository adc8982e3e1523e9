"""Parts of objects that come again with most changes of their object: the spec of a pod, the devices of a slice.

What was read or written of them is kept, up to a total size. Values are given out more than once: structs are
frozen, and dicts are kept as msgpack, which gives a new dict each time faster than any copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any, Final

import msgspec

from allot.api.decoding import to_builtin

REMEMBERED: Final = frozenset(
    {
        "core.v1.Container", "core.v1.ContainerStatus", "core.v1.NodeCondition", "core.v1.PodCondition",
        "core.v1.PodSpec", "core.v1.Volume",
        "discovery.v1.Endpoint",
        "meta.v1.ManagedFieldsEntry", "meta.v1.OwnerReference",
    }
)  # fmt: skip
"""Messages that are remembered, beside those of `_DRA`."""
_DRA: Final = frozenset(
    {"AllocatedDeviceStatus", "AllocationResult", "CounterSet", "Device", "ResourceClaimSpec"}
)
"""Messages that are remembered in every version of resource.k8s.io."""
MAX_BYTES: Final = 16 << 20
"""Of all parts that are remembered, in each direction."""
MAX_PART_BYTES: Final = 16 << 10
"""Of one part."""
MIN_BYTES_PER_PART: Final = 12
"""Dicts with shorter parts are not remembered: they are made anew without counting against the budget of parts."""
ENTRY_BYTES: Final = 200
"""Estimated bytes of an entry, or of a struct, beside its content."""


def is_remembered(message: str) -> bool:
    package, _, name = message.rpartition(".")
    return message in REMEMBERED or (package.startswith("resource.") and name in _DRA)


class Memory:
    """What was read or written, by type. All of it is dropped when it has become too much.

    Threads share it: a count that is lost between two of them makes the limit a little less exact.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[dict[Any, Any]] = []
        self.bytes = 0

    def of_a_type(self) -> dict[Any, Any]:
        """Where one type is looked up; `keep` adds to it."""
        made: dict[Any, Any] = {}
        self._parts.append(made)
        return made

    def keep(self, parts: dict[Any, Any], key: Any, value: Any, size: int) -> None:
        if self.bytes + size > self._max_bytes:
            self.forget()
        self.bytes += size + ENTRY_BYTES
        parts[key] = value

    def forget(self) -> None:
        self.bytes = 0
        for parts in self._parts:
            parts.clear()


READ: Final = Memory()
WRITTEN: Final = Memory()

pack: Final = msgspec.msgpack.Encoder().encode
unpack: Final = msgspec.msgpack.Decoder().decode
json_of: Final = msgspec.json.Encoder(enc_hook=to_builtin).encode
"""What says all about a value that is written. Opaque parts are in it as they are."""


def keep_dict(
    parts: dict[bytes, Any], content: bytes, value: Any, budget: Iterator[None], before: int
) -> None:
    """Remember a dict that was read, as msgpack; `before` is what the budget was."""
    if (before - length_hint(budget)) * MIN_BYTES_PER_PART > len(content):
        return
    try:
        packed = pack(value)
    except (
        OverflowError,
        ValueError,
        RecursionError,
    ):  # numbers in JSON that msgpack does not have
        return
    READ.keep(parts, content, packed, len(content) + len(packed))
