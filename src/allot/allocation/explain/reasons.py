"""Reasons as values: which rule refuses a device, and the values that decided.

`refusals` makes them from the rules that decide, `wording` turns them into text. Every reason is hashable, so that
devices with the same reason can be told together, and is written to JSON with its class name as `kind`.
"""

from __future__ import annotations

from allot.api.base import ApiObject, always
from allot.api.quantity import Quantity


def nothing() -> tuple[()]:
    """An empty list that is written all the same, so that documents have one shape."""
    return ()


class TypedValue(ApiObject, frozen=True):
    """A value of a device and its type, because `"0"` and `0` differ."""

    value: str = always(str)
    type: str = always(str)
    """`string`, `int`, `bool`, `version`, `quantity`, or one of them with `[]`; empty if it is not set."""


class ReadValue(ApiObject, frozen=True):
    """What an expression read of a device."""

    name: str = always(str)
    value: TypedValue = always(TypedValue)


class DeviceValue(ApiObject, frozen=True):
    """The value of another device under the same constraint."""

    device: str = always(str)
    value: TypedValue = always(TypedValue)


class Reason(ApiObject, frozen=True, tag_field="kind", tag=True):
    """Why a device is refused."""

    @property
    def is_wrong_class(self) -> bool:
        """Whether the device is not of the class that is asked for, so that it is of no interest."""
        return False

    @property
    def is_unsuitable(self) -> bool:
        """Whether the device is not of the kind that the request selects, in use or not."""
        return False


class Held(Reason, frozen=True):
    """Other claims hold the device."""

    claims: tuple[str, ...] = always(nothing)
    """As `namespace/name`."""
    shares: bool = False
    """Whether they hold shares of a device that may not be shared any more."""


class RecentlyFailed(Reason, frozen=True):
    """The device could not be bound for this pod, and is avoided for a while (KEP-5007)."""


class TakenByRequest(Reason, frozen=True):
    """Another request that is satisfied before gets the device."""

    claim: str = always(str)
    request: str = always(str)


class TakenBySameRequest(Reason, frozen=True):
    """The request has the device, or a share of it, already; it never gets one device twice."""


class NotSelected(Reason, frozen=True):
    """A selector is false."""

    expression: str = always(str)
    selector: int = always(int)
    """Its index in the class or the request."""
    class_name: str = ""
    """The class that the selector belongs to; empty if it is the request's own."""
    claim: str = ""
    values: tuple[ReadValue, ...] = always(nothing)

    @property
    def is_wrong_class(self) -> bool:
        return bool(self.class_name)

    @property
    def is_unsuitable(self) -> bool:
        return True


class ExpressionFailed(Reason, frozen=True):
    """A selector or a derived attribute ends in an error on a device."""

    expression: str = always(str)
    cause: str = always(str)
    selector: int | None = None
    class_name: str = ""
    derived_attribute: str = ""
    missing: tuple[str, ...] = always(nothing)
    """What the expression reads and the device does not have, as `domain/name`."""
    similar: tuple[str, ...] = ()
    """Names that the device does have, and that may be meant."""


class NotDecidable(Reason, frozen=True):
    """Whether the device can be had cannot be decided, such as for an expression that does not compile."""

    problem: str = always(str)


class OtherNodes(Reason, frozen=True):
    """The device is for other nodes."""

    @property
    def is_unsuitable(self) -> bool:
        return True


class BindingConditionsDisabled(Reason, frozen=True):
    """The device has binding conditions, and the feature is disabled."""


class NoSuchCapacity(Reason, frozen=True):
    """The device does not have a capacity that is requested."""

    capacity: str = always(str)
    requested: str = always(str)
    similar: str = ""
    """A name that the device does have, and that may be meant."""


class NotEligible(Reason, frozen=True):
    """What the request would consume of the device cannot be computed."""

    problem: str = always(str)


class AmountNotAllowed(Reason, frozen=True):
    """The device's request policy does not allow the amount."""

    requested: tuple[tuple[str, str], ...] = always(nothing)
    """Capacities and amounts; empty if the default is what is not allowed."""
    allowed: tuple[tuple[str, str], ...] = always(nothing)


class InsufficientCapacity(Reason, frozen=True):
    """Too little of a capacity is left."""

    capacity: str = always(str)
    requested: Quantity | None = None
    needed: Quantity = always(lambda: Quantity.of(0))
    """What is requested, rounded by the device's request policy."""
    left: Quantity = always(lambda: Quantity.of(0))
    total: Quantity = always(lambda: Quantity.of(0))


class NodeOperations(Reason, frozen=True):
    """The driver wants operations skipped that the node cannot do without."""

    operations: tuple[str, ...] = always(nothing)


class CountersDisabled(Reason, frozen=True):
    """The device consumes counters, and partitionable devices are disabled."""


class IncompatibleGroups(Reason, frozen=True):
    """The device's compatibility groups exclude devices that are in use."""


class InsufficientCounter(Reason, frozen=True):
    """Too little of a counter is left."""

    counter_set: str = always(str)
    counter: str = always(str)
    needed: Quantity = always(lambda: Quantity.of(0))
    left: Quantity = always(lambda: Quantity.of(0))
    total: Quantity = always(lambda: Quantity.of(0))


class Tainted(Reason, frozen=True):
    """The request does not tolerate a taint of the device."""

    key: str = always(str)
    value: str = always(str)
    effect: str = always(str)


class NoAttribute(Reason, frozen=True):
    """The device does not have the attribute of a constraint."""

    attribute: str = always(str)
    must_match: bool = always(bool)
    """Or else be distinct."""


class ConstraintUnmet(Reason, frozen=True):
    """The device's value does not go with those of the devices under the same constraint."""

    attribute: str = always(str)
    must_match: bool = always(bool)
    value: TypedValue = always(TypedValue)
    others: tuple[DeviceValue, ...] = always(nothing)


AnyReason = (
    Held
    | RecentlyFailed
    | TakenByRequest
    | TakenBySameRequest
    | NotSelected
    | ExpressionFailed
    | NotDecidable
    | OtherNodes
    | BindingConditionsDisabled
    | NoSuchCapacity
    | NotEligible
    | AmountNotAllowed
    | InsufficientCapacity
    | NodeOperations
    | CountersDisabled
    | IncompatibleGroups
    | InsufficientCounter
    | Tainted
    | NoAttribute
    | ConstraintUnmet
)
