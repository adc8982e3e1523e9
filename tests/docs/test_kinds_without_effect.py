"""The documentation lists every kind that is stored without effect, and clients are warned."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from allot.apiserver.kinds.resources import RESOURCES
from allot.testing.servers import LocalServer

PAGE = Path(__file__).parents[2] / "docs" / "apiserver.md"


def test_the_table_is_complete() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Kinds stored without effect")[2]
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    expected = {(found.kind, found.without_effect) for found in RESOURCES if found.without_effect}

    assert {row for row in rows if row != ("kind", "why")} == expected


def test_a_create_is_warned_about() -> None:
    async def scenario() -> None:
        policy = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}}}
        path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
        async with LocalServer() as server:
            answer = await server.ask("POST", path, policy)
            assert answer.code == 201
            [warning] = answer.header("warning")
            assert "NetworkPolicy objects are stored without effect" in warning

    asyncio.run(scenario())
