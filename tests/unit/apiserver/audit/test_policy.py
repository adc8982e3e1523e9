"""Which requests an audit policy is about, and how policies are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot.apiserver.audit.policy import (
    AuditLevelDecision,
    AuditPolicyError,
    AuditRule,
    GroupResources,
    Level,
    read_policy,
)
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes

ALICE = User("alice", groups=("devs",))
HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def a_rule(*resources: str, names: tuple[str, ...] = ()) -> AuditRule:
    return AuditRule(Level.METADATA, resources=(GroupResources("", resources, names),))


def on(resource: str, namespace: str = "a", name: str = "x", verb: str = "get") -> Attributes:
    return Attributes(verb, f"/{resource}", "", resource, namespace, name)


@pytest.mark.parametrize(
    ("rule", "attributes", "matches"),
    [
        pytest.param(AuditRule(Level.NONE), on("pods"), True, id="everything"),
        pytest.param(AuditRule(Level.NONE, users=("bob",)), on("pods"), False, id="user"),
        pytest.param(AuditRule(Level.NONE, groups=("devs",)), on("pods"), True, id="group"),
        pytest.param(AuditRule(Level.NONE, verbs=("list",)), on("pods"), False, id="verb"),
        pytest.param(a_rule("pods"), on("pods"), True, id="resource"),
        pytest.param(a_rule("pods"), on("pods/status"), False, id="not-its-parts"),
        pytest.param(a_rule("pods/*"), on("pods/status"), True, id="all-its-parts"),
        pytest.param(a_rule("pods/*"), on("pods"), False, id="only-its-parts"),
        pytest.param(a_rule("*/status"), on("pods/status"), True, id="a-part-of-all"),
        pytest.param(a_rule("*"), on("pods/status"), True, id="all-and-their-parts"),
        pytest.param(a_rule(), on("pods/status"), True, id="the-group"),
        pytest.param(a_rule("pods", names=("y",)), on("pods"), False, id="name"),
        pytest.param(AuditRule(Level.NONE, namespaces=("b",)), on("pods"), False, id="namespace"),
        pytest.param(AuditRule(Level.NONE, namespaces=("",)), on("nodes", ""), True, id="none"),
        pytest.param(a_rule("pods"), Attributes("get", "/metrics"), False, id="no-resource"),
        pytest.param(
            AuditRule(Level.NONE, paths=("/healthz*",)), Attributes("get", "/healthz/x"), True, id="path"
        ),
        pytest.param(AuditRule(Level.NONE, paths=("/healthz*",)), on("pods"), False, id="no-path"),
    ],
)  # fmt: skip
def test_rule(rule: AuditRule, attributes: Attributes, matches: bool) -> None:
    assert rule.matches(ALICE, attributes) == matches


def test_the_first_rule_decides(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"{HEAD}omitStages: [RequestReceived]\nrules:\n"
        "- {level: None, verbs: [watch]}\n"
        "- {level: RequestResponse, users: [alice], omitStages: [ResponseStarted]}\n"
        "- {level: Metadata}\n"
    )
    policy = read_policy(file)

    assert policy.decide(ALICE, on("pods", verb="watch")).level is Level.NONE
    assert policy.decide(ALICE, on("pods")) == AuditLevelDecision(
        Level.REQUEST_RESPONSE, frozenset({"RequestReceived", "ResponseStarted"})
    )
    assert policy.decide(User("bob"), on("pods")).level is Level.METADATA


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "policy.yaml: "),
        ("kind: Policy", "not a Policy of audit.k8s.io/v1"),
        (HEAD, "at least one rule"),
        (f"{HEAD}rules: [{{level: All}}]", r"rules\[0\].level: 'All' is unknown"),
        (f"{HEAD}rules: [{{level: None, omitStages: [X]}}]", "'X' is unknown"),
        (
            f"{HEAD}rules: [{{level: None, nonResourceURLs: [/x], namespaces: [a]}}]",
            "cannot apply to both",
        ),
    ],
)
def test_what_is_wrong_with_a_policy(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)

    with pytest.raises(AuditPolicyError, match=problem):
        read_policy(file)
