"""Structs in errors, as Kubernetes' API server holds them."""

from __future__ import annotations

from allot.validation.internal_types import internal_value


def test_names_order_and_zero_values() -> None:
    assert internal_value({"name": "r", "kind": "Role"}, "RoleRef") == {
        "APIGroup": "",
        "Kind": "Role",
        "Name": "r",
    }
    assert internal_value(
        {"type": "Bad", "rollingUpdate": {"maxSurge": "25%"}}, "DeploymentStrategy"
    ) == {
        "Type": "Bad",
        "RollingUpdate": {"MaxUnavailable": None, "MaxSurge": "25%"},
    }


def test_a_pod_spec() -> None:
    container = {"name": "c", "env": [{"name": "A", "value": "1"}]}
    spec = internal_value({"containers": [container], "nodeName": "n"}, "PodSpec")

    names = list(spec)
    assert names[:4] == ["Volumes", "InitContainers", "Containers", "EphemeralContainers"]
    at = names.index("NodeName")
    assert names[at - 2 : at + 4] == [
        "DeprecatedServiceAccount", "AutomountServiceAccountToken", "NodeName", "HostNetwork", "HostPID", "HostIPC",
    ]  # fmt: skip
    assert spec["Volumes"] is None
    (shown,) = spec["Containers"]
    assert shown["Env"] == [{"Name": "A", "Value": "1", "ValueFrom": None}]
    assert list(shown)[:8] == [
        "Name", "Image", "Command", "Args", "WorkingDir", "Ports", "EnvFrom", "Env",
    ]  # fmt: skip
