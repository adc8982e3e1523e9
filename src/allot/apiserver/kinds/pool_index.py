"""The index of ResourceSlices by driver and pool."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec


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
    """Driver and pool of a stored slice."""
    spec = _decoder.decode(body).spec
    return (spec.driver, spec.pool.name)
