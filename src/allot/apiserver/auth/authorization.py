"""Authorization: a chain of authorizers, and the messages of refused requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.auth.authentication import MASTERS, User


class Attributes(msgspec.Struct, frozen=True):
    """The attributes of a request for authorization. Non-resource requests have only a path."""

    verb: str
    path: str
    group: str = ""
    resource: str = ""
    """With its subresource, such as `pods/status`; empty for paths."""
    namespace: str = ""
    name: str = ""
    field_values: tuple[tuple[str, str], ...] = ()
    """The field selector of a list, watch or deletecollection: pairs of field and value."""


Action = tuple[str, str, str]
"""The verb, group and resource of attributes."""


class Decision(NamedTuple):
    """Allowed or not, and the reason: of a refusal for the client, of an approval for access reviews and the audit log."""

    allowed: bool
    reason: str = ""


ALLOWED: Final = Decision(True)
NO_OPINION: Final = Decision(False)


class Authorizer(Protocol):
    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Whether the user may do it. Does not block."""


IsGranted = Callable[[User, Action, str], bool]
"""Whether it is known that a user may do it with all objects of a namespace; False does not mean that they may not."""


def nothing_is_granted(_user: User, _action: Action, _namespace: str) -> bool:
    """Every request is decided on its own."""
    return False


class AuthorizerChain:
    """Allows everything to the group system:masters, and otherwise what any of the authorizers allows."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if MASTERS in user.groups:
            return ALLOWED
        refused = NO_OPINION
        for authorizer in self._authorizers:
            decision = authorizer.authorize(user, attributes)
            if decision.allowed:
                return decision
            if decision.reason:
                refused = _joined(refused, decision)
        return refused


def _joined(first: Decision, second: Decision) -> Decision:
    return Decision(False, f"{first.reason}\n{second.reason}") if first.reason else second


def require(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    """403 unless the user may do it."""
    check(authorizer.authorize(user, attributes), user, attributes)


def check(decision: Decision, user: User, attributes: Attributes) -> None:
    """403 unless it is allowed."""
    if not decision.allowed:
        raise refusal(user, attributes, decision.reason)


def refusal(user: User, attributes: Attributes, reason: str = "") -> ApiError:
    """403, in Kubernetes' wording."""
    plural = attributes.resource.partition("/")[0]
    message = refusal_text(user.name, attributes, reason)
    if not attributes.resource:
        return ApiError(403, "Forbidden", f"forbidden: {message}", Details())
    qualified = f"{plural}.{attributes.group}" if attributes.group else plural
    named = f'{qualified} "{attributes.name}"' if attributes.name else qualified
    details = Details(attributes.name, attributes.group, plural)
    return ApiError(403, "Forbidden", f"{named} is forbidden: {message}", details)


def refusal_text(user: str, attributes: Attributes, reason: str = "") -> str:
    because = f": {reason}" if reason else ""
    if not attributes.resource:
        return f'User "{user}" cannot {attributes.verb} path "{attributes.path}"{because}'
    where = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    return (
        f'User "{user}" cannot {attributes.verb} resource "{attributes.resource}" '
        f'in API group "{attributes.group}" {where}{because}'
    )
