"""Generations of typed objects."""

from __future__ import annotations

from typing import TypeVar

from allot.api.base import replace
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.slices import ResourceSlice

Counted = TypeVar("Counted", ResourceSlice, DeviceClass, DeviceTaintRule)
"""The kinds whose specs have generations."""


def with_generation(obj: Counted, generation: int) -> Counted:
    return replace(obj, metadata=replace(obj.metadata, generation=generation))
