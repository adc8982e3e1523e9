"""Reasons as values: which rule refuses a device, and the values behind it.

`refusals` creates them, `wording` turns them into messages. Reasons are hashable, so that devices with the same reason
can be grouped, and are written to JSON with their class name as `kind`.
"""

from __future__ import annotations

from allot.api.base import ApiObject, always
from allot.api.quantity import Quantity


def nothing() -> tuple[()]:
    """An empty list that is written to JSON all the same."""
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


class RefusalReason(ApiObject, frozen=True, tag_field="kind", tag=True):
    """Why a device is refused."""

    @property
    def is_wrong_class(self) -> bool:
        """Whether the device is not of the requested class."""
        return False

    @property
    def is_unsuitable(self) -> bool:
        """Whether the request does not select the device, in use or not."""
        return False


class Held(RefusalReason, frozen=True):
    """Other claims hold the device."""

    claims: tuple[str, ...] = always(nothing)
    """As `namespace/name`."""
    shares: bool = False
    """Whether they hold shares of a device that is not shareable any more."""


class RecentlyFailed(RefusalReason, frozen=True):
    """The device could not be bound for this pod, and is avoided for a while (KEP-5007)."""


class TakenByRequest(RefusalReason, frozen=True):
    """An earlier request gets the device."""

    claim: str = always(str)
    request: str = always(str)


class TakenBySameRequest(RefusalReason, frozen=True):
    """The request has the device, or a share of it, already; it cannot get a device twice."""


class NotSelected(RefusalReason, frozen=True):
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


class ExpressionFailed(RefusalReason, frozen=True):
    """A selector or a derived attribute ends in an error on a device."""

    expression: str = always(str)
    cause: str = always(str)
    selector: int | None = None
    class_name: str = ""
    derived_attribute: str = ""
    missing: tuple[str, ...] = always(nothing)
    """What the expression reads and the device does not have, as `domain/name`."""
    similar: tuple[str, ...] = ()
    """Similar names that the device has."""


class NotDecidable(RefusalReason, frozen=True):
    """Whether the device fits cannot be decided, such as for an expression that does not compile."""

    problem: str = always(str)


class OtherNodes(RefusalReason, frozen=True):
    """The device is for other nodes."""

    @property
    def is_unsuitable(self) -> bool:
        return True


class BindingConditionsDisabled(RefusalReason, frozen=True):
    """The device has binding conditions, and the feature is disabled."""


class NoSuchCapacity(RefusalReason, frozen=True):
    """The device does not have a capacity that is requested."""

    capacity: str = always(str)
    requested: str = always(str)
    similar: str = ""
    """A similar name that the device has."""


class NotEligible(RefusalReason, frozen=True):
    """The request's consumption of the device cannot be computed."""

    problem: str = always(str)


class AmountNotAllowed(RefusalReason, frozen=True):
    """The device's request policy does not allow the amount."""

    requested: tuple[tuple[str, str], ...] = always(nothing)
    """Capacities and amounts; empty if the default is what is not allowed."""
    allowed: tuple[tuple[str, str], ...] = always(nothing)


class InsufficientCapacity(RefusalReason, frozen=True):
    """Too little of a capacity is left."""

    capacity: str = always(str)
    requested: Quantity | None = None
    needed: Quantity = always(lambda: Quantity.of(0))
    """What is requested, rounded by the device's request policy."""
    left: Quantity = always(lambda: Quantity.of(0))
    total: Quantity = always(lambda: Quantity.of(0))


class NodeOperations(RefusalReason, frozen=True):
    """The driver wants operations skipped that the node cannot skip."""

    operations: tuple[str, ...] = always(nothing)


class CountersDisabled(RefusalReason, frozen=True):
    """The device consumes counters, and partitionable devices are disabled."""


class IncompatibleGroups(RefusalReason, frozen=True):
    """The device's compatibility groups exclude devices that are in use."""


class InsufficientCounter(RefusalReason, frozen=True):
    """Too little of a counter is left."""

    counter_set: str = always(str)
    counter: str = always(str)
    needed: Quantity = always(lambda: Quantity.of(0))
    left: Quantity = always(lambda: Quantity.of(0))
    total: Quantity = always(lambda: Quantity.of(0))


class Tainted(RefusalReason, frozen=True):
    """The request does not tolerate a taint of the device."""

    key: str = always(str)
    value: str = always(str)
    effect: str = always(str)
    rule: str = always(str)
    """The DeviceTaintRule that adds the taint; empty if the driver publishes it."""


class NoAttribute(RefusalReason, frozen=True):
    """The device does not have the attribute of a constraint."""

    attribute: str = always(str)
    must_match: bool = always(bool)
    """Or else be distinct."""


class ConstraintUnmet(RefusalReason, frozen=True):
    """The device's value conflicts with those of other devices under the same constraint."""

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
