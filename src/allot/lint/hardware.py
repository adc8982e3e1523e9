"""Hardware descriptions among manifests: their errors, and the objects that they publish.

A description has no apiVersion and kind; docs/nodes.md has the format. Its device classes and slices are known to the
rules, as if they were manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourcePool, ResourceSlice
from allot.driver.errors import HardwareError
from allot.driver.hardware import Hardware
from allot.driver.reading import read_hardware
from allot.driver.slices import slice_name
from allot.lint import rule_table as rules
from allot.lint.findings import Finding
from allot.lint.manifests import Manifest

_FIELDS: Final = frozenset({"nodes", "pools", "deviceClasses"})


class CheckedHardware(NamedTuple):
    """A description that can be used, or what is wrong with it."""

    hardware: Hardware | None
    finding: Finding | None = None


def is_hardware(manifest: Manifest) -> bool:
    """Whether the document is a hardware description, or was probably meant to be one."""
    return not manifest.api_version and not manifest.kind and bool(_FIELDS & manifest.data.keys())


def check_hardware(manifest: Manifest) -> CheckedHardware:
    name = PurePath(manifest.source).stem
    try:
        return CheckedHardware(read_hardware(manifest.data, manifest.source, name))
    except HardwareError as error:
        place = manifest.locate(error.field)
        finding = Finding(
            rules.INVALID_HARDWARE.id,
            rules.INVALID_HARDWARE.severity,
            manifest.source,
            place.line,
            place.column,
            f"hardware/{name}",
            error.field,
            error.problem,
        )
        return CheckedHardware(None, finding)


def published_objects(hardware: Hardware) -> Iterator[Any]:
    """The device classes and slices of the description."""
    yield from hardware.classes
    for key in hardware.sources:
        for index, spec in enumerate(hardware.slices(key)):
            pool = ResourcePool(spec.pool.name, 1, spec.pool.resource_slice_count)
            metadata = ObjectMeta(name=slice_name(key.driver, key.pool, index))
            yield ResourceSlice(metadata=metadata, spec=replace(spec, pool=pool))
