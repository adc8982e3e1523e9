"""Devices in the form in which expressions read them, prepared once for many evaluations.

Every part of a device that an expression may read has a *token*. A program gives the same answer for
two devices with equal tokens for the parts it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from allot.api.quantity import Quantity
from allot.api.semver import Semver, SemverError
from allot.cel.values import DomainMap, Value

Place = tuple[str, ...]
"""A part of a device: `("driver",)`, `("attributes", domain, id)`, or a whole map of them.

An empty id stands for whether the domain has any entry.
"""


Part = tuple[str, Value]
"""The kind and value of a part of a device."""
_SOMETHING: Final[Part] = ("domain", True)


class Attribute(Protocol):
    """An attribute's value: the one field that is set. If several are, lists come first."""

    @property
    def int_(self) -> int | None: ...
    @property
    def bool_(self) -> bool | None: ...
    @property
    def string(self) -> str | None: ...
    @property
    def version(self) -> str | None: ...
    @property
    def ints(self) -> Iterable[int] | None: ...
    @property
    def bools(self) -> Iterable[bool] | None: ...
    @property
    def strings(self) -> Iterable[str] | None: ...
    @property
    def versions(self) -> Iterable[str] | None: ...


class Capacity(Protocol):
    """A capacity: how much of something the device has."""

    @property
    def value(self) -> Quantity: ...


class AttributeValue(NamedTuple):
    """An attribute, for callers that have no API object: `AttributeValue(string="A100")`."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CelDevice:
    """A device in the form in which expressions read it. Immutable.

    Tokens are computed when a program first reads their part.
    """

    __slots__ = ("_parts", "_tokens", "device", "error", "variables")

    def __init__(
        self, device: Mapping[str, Value], parts: Mapping[Place, Part], error: str | None
    ) -> None:
        self.device = device
        self.variables: Mapping[str, Value] = {"device": device}
        self.error = error
        """The error of every evaluation on this device, if it has an invalid attribute."""
        self._parts = parts
        self._tokens: dict[Place, Hashable] = {}

    def fingerprint(self, places: Iterable[Place]) -> Hashable:
        """The tokens of `places`: equal for devices that a program reading only these cannot distinguish."""
        token = self._tokens.get
        return tuple([token(place) or self._token(place) for place in places])

    def _token(self, place: Place) -> Hashable:
        """The token of a part, or of a whole map of them; None if the part is missing."""
        part = self._parts.get(place)
        if part is not None:
            token: Hashable = (part[0], _token(part[1]))
        elif len(place) == 3:
            return None
        else:
            within = [key for key in self._parts if key[: len(place)] == place]
            token = frozenset((key, self._tokens.get(key) or self._token(key)) for key in within)
        self._tokens[place] = token
        return token


def cel_device(
    driver: str,
    name: str,
    attributes: Mapping[str, Attribute],
    capacity: Mapping[str, Capacity],
    allow_multiple_allocations: bool | None = None,
) -> CelDevice:
    """The device, ready for evaluation. A broken attribute is reported by every evaluation."""
    error: str | None = None
    parts: dict[Place, Part] = {}
    attribute_values = DomainMap()
    for qualified_name in sorted(attributes):
        domain, identifier = split_name(qualified_name, driver)
        try:
            kind, value = _attribute_value(attributes[qualified_name])
        except ValueError as problem:
            error = error or f"attribute {qualified_name}: {problem}"
            continue
        attribute_values.setdefault(domain, {})[identifier] = value
        parts["attributes", domain, identifier] = (kind, value)
        parts["attributes", domain, ""] = _SOMETHING
    capacity_values = DomainMap()
    for qualified_name in sorted(capacity):
        domain, identifier = split_name(qualified_name, driver)
        quantity = capacity[qualified_name].value
        capacity_values.setdefault(domain, {})[identifier] = quantity
        parts["capacity", domain, identifier] = ("quantity", quantity)
        parts["capacity", domain, ""] = _SOMETHING
    shared = bool(allow_multiple_allocations)
    parts["driver",] = ("string", driver)
    parts["name",] = ("string", name)
    parts["allowMultipleAllocations",] = ("bool", shared)
    device: dict[str, Value] = {
        "driver": driver,
        "name": name,
        "attributes": attribute_values,
        "capacity": capacity_values,
        "allowMultipleAllocations": shared,
    }
    return CelDevice(device, parts, error)


def split_name(qualified_name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier; a bare name belongs to the driver's domain."""
    domain, slash, identifier = qualified_name.partition("/")
    return (domain, identifier) if slash else (driver, qualified_name)


_UNSUPPORTED: Final = "unsupported attribute value"


def _attribute_value(attribute: Attribute) -> tuple[str, Value]:
    if attribute.ints is not None:
        return "ints", list(attribute.ints)
    if attribute.bools is not None:
        return "bools", list(attribute.bools)
    if attribute.strings is not None:
        return "strings", list(attribute.strings)
    if attribute.versions is not None:
        return "versions", [_version(text) for text in attribute.versions]
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.version is not None:
        return "version", _version(attribute.version)
    raise ValueError(_UNSUPPORTED)


def _version(text: str) -> Semver:
    try:
        return Semver.parse(text)
    except SemverError as error:
        raise ValueError(f"parse semantic version: {error}") from None


def _token(value: Value) -> Hashable:
    """Different for any two values that an expression can distinguish."""
    if isinstance(value, list):
        return tuple(map(_token, value))
    if isinstance(value, Semver):
        return str(value)
    if isinstance(value, Quantity):
        return str(value), value.decimal_text(), value.as_int64()
    return value
