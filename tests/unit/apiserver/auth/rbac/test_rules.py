"""PolicyRules: which requests one rule allows."""

from __future__ import annotations

import pytest

from allot.apiserver.auth.authorization import Attributes
from allot.apiserver.auth.rbac.rules import PolicyRule, path_matches
from allot.apiserver.auth.rbac.stored_role import StoredRole


def asked(verb: str, group: str, resource: str, name: str = "") -> Attributes:
    return Attributes(verb, "", group, resource, "a", name)


@pytest.mark.parametrize(
    ("rule", "attributes", "allowed"),
    [
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",)), asked("get", "", "pods"), True, id="exact"
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",)), asked("list", "", "pods"), False, id="verb"
        ),
        pytest.param(
            PolicyRule(("*",), ("",), ("pods",)), asked("list", "", "pods"), True, id="any-verb"
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",)), asked("get", "apps", "pods"), False, id="group"
        ),
        pytest.param(
            PolicyRule(("get",), ("*",), ("pods",)), asked("get", "x", "pods"), True, id="any-group"
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",)),
            asked("get", "", "pods/status"),
            False,
            id="a-resource-is-not-its-parts",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods/status",)),
            asked("get", "", "pods/status"),
            True,
            id="subresource",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("*/status",)),
            asked("get", "", "nodes/status"),
            True,
            id="a-part-of-every-resource",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("*/status",)),
            asked("get", "", "nodes"),
            False,
            id="a-part-is-not-the-resource",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("*",)), asked("get", "", "a/b"), True, id="any-resource"
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",), ("p",)),
            asked("get", "", "pods", "p"),
            True,
            id="name",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",), ("p",)),
            asked("get", "", "pods", "q"),
            False,
            id="other-name",
        ),
        pytest.param(
            PolicyRule(("create",), ("",), ("pods",), ("p",)),
            asked("create", "", "pods"),
            False,
            id="no-name-yet",
        ),
        pytest.param(
            PolicyRule(("*",), ("*",), ("*",)), Attributes("get", "/metrics"), False, id="no-path"
        ),
        pytest.param(
            PolicyRule(("get",), non_resource_urls=("/metrics",)),
            Attributes("get", "/metrics"),
            True,
            id="path",
        ),
    ],
)
def test_rule(rule: PolicyRule, attributes: Attributes, allowed: bool) -> None:
    assert rule.allows(attributes) == allowed
    assert _role_allows(StoredRole([rule.to_document()]), attributes) == allowed


def _role_allows(role: StoredRole, attributes: Attributes) -> bool:
    if not attributes.resource:
        return role.allows_path(attributes)
    found = role.allowed(attributes.verb, attributes.group, attributes.resource)
    return found.everything or attributes.name in found.names


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*", "/anything", True),
        ("/apis/*", "/apis/apps", True),
        ("/apis/*", "/apis/", True),
        ("/apis/*", "/apis", False),
        ("/apis*", "/apis", True),
        ("/healthz", "/healthz/", False),
        ("/a*b", "/axb", False),
    ],
)
def test_path(pattern: str, path: str, matches: bool) -> None:
    assert path_matches(pattern, path) == matches


def test_a_rule_is_written_as_it_was_read() -> None:
    document = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}

    assert PolicyRule.from_document(document).to_document() == document
