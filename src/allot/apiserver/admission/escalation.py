"""Admission of roles and bindings: the author must have the rights they grant, or the verb `escalate` or `bind`."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.auth.authentication import MASTERS, User
from allot.apiserver.auth.rbac.bootstrap import GROUP
from allot.apiserver.auth.rbac.escalation import (
    MAX_CHECKS,
    MAX_OWNED,
    TooManyChecksError,
    escalation_problem,
    uncovered,
)
from allot.apiserver.auth.rbac.policy_feed import PolicyFeed
from allot.apiserver.auth.rbac.policy_index import role_of
from allot.apiserver.auth.rbac.rules import ANY, PolicyRule
from allot.apiserver.kinds.request import Caller, Permission
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Workers

FULL_AUTHORITY: Final = (
    PolicyRule((ANY,), (ANY,), (ANY,)),
    PolicyRule((ANY,), non_resource_urls=(ANY,)),
)
RULE: Final = 64
"""A rule is as much work as so many bytes."""
AGGREGATION_NEEDS_ALL: Final = "must have cluster-admin privileges to use the aggregationRule"


class EscalationCheck:
    """Refuses roles and bindings that grant more rights than their author has."""

    def __init__(self, policies: PolicyFeed, workers: Workers) -> None:
        self._policies = policies
        self._workers = workers

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource.group == GROUP and operation in ("create", "update")

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        caller = attributes.info.caller
        if MASTERS not in caller.groups:
            self._policies.catch_up()
            if attributes.resource.plural.endswith("bindings"):
                await self._check_binding(attributes, caller)
            else:
                await self._check_role(attributes, caller)
        return ADMITTED

    async def _check_role(self, attributes: AdmissionAttributes, caller: Caller) -> None:
        resource, key = attributes.resource, attributes.key
        # As in Kubernetes: the request to create a role has no name yet.
        name = "" if attributes.old is None else key.name
        if caller.may(Permission("escalate", resource.plural, key.namespace, name)):
            return
        new, old = attributes.new, attributes.old
        rule = new.get("aggregationRule")
        aggregates = rule is not None and (old is None or rule != old.get("aggregationRule"))
        owned, missing = self._policies.index.rules_for(_user(caller), key.namespace, MAX_OWNED)
        if aggregates and not _has_full_authority(owned):
            raise api_errors.forbidden(resource, key.name, AGGREGATION_NEEDS_ALL)
        if old is not None and new.get("rules", default=[]) == old.get("rules", default=[]):
            return
        size = attributes.info.size + len(owned) * RULE
        problem = await self._workers.run(
            size,
            lambda: escalation_problem(_user(caller), owned, missing, PolicyRule.all_of(new.data)),
        )
        if problem is not None:
            raise api_errors.forbidden(resource, key.name, problem)

    async def _check_binding(self, attributes: AdmissionAttributes, caller: Caller) -> None:
        resource, key = attributes.resource, attributes.key
        new, old = attributes.new, attributes.old
        role = role_of(new.data)
        plural = f"{role.kind.lower()}s"
        if caller.may(Permission("bind", plural, key.namespace, role.name)):
            return
        if old is not None and _parts(new) == _parts(old):
            return
        rules = self._policies.index.rules_of(role)
        if rules is None:
            raise api_errors.not_found(resource, role.name)
        wanted = list(islice(rules, MAX_CHECKS + 1))
        owned, missing = self._policies.index.rules_for(_user(caller), key.namespace, MAX_OWNED)
        size = (len(owned) + len(wanted)) * RULE
        problem = await self._workers.run(
            size, lambda: escalation_problem(_user(caller), owned, missing, wanted)
        )
        if problem is not None:
            raise api_errors.forbidden(resource, key.name, problem)


def _has_full_authority(owned: list[PolicyRule]) -> bool:
    try:
        return not uncovered(owned, FULL_AUTHORITY)
    except TooManyChecksError:
        return False


def _user(caller: Caller) -> User:
    return User(caller.name, groups=caller.groups)


def _parts(binding: Any) -> tuple[Any, Any]:
    return binding.get("roleRef"), binding.get("subjects", default=[])
