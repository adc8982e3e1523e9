"""One device of a ResourceSlice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import astuple

from allot.api.semver import is_version_attribute
from allot.api.slices import Counter, Device, DeviceAttribute, DeviceCounterConsumption
from allot.validation.binding_conditions import validate_binding_conditions
from allot.validation.capacity_policy import validate_request_policy
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from allot.validation.formats import byte_length, is_label, label_problems, shorten_key
from allot.validation.lists import duplicates, validate_items
from allot.validation.names import (
    MAX_QUALIFIED_NAME,
    is_qualified_name,
    validate_label,
    validate_qualified_name,
    validate_subdomain,
)
from allot.validation.node_allocatable import validate_node_allocatable_resources
from allot.validation.node_selector import validate_node_selector
from allot.validation.tolerations import validate_taint

MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
MAX_ATTRIBUTE_VALUES: Final = 48
MAX_TEXT_ATTRIBUTE: Final = 64
MAX_TAINTS: Final = 16
MAX_CONSUMED_SETS: Final = 2
MAX_COUNTERS: Final = 32
MAX_COMPATIBILITY_GROUPS: Final = 2
MAX_KEY_SHOWN: Final = 96

_ALL_NODES: Final = "must be either unset or set to true"
_PER_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
    "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NOT_PER_DEVICE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set "
    "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_VALUE_FIELDS: Final = (
    ("int", "int_"),
    ("bool", "bool_"),
    ("string", "string"),
    ("version", "version"),
    ("ints", "ints"),
    ("bools", "bools"),
    ("strings", "strings"),
    ("versions", "versions"),
)
_VALUE_NAMES: Final = ", ".join(f"`{wire}`" for wire, _ in _VALUE_FIELDS)


class DeviceRules(NamedTuple):
    """Rules that follow from the slice.

    `unchanged`: an update left the whole list as it was, and declared rules skip it.
    """

    per_device_node_selection: bool
    fractional_capacity: bool
    unchanged: bool
    one_kind_of_conditions: bool


def validate_device(
    device: Device, old: Device | None, path: FieldPath, rules: DeviceRules
) -> Iterator[FieldError]:
    """A device; `old` is the stored device of the same name, if there is one."""
    if not is_label(device.name):
        yield from validate_label(device.name, path / "name")
    if device.attributes or device.capacity:
        yield from _validate_attributes_and_capacity(device, old, path, rules)
    if device.consumes_counters:
        yield from _validate_consumption(
            device.consumes_counters, path / "consumesCounters", rules.unchanged
        )
    yield from _validate_nodes(device, path, rules.per_device_node_selection)
    if device.taints and not rules.unchanged:
        # Hand-written rules skip the stored taints of a device, declared ones do not.
        stored = old is not None and old.taints == device.taints
        for error in _validate_taints(device, path / "taints"):
            if error.declared or not stored:
                yield error
    if device.binding_conditions or device.binding_failure_conditions:
        yield from validate_binding_conditions(
            device.binding_conditions or (),
            device.binding_failure_conditions,
            path,
            one_kind_is_enough=rules.one_kind_of_conditions,
        )
    if device.node_allocatable_resources:
        yield from validate_node_allocatable_resources(device, path / "nodeAllocatableResources")


# --- attributes and capacity ---


def _validate_attributes_and_capacity(
    device: Device, old: Device | None, path: FieldPath, rules: DeviceRules
) -> Iterator[FieldError]:
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_ATTRIBUTES_AND_CAPACITIES:
        yield invalid(
            path,
            count,
            "the total number of attributes and capacities must not exceed "
            f"{MAX_ATTRIBUTES_AND_CAPACITIES}",
        )
    values = 0
    before = old.attributes if old and rules.unchanged else {}
    attributes_path = path / "attributes"
    for key, attribute in device.attributes.items():
        if len(key) > MAX_QUALIFIED_NAME or not is_qualified_name(key):
            yield from validate_qualified_name(key, attributes_path)
        if _is_sound_scalar(attribute):
            values += 1
        else:
            yield from _validate_attribute(attribute, before.get(key), attributes_path, key)
            values += _count_values(attribute)
    if values > MAX_ATTRIBUTE_VALUES:
        yield invalid(
            path,
            values,
            f"the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}",
        )
    if old is None or old.capacity != device.capacity:
        yield from _validate_capacity(device, path / "capacity", rules.fractional_capacity)


def _is_sound_scalar(attribute: DeviceAttribute) -> bool:
    """A valid single value: the fast path for the common case."""
    _, _, string, version, *lists = fields = astuple(attribute)
    return (
        fields.count(None) == len(fields) - 1
        and lists.count(None) == len(lists)
        and (string is None or byte_length(string) <= MAX_TEXT_ATTRIBUTE)
        and (version is None or _is_sound_version(version))
    )


def _is_sound_version(text: str) -> bool:
    return byte_length(text) <= MAX_TEXT_ATTRIBUTE and _is_version(text)


_is_version: Final = lru_cache(maxsize=4096)(is_version_attribute)


def _count_values(attribute: DeviceAttribute) -> int:
    """How many values an attribute adds to the limit: one, or as many as its list has."""
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    return sum(len(values) for values in lists if values is not None) or 1


def _validate_attribute(
    attribute: DeviceAttribute, before: DeviceAttribute | None, path: FieldPath, key: str
) -> Iterator[FieldError]:
    set_ = _set_fields(attribute)
    if len(set_) != 1:
        yield from _wrong_number_of_values(attribute, set_, before, path @ key)
    elif astuple(attribute).count(None) != len(_VALUE_FIELDS) - 1:
        yield invalid(path @ key, attribute, "exactly one value must be specified")
    short_path = path @ shorten_key(key, MAX_KEY_SHOWN)
    if attribute.string is not None:
        yield from _validate_text(attribute.string, short_path / "string")
    if attribute.version is not None:
        yield from _validate_version(attribute.version, short_path / "version")
    for wire, name in _VALUE_FIELDS[4:]:
        if getattr(attribute, name) == ():
            yield invalid(short_path / wire, (), "must not be empty if specified")
    for index, text in enumerate(attribute.strings or ()):
        yield from _validate_text(text, short_path / "strings" @ index)
    for index, text in enumerate(attribute.versions or ()):
        yield from _validate_version(text, short_path / "versions" @ index)


def _set_fields(attribute: DeviceAttribute) -> list[str]:
    """The fields with a value. An empty list is none."""
    return [wire for wire, name in _VALUE_FIELDS if getattr(attribute, name) not in (None, ())]


def _wrong_number_of_values(
    attribute: DeviceAttribute, set_: list[str], before: DeviceAttribute | None, path: FieldPath
) -> Iterator[FieldError]:
    """The error for the number of `set_` fields, if any."""
    if before is not None and _set_fields(before) == set_:
        # An update that leaves the fields as they are is left to the hand-written rule, for which
        # an empty list is a value too.
        if astuple(attribute).count(None) != len(_VALUE_FIELDS) - 1:
            yield invalid(path, attribute, "exactly one value must be specified")
    elif not set_:
        yield invalid(path, "", f"must specify one of: {_VALUE_NAMES}", declared=True)
    else:
        shown = "{" + ", ".join(set_) + "}"
        yield invalid(path, shown, f"must specify exactly one of: {_VALUE_NAMES}", declared=True)


def _validate_text(text: str, path: FieldPath) -> Iterator[FieldError]:
    if byte_length(text) > MAX_TEXT_ATTRIBUTE:
        yield too_long(path, MAX_TEXT_ATTRIBUTE)


def _validate_version(text: str, path: FieldPath) -> Iterator[FieldError]:
    if not is_version_attribute(text):
        yield invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    yield from _validate_text(text, path)


def _validate_capacity(device: Device, path: FieldPath, fractional: bool) -> Iterator[FieldError]:
    for key, capacity in device.capacity.items():
        if len(key) > MAX_QUALIFIED_NAME or not is_qualified_name(key):
            yield from validate_qualified_name(key, path)
        policy = capacity.request_policy
        if policy is None:
            continue
        policy_path = path @ shorten_key(key, MAX_KEY_SHOWN) / "requestPolicy"
        if not device.allow_multiple_allocations:
            yield forbidden(policy_path, "allowMultipleAllocations must be true")
        else:
            yield from validate_request_policy(
                policy, capacity.value, policy_path, fractional=fractional
            )


# --- counters ---


def _validate_consumption(
    consumption: tuple[DeviceCounterConsumption, ...], path: FieldPath, stored: bool
) -> Iterator[FieldError]:
    def check(item: DeviceCounterConsumption, item_path: FieldPath) -> Iterator[FieldError]:
        yield from validate_set_name(item.counter_set, item_path / "counterSet", stored)
        yield from validate_counters(item.counters, item_path / "counters", stored)
        groups_path = item_path / "compatibilityGroups"
        yield from validate_items(
            item.compatibility_groups,
            groups_path,
            MAX_COMPATIBILITY_GROUPS,
            lambda group, group_path: validate_label(group, group_path, declared=True),
        )
        if len(item.compatibility_groups) <= MAX_COMPATIBILITY_GROUPS:
            yield from duplicates(item.compatibility_groups, groups_path, lambda group: group)

    yield from validate_items(consumption, path, MAX_CONSUMED_SETS, check)
    if len(consumption) <= MAX_CONSUMED_SETS:
        yield from duplicates(consumption, path, lambda item: item.counter_set)


def validate_set_name(name: str, path: FieldPath, stored: bool) -> Iterator[FieldError]:
    """The name of a counter set."""
    if not name:
        yield required(path, declared=not stored)
    else:
        yield from validate_label(name, path, declared=not stored)


def validate_counters(
    counters: Mapping[str, Counter], path: FieldPath, stored: bool
) -> Iterator[FieldError]:
    """At least one counter, not too many, each with a label for a name. Amounts are free."""
    if not counters:
        yield required(path, declared=not stored)
    elif len(counters) > MAX_COUNTERS:
        yield too_many(path, len(counters), MAX_COUNTERS)
        if stored:
            return
    unit = "characters" if stored else "bytes"
    for name in counters:
        for problem in label_problems(name, unit):
            yield invalid(path, name, problem, declared=not stored)


# --- nodes and taints ---


def _validate_nodes(device: Device, path: FieldPath, per_device: bool) -> Iterator[FieldError]:
    if not per_device:
        if not (
            device.node_name is None and device.node_selector is None and device.all_nodes is None
        ):
            yield invalid(path, None, _NOT_PER_DEVICE)
        return
    set_ = []
    if device.node_name is not None:
        if device.node_name:
            set_.append("`nodeName`")
            yield from validate_subdomain(device.node_name, path / "nodeName")
        else:
            yield invalid(path / "nodeName", "", "must not be empty")
    if device.node_selector is not None:
        set_.append("`nodeSelector`")
        yield from validate_node_selector(device.node_selector, path / "nodeSelector")
    if device.all_nodes is not None:
        if device.all_nodes:
            set_.append("`allNodes`")
        else:
            yield invalid(path / "allNodes", False, _ALL_NODES)
    if not set_:
        yield required(path, _PER_DEVICE)
    elif len(set_) > 1:
        yield invalid(path, "{" + ", ".join(set_) + "}", _PER_DEVICE)


def _validate_taints(device: Device, path: FieldPath) -> Iterator[FieldError]:
    if len(device.taints) > MAX_TAINTS:
        yield too_many(path, len(device.taints), MAX_TAINTS)
        return
    for index, taint in enumerate(device.taints):
        yield from validate_taint(taint, path @ index)
