"""Devices as values: what a driver publishes, and the claims that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.semver import Semver
from allot.api.slices import Device as ApiDevice
from allot.cel import AttributeValue, CelDevice, cel_device
from allot.cel.device import Attribute as PublishedAttribute

AttributeScalar = bool | int | str | Semver
"""The value of an attribute. Versions are `Semver`, so that they differ from strings."""
Attribute = AttributeScalar | tuple[AttributeScalar, ...]


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class _Capacity(NamedTuple):
    value: Quantity


class Device:
    """A device of a snapshot, or created to try an expression. Immutable.

    `Device("gpu-0", driver="gpu.example.com", attributes={"model": "A100"}, capacity={"memory": "80Gi"})`
    """

    def __init__(
        self,
        name: str,
        *,
        driver: str = "",
        pool: str = "",
        attributes: Mapping[str, Attribute] = _NOTHING,
        capacity: Mapping[str, Quantity | str] = _NOTHING,
        taints: Iterable[str] = (),
        shared: bool = False,
        holders: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.driver = driver
        self.pool = pool
        self.attributes: Mapping[str, Attribute] = MappingProxyType(dict(attributes))
        """By name, as published: `model`, or `dra.example.com/model`."""
        self.capacity: Mapping[str, Quantity] = MappingProxyType(
            {name: _quantity(amount) for name, amount in capacity.items()}
        )
        self.taints = tuple(taints)
        """As `key=value:effect`; taints of DeviceTaintRules are in `NodeSnapshot.devices`."""
        self.shared = shared
        """Whether several claims can hold shares of it (KEP-5075)."""
        self.holders = tuple(holders)
        """Claims that hold it or shares of it, as `namespace/name`."""

    @property
    def id(self) -> DeviceId:
        """Driver, pool and name: unique in a cluster."""
        return DeviceId(self.driver, self.pool, self.name)

    @property
    def is_free(self) -> bool:
        """Whether no claim holds it, nor a share of it."""
        return not self.holders

    @cached_property
    def _prepared(self) -> CelDevice:
        """The form in which expressions read it."""
        return cel_device(
            self.driver,
            self.name,
            {name: _attribute_value(value) for name, value in self.attributes.items()},
            {name: _Capacity(amount) for name, amount in self.capacity.items()},
            self.shared or None,
        )

    def _values(self) -> tuple[object, ...]:
        return (self.id, self.attributes, self.capacity, self.taints, self.shared, self.holders)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return str(self.id) if self.pool else self.name

    def __repr__(self) -> str:
        held = f", held by {', '.join(self.holders)}" if self.holders else ""
        return f"<Device {self}{held}>"


def device_of(
    device: ApiDevice, id_: DeviceId, taints: Iterable[DeviceTaint], holders: Iterable[str]
) -> Device:
    """The value for a published device."""
    return Device(
        device.name,
        driver=id_.driver,
        pool=id_.pool,
        attributes={name: plain_value(each) for name, each in sorted(device.attributes.items())},
        capacity={name: each.value for name, each in sorted(device.capacity.items())},
        taints=map(_taint_text, taints),
        shared=device.allow_multiple_allocations is True,
        holders=holders,
    )


def _quantity(amount: Quantity | str) -> Quantity:
    return amount if isinstance(amount, Quantity) else Quantity.parse(amount)


def _taint_text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def plain_value(attribute: PublishedAttribute) -> Attribute:
    """The value that is set; an empty string for an invalid attribute without one."""
    for scalar in (attribute.bool_, attribute.int_, attribute.string):
        if scalar is not None:
            return scalar
    if attribute.version is not None:
        return _version(attribute.version)
    if attribute.versions is not None:
        return tuple(map(_version, attribute.versions))
    for values in (attribute.bools, attribute.ints, attribute.strings):
        if values is not None:
            return tuple(values)
    return ""


def _version(text: str) -> AttributeScalar:
    try:
        return Semver.parse(text)
    except ValueError:
        return text


def _attribute_value(value: Attribute) -> AttributeValue:
    match value:
        case bool():
            return AttributeValue(bool_=value)
        case int():
            return AttributeValue(int_=value)
        case str():
            return AttributeValue(string=value)
        case Semver():
            return AttributeValue(version=str(value))
    if all(isinstance(each, bool) for each in value):
        return AttributeValue(bools=tuple(map(bool, value)))
    if all(isinstance(each, int) for each in value):
        return AttributeValue(ints=tuple(int(each) for each in value if isinstance(each, int)))
    if all(isinstance(each, Semver) for each in value):
        return AttributeValue(versions=tuple(map(str, value)))
    return AttributeValue(strings=tuple(map(str, value)))
