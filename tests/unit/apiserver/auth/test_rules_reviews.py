"""SelfSubjectRulesReviews of users with very many rules."""

from __future__ import annotations

import asyncio

import pytest

from allot.apiserver.auth import access_reviews
from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.testing.servers import LocalServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@pytest.mark.parametrize(("rules", "incomplete"), [(20, False), (100, True)])
def test_an_answer_with_too_many_rules_is_incomplete(
    rules: int, incomplete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_reviews, "MAX_RULES", 50)

    async def run() -> None:
        users = {"alice-token": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(users=users) as server:
            listed = [
                {"apiGroups": [""], "resources": [f"r{number}"], "verbs": ["get"]}
                for number in range(rules)
            ]
            await server.post(
                f"{RBAC}/clusterroles", {"metadata": {"name": "many"}, "rules": listed}
            )
            subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
            reference = {
                "kind": "ClusterRole",
                "name": "many",
                "apiGroup": "rbac.authorization.k8s.io",
            }
            await server.post(
                f"{RBAC}/clusterrolebindings",
                {"metadata": {"name": "many"}, "roleRef": reference, "subjects": [subject]},
            )
            answer = await server.ask(
                "POST",
                REVIEWS,
                {"spec": {"namespace": "default"}},
                headers={"authorization": "Bearer alice-token"},
            )
            status = answer.json["status"]
            assert status["incomplete"] is incomplete
            shown = len(status["resourceRules"]) + len(status["nonResourceRules"])
            assert shown <= 50
            assert ("evaluationError" in status) is incomplete

    asyncio.run(run())
