"""The RBAC authorizer: decisions from roles and bindings, cached until one of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import NO_OPINION, Attributes, Decision
from allot.apiserver.auth.rbac.policy_index import Grant, PolicyIndex

MAX_USERS: Final = 4096
MAX_ANSWERS: Final = 4096
"""The limit of cached users, and of decisions for each. The cache is cleared when full: names come from clients."""


class Policies(Protocol):
    """The source of roles and bindings."""

    index: PolicyIndex

    def catch_up(self) -> int:
        """Applies pending changes. Returns a generation, which differs after every change."""


class _Answer(NamedTuple):
    """What is allowed for a verb on a resource: all objects, some names, or nothing."""

    everything: Decision | None
    names: Mapping[str, Decision]
    refused: Decision


class RbacAuthorizer:
    """Allows what a rule allows. It never denies: other authorizers may still allow the request."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._version = -1
        self._answers: dict[
            tuple[str, tuple[str, ...]], dict[tuple[str, str, str, str], _Answer]
        ] = {}

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        version = self._policies.catch_up()
        if version != self._version:
            self._answers.clear()
            self._version = version
        known = self._answers.get((user.name, user.groups))
        if known is None:
            if len(self._answers) > MAX_USERS:
                self._answers.clear()
            known = self._answers[user.name, user.groups] = {}
        resource = attributes.resource
        if resource:
            key = (attributes.verb, attributes.group, resource, attributes.namespace)
        else:
            key = (attributes.verb, attributes.path, "", "")
        answer = known.get(key)
        if answer is None:
            if len(known) > MAX_ANSWERS:
                known.clear()
            answer = known[key] = self._find(user, attributes)
        if answer.everything is not None:
            return answer.everything
        return answer.names.get(attributes.name, answer.refused)

    def _find(self, user: User, attributes: Attributes) -> _Answer:
        names: dict[str, Decision] = {}
        missing: list[str] = []
        verb, group, resource = attributes.verb, attributes.group, attributes.resource
        for grant in self._policies.index.grants(user, attributes.namespace, resource):
            if not isinstance(grant, Grant):
                missing.append(grant.role.not_found)
                continue
            rule = grant.rule
            if not (rule.has_kind(verb, group, resource) if resource else rule.allows(attributes)):
                continue
            allowed = Decision(True, grant.binding.granted(grant.subject))
            if not resource or not rule.resource_names:
                return _Answer(allowed, names, NO_OPINION)
            for name in rule.resource_names:
                names.setdefault(name, allowed)
        refused = Decision(False, f"rbac: RBAC: {listed(missing)}") if missing else NO_OPINION
        return _Answer(None, names, refused)


def listed(problems: list[str]) -> str:
    """Errors as Kubernetes joins them: a single one unchanged, several in brackets without duplicates."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
