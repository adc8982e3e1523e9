"""Roles and bindings with missing fields: other policies stay in force."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.testing.servers import LocalServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"}


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        pytest.param("clusterroles", {"rules": [None]}, id="no-rule"),
        pytest.param("clusterroles", {"rules": None}, id="no-rules"),
        pytest.param(
            "clusterroles",
            {"rules": [{"verbs": [None, "get"], "apiGroups": [""], "resources": [None]}]},
            id="no-texts",
        ),
        pytest.param("clusterroles", {"aggregationRule": None}, id="no-aggregation"),
        pytest.param(
            "clusterroles", {"aggregationRule": {"clusterRoleSelectors": [None]}}, id="no-selector"
        ),
        pytest.param("clusterrolebindings", {"roleRef": REF, "subjects": [None]}, id="no-subject"),
        pytest.param("clusterrolebindings", {"roleRef": REF, "subjects": None}, id="no-subjects"),
        pytest.param("clusterrolebindings", {"roleRef": None}, id="no-role"),
    ],
)
def test_others_are_answered(plural: str, body: dict[str, Any]) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            sent = await server.ask("POST", f"{RBAC}/{plural}", {"metadata": {"name": "x"}, **body})
            assert sent.code < 500
            zoe = {"impersonate-user": "zoe"}
            assert (await server.ask("GET", "/api/v1/pods", headers=zoe)).code == 403
            assert (await server.ask("GET", "/version", headers=zoe)).code == 200

    asyncio.run(run())
