"""Bindings with very many subjects, and users in very many groups."""

from __future__ import annotations

from typing import Any

import pytest

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.rbac import policy_index
from allot.apiserver.auth.rbac.policy_index import PolicyIndex
from tests.step_counts import steps


def a_binding(name: str, *subjects: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": "ClusterRole", "name": f"role-of-{name}"},
        "subjects": list(subjects),
    }


def a_user(name: str) -> dict[str, Any]:
    return {"kind": "User", "name": name}


def a_group(name: str) -> dict[str, Any]:
    return {"kind": "Group", "name": name}


ACCOUNT = {"kind": "ServiceAccount", "name": "builder", "namespace": "ns"}
BINDINGS = (
    a_binding("b-users", a_user("ann"), a_user("bob"), ACCOUNT, ACCOUNT),
    a_binding("a-groups", a_group("x"), a_group("y"), a_user("bob")),
    a_binding("c-home", a_group("y"), {"kind": "ServiceAccount", "name": "own"}, namespace="ns"),
)
USERS = (
    User("ann"),
    User("ann", groups=("y", "x")),
    User("bob", groups=("y",)),
    User("system:serviceaccount:ns:builder"),
    User("system:serviceaccount:ns:own", groups=("z",)),
    User("eve", groups=(*tuple(f"g{number}" for number in range(100)), "y")),
    User("eve", groups=("z",)),
)


def told(index: PolicyIndex) -> list[list[str]]:
    return [
        [bound.binding.granted(bound.subject) for bound in index.bound_roles(user, "ns")]
        for user in USERS
    ]


def test_large_bindings_grant_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    indexed, asked = PolicyIndex(), PolicyIndex()
    for binding in BINDINGS:
        indexed.put_binding(binding)
    monkeypatch.setattr(policy_index, "MANY_SUBJECTS", 0)
    for binding in BINDINGS:
        asked.put_binding(binding)

    assert told(asked) == told(indexed)
    assert told(asked)[1] == [
        'RBAC: allowed by ClusterRoleBinding "a-groups" of ClusterRole "role-of-a-groups" to Group "y"',
        'RBAC: allowed by ClusterRoleBinding "b-users" of ClusterRole "role-of-b-users" to User "ann"',
        'RBAC: allowed by RoleBinding "c-home/ns" of ClusterRole "role-of-c-home" to Group "y"',
    ]
    assert told(asked)[3:5] == [
        [
            (
                'RBAC: allowed by ClusterRoleBinding "b-users" of ClusterRole "role-of-b-users" '
                'to ServiceAccount "builder/ns"'
            )
        ],
        [
            (
                'RBAC: allowed by RoleBinding "c-home/ns" of ClusterRole "role-of-c-home" '
                'to ServiceAccount "own/ns"'
            )
        ],
    ]
    asked.put_binding(a_binding("a-groups", a_user("eve")))
    asked.remove_binding("ns", "c-home")
    asked.remove_binding("", "b-users")
    assert [len(texts) for texts in told(asked)] == [0, 0, 0, 0, 0, 1, 1]


def test_a_large_binding_is_read_in_few_steps() -> None:
    """Others wait meanwhile: policies are up to date before every request."""

    def read(count: int) -> None:
        index = PolicyIndex()
        for _ in range(2):
            index.put_binding(a_binding("a", *map(a_user, map(str, range(count)))))

    assert steps(lambda: read(2000)) - steps(lambda: read(1000)) < 1000 * 2 * 60


def test_groups_without_bindings_are_left_out_first() -> None:
    index = PolicyIndex()
    for binding in BINDINGS:
        index.put_binding(binding)

    def ask(count: int) -> None:
        groups = tuple(f"g{number}" for number in range(count))
        assert not list(index.bound_roles(User("eve", groups=groups), "ns"))

    assert steps(lambda: ask(2000)) - steps(lambda: ask(1000)) < 1000 * 30
