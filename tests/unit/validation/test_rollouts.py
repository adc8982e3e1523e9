"""How workloads replace their pods."""

from __future__ import annotations

from typing import Any

import pytest

from allot.validation.fields import FieldPath
from allot.validation.rollouts import validate_rollout


def deployment(kind: str = "RollingUpdate", **update: Any) -> dict[str, Any]:
    return {"strategy": {"type": kind, "rollingUpdate": update or None}}


def daemon_set(**update: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": update}}


def stateful_set(policy: str, strategy: str) -> dict[str, Any]:
    return {"podManagementPolicy": policy, "updateStrategy": {"type": strategy}}


@pytest.mark.parametrize(
    ("kind", "spec", "wrong_fields"),
    [
        ("ReplicaSet", {}, []),
        ("Deployment", deployment(maxSurge="25%", maxUnavailable="25%"), []),
        ("Deployment", deployment("Recreate"), []),
        ("Deployment", deployment("Recreate", maxSurge=1), ["strategy.rollingUpdate"]),
        ("Deployment", deployment("Sideways"), ["strategy"]),
        (
            "Deployment",
            deployment(maxSurge="0%", maxUnavailable=0),
            ["strategy.rollingUpdate.maxUnavailable"],
        ),
        (
            "Deployment",
            deployment(maxSurge="half", maxUnavailable="101%"),
            ["strategy.rollingUpdate.maxSurge", "strategy.rollingUpdate.maxUnavailable"],
        ),
        (
            "Deployment",
            deployment(maxSurge=1) | {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            ["progressDeadlineSeconds"],
        ),
        ("StatefulSet", stateful_set("Parallel", "OnDelete"), []),
        ("StatefulSet", stateful_set("Odd", "Odd"), ["podManagementPolicy", "updateStrategy"]),
        ("DaemonSet", daemon_set(maxUnavailable=1, maxSurge=0), []),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, []),
        ("DaemonSet", {"updateStrategy": {"type": "Odd"}}, ["updateStrategy.type"]),
        (
            "DaemonSet",
            daemon_set(maxUnavailable=1, maxSurge=1),
            ["updateStrategy.rollingUpdate.maxSurge"],
        ),
        (
            "DaemonSet",
            daemon_set(maxUnavailable=0, maxSurge=0),
            ["updateStrategy.rollingUpdate.maxUnavailable"],
        ),
    ],
)
def test_rollouts(kind: str, spec: dict[str, Any], wrong_fields: list[str]) -> None:
    errors = validate_rollout(kind, spec, FieldPath("spec"))

    assert sorted(str(error.path) for error in errors) == [f"spec.{name}" for name in wrong_fields]
