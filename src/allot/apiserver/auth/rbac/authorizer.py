"""Answers from roles and bindings, remembered until one of them changes."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import ALLOWED, NO_OPINION, Attributes, Decision
from allot.apiserver.auth.rbac.policy_index import Grant, PolicyIndex

MAX_USERS: Final = 4096
MAX_ANSWERS: Final = 4096
"""How many users, and answers for each of them, are remembered. When there are more all are forgotten: names come from clients."""


class Policies(Protocol):
    """Where roles and bindings come from."""

    index: PolicyIndex

    def catch_up(self) -> int:
        """Take in what has changed. The number that is returned is another one after every change."""


class _Answer(NamedTuple):
    """What is allowed of a verb on a resource: all objects, those of some names, or nothing."""

    everything: bool
    names: frozenset[str]
    refused: Decision


class RbacAuthorizer:
    """Allows what a rule allows. It never forbids: others may still allow what it does not."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._version = -1
        self._answers: dict[
            tuple[str, tuple[str, ...]], dict[tuple[str, str, str, str], _Answer]
        ] = {}

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        version = self._policies.catch_up()
        if version != self._version or len(self._answers) > MAX_USERS:
            self._answers.clear()
            self._version = version
        known = self._answers.get((user.name, user.groups))
        if known is None:
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
        if answer.everything or attributes.name in answer.names:
            return ALLOWED
        return answer.refused

    def _find(self, user: User, attributes: Attributes) -> _Answer:
        names: set[str] = set()
        missing: list[str] = []
        verb, group, resource = attributes.verb, attributes.group, attributes.resource
        for grant in self._policies.index.grants(user, attributes.namespace):
            if not isinstance(grant, Grant):
                missing.append(grant.role.not_found)
                continue
            rule = grant.rule
            if not resource:
                if rule.allows(attributes):
                    return _Answer(True, frozenset(), NO_OPINION)
            elif rule.has_kind(verb, group, resource):
                if not rule.resource_names:
                    return _Answer(True, frozenset(), NO_OPINION)
                names.update(rule.resource_names)
        refused = Decision(False, f"rbac: RBAC: {listed(missing)}") if missing else NO_OPINION
        return _Answer(False, frozenset(names), refused)

    def explain(self, user: User, attributes: Attributes) -> Decision:
        """The same answer with the binding that allows it, for access reviews."""
        decision = self.authorize(user, attributes)
        if not decision.allowed:
            return decision
        for grant in self._policies.index.grants(user, attributes.namespace):
            if isinstance(grant, Grant) and grant.rule.allows(attributes):
                return Decision(True, grant.binding.granted(grant.subject))
        return decision


def listed(problems: list[str]) -> str:
    """Several problems as Kubernetes shows them: one as it is, more in brackets, each once."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
