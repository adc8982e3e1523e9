"""The objects that rules can look up: those of all files, and of the cluster if it was read.

Rules about a kind report nothing if no object of that kind was given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from allot.allocation.attributes import AttributeSet, attribute_set
from allot.allocation.devices import PoolDevice, PoolId
from allot.allocation.taints import PoolTaintRules
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.identities import ObjectKey
from allot.api.resource import DeviceSelector
from allot.api.slices import ResourceSlice
from allot.cel import (
    CelCompileError,
    CelEvaluationError,
    Origin,
    compile_derived,
    compile_selector,
)
from allot.cel.device import split_name
from allot.lint.subjects import DEFAULT_NAMESPACE, Alternative, LintSubject

Values = tuple[tuple[PoolDevice, AttributeSet], ...]
"""Devices and their values of an attribute."""


class Failure(NamedTuple):
    """An expression that failed on a device."""

    device: PoolDevice
    selector: int
    text: str


class Selection(NamedTuple):
    """The result of selectors on devices: which they accept, and where they fail."""

    accepted: tuple[PoolDevice, ...] = ()
    failures: tuple[Failure, ...] = ()
    is_compiled: bool = True
    """Whether all selectors compile; otherwise nothing can be said about devices."""


class KnownObjects:
    """Classes, claims, templates, namespaces and devices, by name."""

    def __init__(self, *, is_live: bool = False) -> None:
        self.is_live = is_live
        """Whether the cluster was read: then an object that is missing here does not exist."""
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}
        self.templates: dict[ObjectKey, ResourceClaimTemplate] = {}
        self.namespace_labels: dict[str, Mapping[str, str]] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._taint_rules: dict[str, DeviceTaintRule] = {}
        self._class_selections: dict[str, Selection] = {}
        self._selections: dict[tuple[str, tuple[DeviceSelector, ...]], Selection | None] = {}
        self._values: dict[Hashable, Values] = {}
        self._given: set[type] = set()

    def knows_all(self, kind: type) -> bool:
        """Whether objects of this kind were given, so that a missing one is reported."""
        return self.is_live or kind in self._given

    def add(self, obj: Any) -> None:
        """One object of resource.k8s.io. An object of the same name is replaced."""
        self._given.add(type(obj))
        self._put(obj)

    def _put(self, obj: Any) -> None:
        metadata = obj.metadata
        name = metadata.name or metadata.generate_name
        key = ObjectKey(metadata.namespace or DEFAULT_NAMESPACE, name)
        match obj:
            case DeviceClass():
                self.classes[name] = obj
            case ResourceClaim():
                self.claims[key] = obj
            case ResourceClaimTemplate():
                self.templates[key] = obj
            case ResourceSlice():
                self._slices[name or f"#{len(self._slices)}"] = obj
            case DeviceTaintRule():
                self._taint_rules[name] = obj

    def add_subjects(self, subjects: Iterable[LintSubject]) -> None:
        for subject in subjects:
            manifest = subject.manifest
            if subject.object is not None:
                self.add(subject.object)
            elif manifest.kind == "Namespace" and manifest.api_version == "v1":
                metadata = manifest.data.get("metadata")
                labels = metadata.get("labels") if isinstance(metadata, dict) else None
                self.namespace_labels[manifest.name] = {
                    str(key): str(value) for key, value in (labels or {}).items()
                }

    def add_references(self, subjects: Iterable[LintSubject]) -> None:
        """Adds objects that satisfy references and are not checked otherwise."""
        for subject in subjects:
            if isinstance(subject.object, DeviceClass | ResourceClaim | ResourceClaimTemplate):
                self._put(subject.object)

    # --- devices ---

    @property
    def slices(self) -> Mapping[str, ResourceSlice]:
        """By name; slices without one have a number."""
        return self._slices

    def slices_of_pool(self, slice_: ResourceSlice) -> tuple[ResourceSlice, ...]:
        """The slices of the same pool, of its newest generation."""
        return self._slices_by_pool.get(_pool_of(slice_), ())

    @cached_property
    def _slices_by_pool(self) -> Mapping[PoolId, tuple[ResourceSlice, ...]]:
        by_pool: dict[PoolId, list[ResourceSlice]] = {}
        for slice_ in self._slices.values():
            by_pool.setdefault(_pool_of(slice_), []).append(slice_)
        newest = {
            pool: max(each.spec.pool.generation for each in slices)
            for pool, slices in by_pool.items()
        }
        return {
            pool: tuple(each for each in slices if each.spec.pool.generation == newest[pool])
            for pool, slices in by_pool.items()
        }

    @cached_property
    def devices(self) -> tuple[PoolDevice, ...]:
        """The devices of all pools, of their newest generation."""
        rules = self._taint_rules.values()
        rules_by_pool = {pool: PoolTaintRules(rules, *pool) for pool in self._slices_by_pool}
        return tuple(
            PoolDevice(slice_, device, rules_by_pool[pool])
            for pool, slices in self._slices_by_pool.items()
            for slice_ in slices
            for device in slice_.spec.devices or ()
        )

    @cached_property
    def taint_keys(self) -> frozenset[str]:
        """The keys of all taints that devices have, or that rules give to some."""
        own = {taint.key for device in self.devices for taint in device.device.taints}
        return frozenset(own | {rule.spec.taint.key for rule in self._taint_rules.values()})

    @property
    def where(self) -> str:
        """Where the objects are from, for messages."""
        return "in the cluster" if self.is_live else "in these files"

    def of_class(self, name: str) -> Selection | None:
        """The devices of a class; None if the class or all devices are unknown."""
        class_ = self.classes.get(name)
        if class_ is None or not self.devices:
            return None
        known = self._class_selections.get(name)
        if known is None:
            known = self._class_selections[name] = select(self.devices, class_.spec.selectors)
        return known

    def selected(self, alternative: Alternative) -> Selection | None:
        """The result of its selectors on the devices of its class; None if that is not known.

        None also if the class has no devices here: they are probably not among the files.
        """
        spec = alternative.spec
        key = (spec.device_class_name, spec.selectors)
        if key not in self._selections:
            of_class = self.of_class(spec.device_class_name)
            is_known = of_class is not None and of_class.is_compiled and of_class.accepted
            self._selections[key] = (
                select(of_class.accepted, spec.selectors) if of_class and is_known else None
            )
        return self._selections[key]

    def candidates(self, alternative: Alternative) -> tuple[PoolDevice, ...] | None:
        """The devices that class and selectors accept; None if that is not known."""
        selection = self.selected(alternative)
        return selection.accepted if selection is not None and selection.is_compiled else None

    def values(self, alternative: Alternative, attribute: str) -> Values:
        """The value of the attribute, for each candidate that has it, as a constraint sees it."""
        spec, expression = alternative.spec, alternative.derived(attribute)
        key = (spec.device_class_name, spec.selectors, attribute, expression)
        known = self._values.get(key)
        if known is None:
            candidates = self.candidates(alternative) or ()
            known = self._values[key] = tuple(
                _derived_values(candidates, expression)
                if expression is not None
                else _published_values(candidates, attribute)
            )
        return known

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """The attributes of all devices, with their domain."""
        return frozenset(
            "/".join(split_name(name, device.id.driver))
            for device in self.devices
            for name in device.device.attributes
        )

    @cached_property
    def capacity_names(self) -> frozenset[str]:
        """The capacities of all devices, with their domain."""
        return frozenset(
            "/".join(split_name(name, device.id.driver))
            for device in self.devices
            for name in device.device.capacity
        )


def select(devices: Iterable[PoolDevice], selectors: Iterable[DeviceSelector]) -> Selection:
    """Which devices all selectors accept, and on which devices one fails."""
    try:
        programs = [
            compile_selector(selector.cel.expression, Origin.STORED)
            for selector in selectors
            if selector.cel is not None
        ]
    except CelCompileError:
        return Selection(is_compiled=False)
    accepted, failures = [], []
    for device in devices:
        is_accepted = True
        for index, program in enumerate(programs):
            try:
                is_accepted = program.matches(device.prepared)
            except CelEvaluationError as error:
                failures.append(Failure(device, index, error.text))
                is_accepted = False
            if not is_accepted:
                break
        if is_accepted:
            accepted.append(device)
    return Selection(tuple(accepted), tuple(failures))


def _derived_values(
    devices: Iterable[PoolDevice], expression: str
) -> Iterator[tuple[PoolDevice, AttributeSet]]:
    try:
        program = compile_derived(expression, Origin.STORED)
    except CelCompileError:
        return
    for device in devices:
        try:
            yield device, attribute_set(program.attribute(device.prepared))
        except CelEvaluationError:
            continue


def _published_values(
    devices: Iterable[PoolDevice], attribute: str
) -> Iterator[tuple[PoolDevice, AttributeSet]]:
    for device in devices:
        found = published_attribute(device, attribute)
        if found is not None:
            yield device, found


def published_attribute(device: PoolDevice, attribute: str) -> AttributeSet | None:
    """The value that the device publishes under a qualified name, also if the slice omits the driver's domain."""
    attributes = device.device.attributes
    own = attributes.get(attribute)
    if own is None:
        domain, _, identifier = attribute.rpartition("/")
        own = attributes.get(identifier) if domain == device.id.driver else None
    return attribute_set(own) if own is not None else None


def _pool_of(slice_: ResourceSlice) -> PoolId:
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)
