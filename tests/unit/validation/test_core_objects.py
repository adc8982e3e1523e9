"""Core kinds with few rules."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.validation.core_objects import validate_runtime_class


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "a", "operator": "Exists"}, [], id="exists"),
        pytest.param({"operator": "Exists"}, [], id="all-keys"),
        pytest.param({"value": "b"}, ["operator"], id="no-key"),
        pytest.param(
            {"key": "a", "operator": "Exists", "value": "b"}, ["operator"], id="exists-with-value"
        ),
        pytest.param({"key": "a", "effect": "Never"}, ["effect"], id="unknown-effect"),
        pytest.param(
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}, ["effect"], id="seconds"
        ),
    ],
)
def test_runtime_classes_tolerate_as_pods_do(
    toleration: dict[str, Any], expected: list[str]
) -> None:
    runtime_class = RawObject({"handler": "runc", "scheduling": {"tolerations": [toleration]}})

    errors = validate_runtime_class(runtime_class)

    path = "scheduling.tolerations[0]"
    assert [str(error.path) for error in errors] == [f"{path}.{name}" for name in expected]
