"""Answers of RBAC follow roles and bindings at once, and cost little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes
from allot.apiserver.auth.rbac import authorizer as module
from allot.apiserver.auth.rbac.authorizer import RbacAuthorizer
from allot.apiserver.auth.rbac.policy_index import BoundRole, PolicyIndex, RoleRef

ALICE = User("alice", groups=("devs", "system:authenticated"))


class Policies:
    """Roles and bindings of a test; counts how often they are searched."""

    def __init__(self) -> None:
        self.index = PolicyIndex()
        self.version = 0

    def catch_up(self) -> int:
        return self.version

    def count_searches(self) -> list[str]:
        """The namespaces that are searched from now on."""
        searched: list[str] = []

        class Counting(PolicyIndex):
            def bound_roles(self, user: User, namespace: str) -> Iterator[BoundRole]:
                searched.append(namespace)
                return super().bound_roles(user, namespace)

        self.index.__class__ = Counting
        return searched

    def role(self, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
        metadata = {"name": name, "namespace": namespace}
        self.index.put_role({"metadata": metadata, "rules": list(rules)})
        self.version += 1

    def bind(self, name: str, role: str, *subjects: dict[str, Any], namespace: str = "") -> None:
        ref = {"kind": "ClusterRole", "name": role}
        metadata = {"name": name, "namespace": namespace}
        self.index.put_binding({"metadata": metadata, "roleRef": ref, "subjects": list(subjects)})
        self.version += 1


def rule(verb: str, resource: str, *names: str) -> dict[str, Any]:
    return {
        "verbs": [verb],
        "apiGroups": [""],
        "resources": [resource],
        "resourceNames": list(names),
    }


def get(resource: str, namespace: str = "", name: str = "") -> Attributes:
    return Attributes("get", "", "", resource, namespace, name)


def a_user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


def test_a_binding_holds_where_it_is() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"))
    policies.bind("here", "read", a_user("alice"), namespace="a")
    authorizer = RbacAuthorizer(policies)

    assert authorizer.authorize(ALICE, get("pods", "a")).allowed
    assert not authorizer.authorize(ALICE, get("pods", "b")).allowed
    assert not authorizer.authorize(ALICE, get("pods")).allowed
    policies.bind("everywhere", "read", {"kind": "Group", "name": "devs"})
    assert authorizer.authorize(ALICE, get("pods", "b")).allowed
    assert authorizer.authorize(ALICE, get("pods")).allowed


def test_names_are_told_apart() -> None:
    policies = Policies()
    policies.role("one", rule("get", "pods", "p"), rule("get", "pods", "q"))
    policies.bind("one", "one", a_user("alice"))
    authorizer = RbacAuthorizer(policies)

    allowed = [
        name for name in "opq" if authorizer.authorize(ALICE, get("pods", "a", name)).allowed
    ]

    assert allowed == ["p", "q"]


def test_what_is_known_to_be_granted() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"), rule("get", "secrets", "s"))
    policies.bind("here", "read", a_user("alice"), namespace="a")
    authorizer = RbacAuthorizer(policies)
    pods, secrets = ("get", "", "pods"), ("get", "", "secrets")
    assert not authorizer.is_granted(ALICE, pods, "a"), "not asked before"

    for resource in ("pods", "secrets"):
        for namespace in ("a", "b"):
            authorizer.authorize(ALICE, get(resource, namespace, "s"))

    assert authorizer.is_granted(ALICE, pods, "a")
    assert not authorizer.is_granted(ALICE, pods, "b")
    assert not authorizer.is_granted(ALICE, secrets, "a"), "one name only"
    assert not authorizer.is_granted(ALICE, ("delete", "", "pods"), "a")
    assert not authorizer.is_granted(User("alice"), pods, "a"), "another group"
    policies.index.remove_binding("a", "here")
    policies.version += 1
    assert not authorizer.is_granted(ALICE, pods, "a")
    assert not authorizer.authorize(ALICE, get("pods", "a")).allowed
    assert not authorizer.is_granted(ALICE, pods, "a")


def test_paths_grant_no_resources() -> None:
    policies = Policies()
    policies.role("paths", {"verbs": ["get"], "nonResourceURLs": ["*"]})
    policies.bind("b", "paths", a_user("alice"))
    authorizer = RbacAuthorizer(policies)

    assert authorizer.authorize(ALICE, Attributes("get", "/metrics")).allowed
    assert not authorizer.is_granted(ALICE, ("get", "", "/metrics"), "")


def test_changed_roles_count_at_once() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"))
    policies.bind("b", "read", a_user("alice"))
    authorizer = RbacAuthorizer(policies)
    assert authorizer.authorize(ALICE, get("pods")).allowed

    policies.index.remove_binding("", "b")
    policies.version += 1

    assert not authorizer.authorize(ALICE, get("pods")).allowed


def test_a_binding_with_other_subjects_is_no_longer_for_the_first() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"))
    policies.bind("b", "read", a_user("alice"))
    policies.bind("b", "read", a_user("bob"))
    authorizer = RbacAuthorizer(policies)

    assert not authorizer.authorize(ALICE, get("pods")).allowed
    assert authorizer.authorize(User("bob"), get("pods")).allowed


def test_a_service_account_without_a_namespace_is_of_that_of_the_binding() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"))
    policies.bind("b", "read", {"kind": "ServiceAccount", "name": "s"}, namespace="a")
    authorizer = RbacAuthorizer(policies)

    assert authorizer.authorize(User("system:serviceaccount:a:s"), get("pods", "a")).allowed


def test_a_missing_role_is_named() -> None:
    policies = Policies()
    policies.bind("b", "missing", a_user("alice"))

    assert RbacAuthorizer(policies).authorize(ALICE, get("pods")).reason == (
        'rbac: RBAC: clusterrole.rbac.authorization.k8s.io "missing" not found'
    )


def test_an_answer_is_looked_up_once() -> None:
    policies = Policies()
    policies.role("read", rule("get", "pods"))
    policies.bind("b", "read", a_user("alice"))
    authorizer = RbacAuthorizer(policies)
    searched = policies.count_searches()

    for number in range(100):
        assert authorizer.authorize(ALICE, get("pods", "a", f"p{number}")).allowed

    assert searched == ["a"]


def test_what_is_remembered_is_bounded() -> None:
    policies = Policies()
    authorizer = RbacAuthorizer(policies)

    for number in range(3 * module.MAX_ANSWERS):
        authorizer.authorize(ALICE, Attributes("get", f"/{number}"))
    for number in range(3 * module.MAX_USERS):
        authorizer.authorize(User(f"u{number}"), get("pods"))

    remembered = authorizer._answers
    assert len(remembered) <= module.MAX_USERS + 1
    assert all(len(answers) <= module.MAX_ANSWERS + 1 for answers in remembered.values())


def test_a_role_is_read_once_however_often_it_is_bound_and_asked() -> None:
    policies = Policies()
    policies.role("long", *(rule("get", "pods", f"p{number}") for number in range(1000)))
    authorizer = RbacAuthorizer(policies)

    for number in range(50):
        policies.bind(f"b{number}", "long", a_user("alice"), namespace="a")
        assert authorizer.authorize(ALICE, get("pods", "a", "p999")).allowed
        assert not authorizer.authorize(ALICE, get("pods", "a", "other")).allowed

    assert work(policies, "long") <= 3001


def test_a_decision_reads_a_limited_number_of_rules_and_a_later_one_gets_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_WORK", 1000)
    policies = Policies()
    for role in "abcd":
        names = (f"{role}{number}" for number in range(400))
        policies.role(role, *(rule("get", "pods", name) for name in names))
        policies.bind(role, role, a_user("alice"), namespace="a")
    authorizer = RbacAuthorizer(policies)

    codes = []
    for _ in range(3):
        with pytest.raises(ApiError) as refused:
            authorizer.authorize(ALICE, get("pods", "a", "d1"))
        codes.append(refused.value.code)

    assert codes == [429, 429, 429]
    assert authorizer.authorize(ALICE, get("pods", "a", "d1")).allowed


def test_many_missing_roles_are_not_all_named() -> None:
    policies = Policies()
    for number in range(1000):
        policies.bind(f"b{number:04d}", f"missing-{number}", a_user("alice"))

    reason = RbacAuthorizer(policies).authorize(ALICE, get("pods")).reason

    assert reason.endswith("and 900 more]")


def work(policies: Policies, role: str) -> int:
    found = policies.index._roles[RoleRef("", role)]
    return found.work
