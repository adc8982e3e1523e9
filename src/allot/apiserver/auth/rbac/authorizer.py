"""The RBAC authorizer: decisions from roles and bindings, cached until one of them changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from allot.apiserver.api_errors import too_many_requests
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import NO_OPINION, Action, Attributes, Decision
from allot.apiserver.auth.rbac.policy_index import PolicyIndex
from allot.apiserver.auth.rbac.stored_role import EVERYTHING, NOTHING, Allowed, StoredRole

MAX_USERS: Final = 4096
MAX_ANSWERS: Final = 4096
"""The limit of cached users, and of decisions for each. The cache is cleared when full: names come from clients."""
MAX_WORK: Final = 100_000
"""How many rules and names one decision reads. What was read is kept, so that a later request gets further."""
MAX_SHOWN: Final = 100
TOO_MANY_RULES: Final = (
    "the roles of the user have too many rules to be read at once, please try again"
)


class Policies(Protocol):
    """The source of roles and bindings."""

    index: PolicyIndex

    def catch_up(self) -> int:
        """Applies pending changes. Returns a generation, which differs after every change."""


class _Answer(NamedTuple):
    """What is allowed for a verb on a resource: all objects, some names, or nothing."""

    everything: Decision | None
    named: Sequence[tuple[frozenset[str], Decision]]
    """Names of objects that are allowed, by role."""
    refused: Decision


class RbacAuthorizer:
    """Allows what a rule allows. It never denies: other authorizers may still allow the request."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._version = -1
        self._answers: dict[tuple[str, tuple[str, ...]], dict[tuple[Action, str], _Answer]] = {}

    def is_granted(self, user: User, action: Action, namespace: str) -> bool:
        """Whether it is known that the user may do it with all objects there; False does not mean that they may not."""
        if self._policies.catch_up() != self._version:
            return False
        try:
            answer = self._answers[user.name, user.groups][action, namespace]
        except KeyError:
            return False
        return answer.everything is not None

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        version = self._policies.catch_up()
        if version != self._version:
            self._answers.clear()
            self._version = version
        try:
            known = self._answers[user.name, user.groups]
        except KeyError:
            if len(self._answers) > MAX_USERS:
                self._answers.clear()
            known = self._answers[user.name, user.groups] = {}
        resource = attributes.resource
        if resource:
            key = (attributes.verb, attributes.group, resource), attributes.namespace
        else:
            key = (attributes.verb, attributes.path, ""), ""
        try:
            answer = known[key]
        except KeyError:
            if len(known) > MAX_ANSWERS:
                known.clear()
            answer = known[key] = self._find(user, attributes)
        if answer.everything is not None:
            return answer.everything
        for names, allowed in answer.named:
            if attributes.name in names:
                return allowed
        return answer.refused

    def _find(self, user: User, attributes: Attributes) -> _Answer:
        named: list[tuple[frozenset[str], Decision]] = []
        missing: list[str] = []
        work_left = MAX_WORK
        for binding, subject, role in self._policies.index.bound_roles(user, attributes.namespace):
            if role is None:
                missing.append(binding.role.not_found)
                continue
            if work_left < 0:
                raise too_many_requests(TOO_MANY_RULES)
            before = role.work
            allowed = _allowed(role, attributes)
            if allowed.everything:
                return _Answer(Decision(True, binding.granted(subject)), (), NO_OPINION)
            if allowed.names:
                named.append((allowed.names, Decision(True, binding.granted(subject))))
            work_left -= role.work - before
        refused = Decision(False, f"rbac: RBAC: {listed(missing)}") if missing else NO_OPINION
        return _Answer(None, named, refused)


def _allowed(role: StoredRole, attributes: Attributes) -> Allowed:
    if attributes.resource:
        return role.allowed(attributes.verb, attributes.group, attributes.resource)
    return EVERYTHING if role.allows_path(attributes) else NOTHING


def listed(problems: list[str]) -> str:
    """Errors as Kubernetes joins them: a single one unchanged, several in brackets without duplicates."""
    unique = list(dict.fromkeys(problems))
    if len(unique) > MAX_SHOWN:
        unique[MAX_SHOWN:] = [f"and {len(unique) - MAX_SHOWN} more"]
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
