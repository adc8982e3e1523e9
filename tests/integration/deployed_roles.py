"""The roles in `deploy/`, as an authorizer: what they do not grant is refused, and remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from allot.apiserver.auth.authentication import MASTERS, User
from allot.apiserver.auth.authorization import ALLOWED, NO_OPINION, Attributes, Decision

DEPLOY = Path(__file__).parents[2] / "deploy"
_DISCOVERY = ("/api", "/apis", "/version", "/healthz", "/readyz", "/livez", "/openapi")
"""All authenticated users may see these, by Kubernetes' own role system:discovery."""


def manifests(*names: str) -> list[dict[str, Any]]:
    return [
        document
        for name in names
        for document in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))
    ]


class Ask(NamedTuple):
    """What a user wanted to do."""

    verb: str
    group: str
    resource: str


class DeployedRoles:
    """An authorizer with the rules of RBAC, for service accounts."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._rules: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        self.asked: dict[str, set[Ask]] = {}
        self.refused: list[tuple[str, Attributes]] = []
        found = list(documents)
        roles = {
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
            for each in found
        }
        for binding in found:
            if not binding["kind"].endswith("RoleBinding"):
                continue
            namespace = binding["metadata"].get("namespace", "")
            ref = binding["roleRef"]
            role = roles[ref["kind"], namespace if ref["kind"] == "Role" else "", ref["name"]]
            for subject in binding["subjects"]:
                account = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
                granted = self._rules.setdefault(account, [])
                granted += [(namespace, rule) for rule in role["rules"]]

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return ALLOWED if self._allows(user, attributes) else NO_OPINION

    def _allows(self, user: User, attributes: Attributes) -> bool:
        if MASTERS in user.groups:
            return True
        if not attributes.resource:
            return attributes.verb == "get" and attributes.path.startswith(_DISCOVERY)
        ask = Ask(attributes.verb, attributes.group, attributes.resource)
        self.asked.setdefault(user.name, set()).add(ask)
        for namespace, rule in self._rules.get(user.name, ()):
            if namespace in ("", attributes.namespace) and _grants(rule, attributes):
                return True
        self.refused.append((user.name, attributes))
        return False


def _grants(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    return (
        _has(rule["verbs"], attributes.verb)
        and _has(rule["apiGroups"], attributes.group)
        and _has(rule["resources"], attributes.resource)
        and ("resourceNames" not in rule or attributes.name in rule["resourceNames"])
    )


def _has(names: Iterable[str], name: str) -> bool:
    return "*" in names or name in names
