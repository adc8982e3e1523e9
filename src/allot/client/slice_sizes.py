"""ResourceSlices of which only the number of devices is decoded."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct, field

from allot.client.codecs import TypedCodec
from allot.client.resources import RESOURCE_SLICES, Resource


class _Spec(Struct):
    devices: tuple[Raw, ...] | None = None


class SliceSize(Struct):
    spec: _Spec = field(default_factory=_Spec)

    @property
    def device_count(self) -> int:
        return len(self.spec.devices or ())


SLICE_SIZES: Final[Resource[SliceSize]] = Resource(
    RESOURCE_SLICES.group,
    RESOURCE_SLICES.version,
    RESOURCE_SLICES.plural,
    RESOURCE_SLICES.kind,
    RESOURCE_SLICES.namespaced,
    TypedCodec(RESOURCE_SLICES.gvk, SliceSize),
)
