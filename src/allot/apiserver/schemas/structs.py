"""Types of the DRA kinds, read off the structs in `allot.api`, so that the two cannot disagree.

What a struct cannot express is in tables here: which fields clients must send, and the types of lists.
Types of meta/v1 and core/v1 that these kinds use are described in the tables of raw kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import FieldInfo, fields

from allot.api.base import GoName
from allot.api.identities import GroupVersionKind
from allot.api.pool_status import DEFAULT_LIMIT
from allot.api.quantity import Quantity
from allot.api.resource import (
    ALL,
    EQUAL,
    EXACT_COUNT,
    EXISTS,
    FROM_CLAIM,
    FROM_CLASS,
    GROUP,
    NO_EFFECT,
    NO_EXECUTE,
    NO_SCHEDULE,
)
from allot.api.scheme import KINDS, version_of
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.tables import META, list_of, of_kind, package_of
from allot.validation.node_operations import OPERATIONS

PACKAGE: Final = "io.k8s.api.resource"
_CORE_TYPES: Final = frozenset({"NodeSelector", "NodeSelectorTerm", "NodeSelectorRequirement"})


@cache
def versions() -> tuple[str, ...]:
    """All versions any DRA kind is served in."""
    return tuple(dict.fromkeys(version for kind in KINDS.values() for version in kind.versions))


def types_in(version: str) -> dict[str, Type]:
    """All types of resource.k8s.io in a version by their names within it; none in unknown versions."""
    return _read(version) if version in versions() else {}


@cache
def _read(version: str) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for name, cls in structs_in(version).items():
        types[name] = _type(cls, version)
    for kind in KINDS.values():
        if version not in kind.versions:
            continue
        gvk = GroupVersionKind(GROUP, version, kind.name)
        types[kind.name] = of_kind(types[kind.name], gvk)
        types[f"{kind.name}List"] = list_of(types[kind.name].name, gvk)
    return types


def structs_in(version: str) -> dict[str, type[Struct]]:
    """The struct behind each type of a version."""
    return {
        cls.__name__: cls
        for kind in KINDS.values()
        if version in kind.versions
        for cls in _reachable(version_of(kind, version).cls)
    }


def _reachable(cls: type[Struct]) -> Iterator[type[Struct]]:
    """The struct itself and all of this group that it contains."""
    found = [cls]
    for struct in found:
        yield struct
        for hint in _hints(struct).values():
            inner = _innermost(hint)
            if _is_ours(inner) and inner not in found:
                found.append(inner)


@cache
def _hints(cls: type[Struct]) -> Mapping[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _innermost(hint: Any) -> Any:
    arguments = [argument for argument in get_args(hint) if argument not in (type(None), ...)]
    if not arguments:
        return hint
    return _innermost(arguments[1] if get_origin(hint) is dict else arguments[0])


def _is_ours(hint: Any) -> bool:
    """Whether it is a struct of this group, and not one of those that all groups share."""
    return (
        isinstance(hint, type) and issubclass(hint, Struct) and hint.__module__ != "allot.api.meta"
    )


def _type(cls: type[Struct], version: str) -> Type:
    made = {info.encode_name: _field(cls, info, version) for info in fields(cls)}
    return Type(f"{PACKAGE}.{version}.{cls.__name__}", dict(sorted(made.items())))


def _field(cls: type[Struct], info: FieldInfo, version: str) -> Field:
    place = f"{cls.__name__}.{info.encode_name}"
    field = _shape(_hints(cls)[info.name], version)
    if field.container == "list":
        list_type, *keys = LIST_TYPES.get(place, ("atomic",))
        field = field._replace(list_type=list_type, list_map_keys=tuple(keys))
    if place in MERGED:
        field = field._replace(patch_strategy="merge", merge_key=MERGED[place])
    required = place in REQUIRED or (info.default is NODEFAULT and place not in OPTIONAL)
    default = DEFAULTS[place] if place in DEFAULTS else _default(field, info)
    return field._replace(required=required, default=default)


def _default(field: Field, info: FieldInfo) -> Any:
    if field.container or info.default is None or info.default_factory is NODEFAULT:
        return None
    assert callable(info.default_factory)
    if field.is_type:
        return {}
    value = info.default_factory()
    return value if isinstance(value, str | int | bool) else None


def _shape(hint: Any, version: str) -> Field:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        names = [extra.name for extra in hint.__metadata__ if isinstance(extra, GoName)]
        field = _shape(arguments[0], version)
        return _named(field, names[0]) if names else field
    if origin in (Union, UnionType):
        return _shape(
            next(argument for argument in arguments if argument is not type(None)), version
        )
    if origin is tuple:
        return _shape(arguments[0], version)._replace(container="list")
    if origin is dict:
        return _shape(arguments[1], version)._replace(container="map")
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Field(_type_name(hint, version))
    return _SCALARS[hint]


def _named(field: Field, go_name: str) -> Field:
    if field.type == "integer":
        return field._replace(format=go_name)
    return field._replace(enum=ENUMS.get(go_name, ()))


def _type_name(cls: type[Struct], version: str) -> str:
    if _is_ours(cls):
        return f"{PACKAGE}.{version}.{cls.__name__}"
    package = package_of("", "v1") if cls.__name__ in _CORE_TYPES else META
    return f"{package}.{cls.__name__}"


_SCALARS: Final[Mapping[Any, Field]] = {
    str: Field("string"),
    int: Field("integer", format="int64"),
    bool: Field("boolean"),
    datetime: Field("time", format="date-time"),
    Quantity: Field("quantity"),
    Raw: Field("any", format="RawExtension"),
}

# --- what the structs do not say ---

ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "{v}.DeviceAllocationMode": (ALL, EXACT_COUNT),
    "{v}.AllocationConfigSource": (FROM_CLAIM, FROM_CLASS),
    "{v}.DeviceTaintEffect": (NO_EXECUTE, NO_SCHEDULE, NO_EFFECT),
    "{v}.DeviceTolerationOperator": (EQUAL, EXISTS),
    "{v}.NodeOperation": OPERATIONS,
}
"""The values of string types, by what Go calls the type."""

LIST_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "AllocatedDeviceStatus.conditions": ("map", "type"),
    "DeviceRequest.derivedAttributes": ("map", "name"),
    "DeviceRequestAllocationResult.skipNodeOperations": ("set",),
    "DeviceSubRequest.derivedAttributes": ("map", "name"),
    "DeviceTaintRuleStatus.conditions": ("map", "type"),
    "ExactDeviceRequest.derivedAttributes": ("map", "name"),
    "ResourceClaimStatus.devices": ("map", "driver", "device", "pool", "shareID"),
    "ResourceClaimStatus.reservedFor": ("map", "uid"),
    "ResourcePoolStatusRequestStatus.conditions": ("map", "type"),
    "ResourceSliceSpec.skipNodeOperations": ("set",),
}
"""List types other than atomic, with the keys of maps."""

MERGED: Final[Mapping[str, str]] = {
    "DeviceTaintRuleStatus.conditions": "type",
    "ResourceClaimStatus.reservedFor": "uid",
    "ResourcePoolStatusRequestStatus.conditions": "type",
}
"""Lists that strategic merge patches merge, and by which field."""

REQUIRED: Final = frozenset(
    {
        "CapacityRequestPolicyRange.min",
        "PartitionTypeStatus.allocatable",
        "PartitionTypeStatus.total",
        "ResourcePoolStatusRequestStatus.poolCount",
        "ShareableCapacityStatus.available",
        "ShareableCapacityStatus.consumed",
        "ShareableCapacityStatus.total",
        "ShareableSummaryStatus.fullyAvailableDevices",
        "ShareableSummaryStatus.partiallyAvailableDevices",
    }
)
"""Fields clients must send although the struct knows them as unset."""

OPTIONAL: Final = frozenset(
    {
        "AllocationResult.devices",
        "BasicDevice.attributes",
        "BasicDevice.capacity",
        "BasicDevice.nodeAllocatableResources",
        "CapacityRequestPolicy.default",
        "CapacityRequirements.requests",
        "Device.attributes",
        "Device.capacity",
        "Device.nodeAllocatableResources",
        "DeviceClass.metadata",
        "DeviceClass.spec",
        "DeviceRequest.deviceClassName",
        "DeviceRequestAllocationResult.consumedCapacity",
        "DeviceTaintRule.metadata",
        "DeviceTaintRule.status",
        "ResourceClaim.metadata",
        "ResourceClaim.spec",
        "ResourceClaim.status",
        "ResourceClaimSpec.devices",
        "ResourceClaimTemplate.metadata",
        "ResourceClaimTemplate.spec",
        "ResourceClaimTemplateSpec.metadata",
        "ResourceClaimTemplateSpec.spec",
        "ResourceSlice.metadata",
    }
)
"""Fields that need not be sent although the struct always writes them."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "DeviceToleration.operator": EQUAL,
    "ResourcePoolStatusRequestSpec.limit": DEFAULT_LIMIT,
    "PartitionTypeStatus.attribute": None,
    "PartitionTypeStatus.type": None,
    "PoolStatus.driver": None,
    "PoolStatus.poolName": None,
    "ShareableCapacityStatus.name": None,
}
"""Where the default is not what an empty object has."""
