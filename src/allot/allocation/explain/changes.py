"""Changes that may make claims fit, as values. `proposals` tries them, `wording` says them."""

from __future__ import annotations

from allot.api.base import ApiObject, always


class Change(ApiObject, frozen=True, tag_field="kind", tag=True):
    """One thing that would be different."""


class FewerDevices(Change, frozen=True):
    """A request asks for fewer devices."""

    claim: str = always(str)
    request: str = always(str)
    count: int = always(int)
    instead_of: int = always(int)


class LessCapacity(Change, frozen=True):
    """A request asks for less of a capacity."""

    claim: str = always(str)
    request: str = always(str)
    capacity: str = always(str)
    amount: str = always(str)
    instead_of: str = always(str)


class WithoutConstraint(Change, frozen=True):
    """A claim does without a constraint."""

    claim: str = always(str)
    constraint: int = always(int)
    attribute: str = always(str)
    must_match: bool = always(bool)


class WithoutSelector(Change, frozen=True):
    """A request does without one of its selectors."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    expression: str = always(str)


class OtherAttribute(Change, frozen=True):
    """A selector reads an attribute or capacity with a similar name."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    name: str = always(str)
    instead_of: str = always(str)
    expression: str = always(str)
    """The expression with the other name."""


class GuardedSelector(Change, frozen=True):
    """A selector tests first whether a device has what it reads."""

    claim: str = always(str)
    request: str = always(str)
    selector: int = always(int)
    guard: str = always(str)


class Toleration(Change, frozen=True):
    """A request tolerates a taint."""

    claim: str = always(str)
    request: str = always(str)
    key: str = always(str)
    effect: str = always(str)


class OnlyAlternative(Change, frozen=True):
    """A request does without its other alternatives, which helps where one of them ends in an error."""

    claim: str = always(str)
    request: str = always(str)
    alternative: str = always(str)


class Release(Change, frozen=True):
    """A claim gives its devices back."""

    claim: str = always(str)


class MoreDevices(Change, frozen=True):
    """The node gets more devices like one that it has, unused, unpartitioned and without taints."""

    number: int = always(int)
    device: str = always(str)
    pool: str = always(str)
    driver: str = always(str)
    node: str = always(str)


AnyChange = (
    FewerDevices
    | LessCapacity
    | WithoutConstraint
    | WithoutSelector
    | OtherAttribute
    | GuardedSelector
    | Toleration
    | OnlyAlternative
    | Release
    | MoreDevices
)
