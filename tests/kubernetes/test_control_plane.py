"""kube-scheduler and kube-controller-manager on our API server: their default settings, their own users."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import MAX_WAIT_SECONDS
from tests.acceptance.playing import failures
from tests.acceptance.runner.acceptance import open_runner
from tests.acceptance.runner.scenarios import Scenario
from tests.acceptance.test_cluster import ALL, KUBERNETES_RULES, PASSING
from tests.kubernetes.programs import NEEDS_KUBERNETES, api_server, control_plane, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), NEEDS_KUBERNETES]
COMPONENTS = ("kube-scheduler", "kube-controller-manager")
TERMINATING = "because it is being terminated"
UNEXPECTED = frozenset({400, 401, 405, 406, 413, 415, 422, 429, 500, 501, 503, 504})
"""Answers that say that the two sides do not understand each other."""


def events_of_components(audit_log: Path) -> Iterator[dict[str, Any]]:
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        if event.get("userAgent", "").startswith(COMPONENTS):
            yield event


@pytest.mark.parametrize(
    ("scenarios", "rules"),
    [
        pytest.param(PASSING, (), id="rules-of-the-keps"),
        pytest.param(ALL, KUBERNETES_RULES, id="rules-of-v1.38"),
    ],
)
def test_all_scenarios(scenarios: list[Scenario], rules: tuple[str, ...], tmp_path: Path) -> None:
    with (
        api_server(tmp_path, *rules) as kubeconfig,
        control_plane(tmp_path),
        open_runner(
            kubeconfig, kubectl=program("kubectl"), simulate_nodes=True, patience=MAX_WAIT_SECONDS
        ) as runner,
    ):
        failed = failures(runner, scenarios)
    assert failed == []
    users: Counter[str] = Counter()
    for event in events_of_components(tmp_path / "audit.log"):
        user, status = event["user"], event["responseStatus"]
        users[user["username"]] += 1
        assert "system:masters" not in user["groups"], event
        assert event["annotations"]["authorization.k8s.io/decision"] == "allow", event
        assert status["code"] not in UNEXPECTED, event
        if status["code"] == 403:  # admission
            assert TERMINATING in status["message"] or "exceeded quota" in status["message"], event
    assert {"system:kube-scheduler", "system:kube-controller-manager"} < users.keys()
    assert "system:serviceaccount:kube-system:resource-claim-controller" in users
