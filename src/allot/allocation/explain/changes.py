"""Changes that may make claims fit, as values. `proposals` verifies them, `wording` words them."""

from __future__ import annotations

from allot.api.base import ApiObject, always


class ProposedChange(ApiObject, frozen=True, tag_field="kind", tag=True):
    """One change to a claim or to the devices."""


class FewerDevices(ProposedChange, frozen=True):
    """A request asks for fewer devices."""

    claim: str = always(str)
    request: str = always(str)
    count: int = always(int)
    instead_of: int = always(int)


class CountInsteadOfAll(ProposedChange, frozen=True):
    """A request asks for a number of devices instead of all."""

    claim: str = always(str)
    request: str = always(str)
    count: int = always(int)


class OtherClass(ProposedChange, frozen=True):
    """A request asks for a class with a similar name, because its own does not exist."""

    claim: str = always(str)
    request: str = always(str)
    class_name: str = always(str)
    instead_of: str = always(str)


class LessCapacity(ProposedChange, frozen=True):
    """A request asks for less of a capacity."""

    claim: str = always(str)
    request: str = always(str)
    capacity: str = always(str)
    amount: str = always(str)
    instead_of: str = always(str)


class OtherCapacityName(ProposedChange, frozen=True):
    """A request spells a capacity as devices publish it."""

    claim: str = always(str)
    request: str = always(str)
    name: str = always(str)
    instead_of: str = always(str)


class ConvertedAttribute(ProposedChange, frozen=True):
    """A derived attribute is converted to the type that it is compared with."""

    claim: str = always(str)
    request: str = always(str)
    attribute: str = always(str)
    function: str = always(str)
    """`int` or `string`."""
    expression: str = always(str)
    """The expression with the conversion."""


class DerivedLikewise(ProposedChange, frozen=True):
    """A request derives an attribute with the expression of another request of the claim."""

    claim: str = always(str)
    request: str = always(str)
    attribute: str = always(str)
    like: str = always(str)
    """The other request."""
    expression: str = always(str)


class WithoutRequest(ProposedChange, frozen=True):
    """A claim does without a request; one that has no other is removed."""

    claim: str = always(str)
    request: str = always(str)
    is_whole_claim: bool = always(bool)


class OtherConstraintAttribute(ProposedChange, frozen=True):
    """A constraint names an attribute with a similar name, because no device has its own."""

    claim: str = always(str)
    constraint: int = always(int)
    attribute: str = always(str)
    instead_of: str = always(str)


class WithoutConstraint(ProposedChange, frozen=True):
    """A constraint of a claim is removed."""

    claim: str = always(str)
    constraint: int = always(int)
    attribute: str = always(str)
    must_match: bool = always(bool)


class WithoutSelector(ProposedChange, frozen=True):
    """A selector of a request is removed."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    expression: str = always(str)


class OtherAttribute(ProposedChange, frozen=True):
    """An expression reads an attribute or capacity with a similar name."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    name: str = always(str)
    instead_of: str = always(str)
    expression: str = always(str)
    """The expression with the other name."""
    class_name: str = ""
    """The class whose selector it is; empty for one of the request."""
    derived_attribute: str = ""
    """The derived attribute whose expression it is; empty for a selector."""


class GuardedSelector(ProposedChange, frozen=True):
    """A selector checks first whether a device has what it reads."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    guard: str = always(str)
    class_name: str = ""
    """The class whose selector it is; empty for one of the request."""
    needs_parentheses: bool = False
    """Whether the selector must be put in parentheses, because && binds stronger than its operators."""


class AddToleration(ProposedChange, frozen=True, tag="Toleration"):
    """A request tolerates a taint."""

    claim: str = always(str)
    request: str = always(str)
    key: str = always(str)
    effect: str = always(str)


class AddTolerations(ProposedChange, frozen=True):
    """A request tolerates several taints of one device."""

    claim: str = always(str)
    request: str = always(str)
    taints: tuple[str, ...] = always(tuple)
    """As `key:effect`."""


class EnableFeature(ProposedChange, frozen=True):
    """A feature gate is switched on."""

    gate: str = always(str)


class OnlyAlternative(ProposedChange, frozen=True):
    """A request keeps one alternative only, which helps if another one ends in an error."""

    claim: str = always(str)
    request: str = always(str)
    alternative: str = always(str)


class ReleaseClaim(ProposedChange, frozen=True, tag="Release"):
    """A claim releases its devices."""

    claim: str = always(str)


class MoreDevices(ProposedChange, frozen=True):
    """The node gets more devices like an existing one: free, unpartitioned and with its taints."""

    number: int = always(int)
    device: str = always(str)
    pool: str = always(str)
    driver: str = always(str)
    node: str = always(str)


AnyChange = (
    FewerDevices
    | CountInsteadOfAll
    | OtherClass
    | LessCapacity
    | OtherCapacityName
    | ConvertedAttribute
    | DerivedLikewise
    | WithoutRequest
    | OtherConstraintAttribute
    | WithoutConstraint
    | WithoutSelector
    | OtherAttribute
    | GuardedSelector
    | AddToleration
    | AddTolerations
    | EnableFeature
    | OnlyAlternative
    | ReleaseClaim
    | MoreDevices
)
