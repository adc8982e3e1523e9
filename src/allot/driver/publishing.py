"""The writes that publish a pool.

    no slices ──► generation 1: create all
    one slice differs ──► update it; the pool stays complete
    several differ ──► next generation: delete surplus slices, update existing ones, create missing ones

While a generation is being written the pool is incomplete, and allocators wait. After a crash the pool stays incomplete
until the next run decides again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from allot.api.base import ApiObject, replace, wire_names
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import DeviceTaint
from allot.api.slices import Device, ResourceSlice, ResourceSliceSpec
from allot.driver.slices import slice_name

T = TypeVar("T", bound=ApiObject)


class SliceWrites(NamedTuple):
    """Writes in their order."""

    delete: tuple[ResourceSlice, ...] = ()
    update: tuple[ResourceSlice, ...] = ()
    create: tuple[ResourceSlice, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.delete or self.update or self.create)


class SliceMarks(NamedTuple):
    """The metadata of published slices besides the name."""

    labels: dict[str, str]
    owner: OwnerReference | None = None


def plan_pool(
    existing: Iterable[ResourceSlice],
    wanted: Sequence[ResourceSliceSpec],
    marks: SliceMarks,
    least_generation: int = 0,
) -> SliceWrites:
    """`wanted` are the slices of one pool without a generation; empty: the pool is deleted."""
    found = {slice_.metadata.name: slice_ for slice_ in existing}
    named = {
        slice_name(spec.driver, spec.pool.name, index): spec for index, spec in enumerate(wanted)
    }
    obsolete = tuple(
        slice_ for name, slice_ in found.items() if not _can_become(slice_, named.get(name))
    )
    kept = {name: slice_ for name, slice_ in found.items() if slice_ not in obsolete}
    newest = max((slice_.spec.pool.generation for slice_ in found.values()), default=1)
    generation = max(newest, least_generation)
    changed = {name: _changed(kept[name], named[name], generation, marks) for name in kept}
    has_missing = len(kept) < len(named)
    changes_several = has_missing or sum(slice_ is not None for slice_ in changed.values()) > 1
    if found and generation == newest and changes_several:
        generation += 1
        changed = {name: _changed(kept[name], named[name], generation, marks) for name in kept}
    return SliceWrites(
        obsolete,
        tuple(slice_ for slice_ in changed.values() if slice_ is not None),
        tuple(
            _new(name, spec, generation, marks) for name, spec in named.items() if name not in kept
        ),
    )


def _can_become(slice_: ResourceSlice, wanted: ResourceSliceSpec | None) -> bool:
    """Whether an update suffices: some fields are immutable."""
    spec = slice_.spec
    return wanted is not None and (spec.driver, spec.pool.name, spec.node_name) == (
        wanted.driver,
        wanted.pool.name,
        wanted.node_name,
    )


def _new(name: str, spec: ResourceSliceSpec, generation: int, marks: SliceMarks) -> ResourceSlice:
    owners = (marks.owner,) if marks.owner is not None else ()
    metadata = ObjectMeta(name=name, labels=marks.labels, owner_references=owners)
    return ResourceSlice(metadata, _in_generation(spec, generation))


def _changed(
    slice_: ResourceSlice, wanted: ResourceSliceSpec, generation: int, marks: SliceMarks
) -> ResourceSlice | None:
    """The slice to write; None if nothing changes."""
    spec = _with_known_times(_in_generation(wanted, generation), slice_.spec)
    metadata = slice_.metadata
    if marks.owner is not None and marks.owner not in metadata.owner_references:
        metadata = replace(metadata, owner_references=(marks.owner,))
    if not marks.labels.items() <= metadata.labels.items():
        metadata = replace(metadata, labels={**metadata.labels, **marks.labels})
    if metadata is slice_.metadata and spec == slice_.spec:
        return None
    return ResourceSlice(metadata, spec)


def _in_generation(spec: ResourceSliceSpec, generation: int) -> ResourceSliceSpec:
    return replace(spec, pool=replace(spec.pool, generation=generation))


# --- timeAdded of taints, which the server sets by default ---


def _with_known_times(spec: ResourceSliceSpec, known: ResourceSliceSpec) -> ResourceSliceSpec:
    if not spec.devices or not any(device.taints for device in spec.devices):
        return spec
    before = {device.name: device.taints for device in known.devices or ()}
    devices = tuple(
        _device_with_times(device, before.get(device.name, ())) for device in spec.devices
    )
    return replace(spec, devices=devices)


def _device_with_times(device: Device, known: Iterable[DeviceTaint]) -> Device:
    times = {(taint.key, taint.value, taint.effect): taint.time_added for taint in known}
    taints = tuple(
        replace(taint, time_added=times.get((taint.key, taint.value, taint.effect)))
        if taint.time_added is None
        else taint
        for taint in device.taints
    )
    return replace(device, taints=taints) if taints else device


# --- fields that servers drop ---


def dropped_fields(sent: ResourceSlice, stored: ResourceSlice) -> frozenset[str]:
    """The fields that the server dropped, such as those whose feature gate is disabled."""
    wanted = _with_known_times(sent.spec, stored.spec)
    fields = _differences(wanted, stored.spec) - {"devices"}
    devices = zip(wanted.devices or (), stored.spec.devices or (), strict=False)
    for before, after in devices:
        fields |= {f"devices[].{name}" for name in _differences(before, after)}
    if len(wanted.devices or ()) != len(stored.spec.devices or ()):
        fields |= {"devices"}
    return frozenset(fields)


def _differences(before: T, after: T) -> set[str]:
    return {
        wire
        for wire, name in wire_names(type(before)).items()
        if getattr(before, name) != getattr(after, name)
    }
