"""ResourceSlices."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final

import msgspec

from allot.api.base import replace
from allot.api.slices import ResourceSlice
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.generations import with_generation
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.slice_fields import drop_disabled_slice_fields
from allot.apiserver.kinds.strategy import Strategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.validation.fields import FieldError
from allot.validation.resource_slice import validate_slice, validate_slice_update


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    """Counts generations of the spec as it was sent, before gated fields are dropped."""

    def prepare_create(self, new: ResourceSlice, request: WriteRequest) -> ResourceSlice:
        spec = drop_disabled_slice_fields(new.spec, None, request.gates)
        return with_generation(replace(new, spec=spec), 1)

    def validate_create(self, new: ResourceSlice, request: WriteRequest) -> Iterator[FieldError]:
        return validate_slice(new, request.context)

    def prepare_update(
        self, new: ResourceSlice, old: ResourceSlice, request: WriteRequest
    ) -> ResourceSlice:
        changed = new.spec != old.spec
        spec = drop_disabled_slice_fields(new.spec, old.spec, request.gates)
        return with_generation(replace(new, spec=spec), old.metadata.generation + changed)

    def validate_update(
        self, new: ResourceSlice, old: ResourceSlice, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_slice_update(new, old, request.context)

    def warnings(self, new: ResourceSlice) -> list[str]:
        driver = new.spec.driver
        if driver == driver.lower():
            return []
        why = f'driver names should be lowercase; "{driver}" contains uppercase characters'
        return [f"spec.driver: {why}"]

    def flat_path(self, path: str) -> str:
        return _in_device.sub(r"\1.basic.", path)


_in_device: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name$)")


def _row(slice_: ResourceSlice, age: Age) -> list[Cell]:
    metadata, spec = slice_.metadata, slice_.spec
    return [
        metadata.name,
        spec.node_name or "",
        spec.driver,
        spec.pool.name,
        age(metadata.creation_timestamp),
    ]


class _Pool(msgspec.Struct):
    name: str = ""


class _SliceSpec(msgspec.Struct):
    driver: str = ""
    pool: _Pool = msgspec.field(default_factory=_Pool)


class _Slice(msgspec.Struct):
    """As much of a stored slice as the index needs."""

    spec: _SliceSpec = msgspec.field(default_factory=_SliceSpec)


_decoder: Final = msgspec.json.Decoder(_Slice)


def pool_of(body: bytes) -> Hashable:
    """Driver and pool of a stored slice; None if it cannot be read, as another writer of the store may have left it."""
    try:
        spec = _decoder.decode(body).spec
    except msgspec.DecodeError:
        return None
    return (spec.driver, spec.pool.name)


_SELECTABLE: Final = ("spec.nodeName", "spec.driver", "spec.pool.name")


DEFINITION: Final = KindDefinition(
    strategy=ResourceSliceStrategy,
    table=Table((NAME, Column("Node"), Column("Driver"), Column("Pool"), AGE), _row),
    selectable_fields={path: path for path in _SELECTABLE},
    returns_deleted_in=("v1", "v1beta2", "v1beta1"),
    cache_index=pool_of,
)
