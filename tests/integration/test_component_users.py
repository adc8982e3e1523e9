"""Every component works with its own user and role; none is an administrator."""

from __future__ import annotations

import pytest

from allot.apiserver.auth.authentication import MASTERS, User
from allot.apiserver.auth.authorization import Attributes, AuthorizerChain, Decision
from allot.apiserver.auth.rbac.bootstrap import bootstrap_roles
from allot.client.component_users import CONTROLLER_MANAGER, NODES, SCHEDULER, controller_user
from allot.controllers.registry import CONTROLLERS
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
    "spec": {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        }
    },
}


def test_components_ask_as_themselves_and_are_never_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, User] = {}
    refused: list[tuple[str, Attributes]] = []
    authorize = AuthorizerChain.authorize

    def watched(self: AuthorizerChain, user: User, attributes: Attributes) -> Decision:
        decision = authorize(self, user, attributes)
        asked[user.name] = user
        if not decision.allowed:
            refused.append((user.name, attributes))
        return decision

    monkeypatch.setattr(AuthorizerChain, "authorize", watched)
    with VirtualTimeCluster(ClusterSettings(["gpu-server"])) as cluster:
        cluster.apply(JOB)
        cluster.wait_for("jobs", "j", lambda job: job and job.get("status", {}).get("active") == 1)

    assert refused == []
    components = {SCHEDULER.name, CONTROLLER_MANAGER.name, NODES.name, "allot:driver"}
    assert components <= asked.keys()
    assert controller_user("job-controller").name in asked
    assert all(MASTERS not in asked[name].groups for name in components)


def test_every_controller_has_an_account_with_a_role() -> None:
    bound = {
        f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
        for each in bootstrap_roles()
        if each.binding is not None
        for subject in each.binding.get("subjects", ())
        if subject["kind"] == "ServiceAccount"
    }

    assert {controller_user(name).name for name in CONTROLLERS} <= bound


def test_a_role_collects_the_rules_of_those_it_selects() -> None:
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    part = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "widgets",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [rule],
    }
    with VirtualTimeCluster(ClusterSettings()) as cluster:
        cluster.apply(part)
        for name in ("view", "edit", "admin"):
            cluster.wait_for("clusterroles", name, lambda role: role and rule in role["rules"])
        cluster.delete("clusterroles", "widgets")
        for name in ("view", "edit", "admin"):
            cluster.wait_for("clusterroles", name, lambda role: role and rule not in role["rules"])
