"""Warnings about pods and templates, as recorded from Kubernetes v1.38."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.validation.pod_warnings import MAX_DUPLICATE_PORTS, pod_warnings, template_warnings

OS = "beta.kubernetes.io/os"
OS_NOTE = 'deprecated since v1.14; use "kubernetes.io/os" instead'
NULL = "a null labelSelector results in matching no pod"
HIDES = 'hides previous definition of "A", which may be dropped when using apply'


def env(*values: str) -> list[dict[str, str]]:
    return [{"name": "A", "value": value} for value in values]


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"nodeSelector": {OS: "x"}}, [f"spec.nodeSelector[{OS}]: {OS_NOTE}"], id="node-selector"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": OS, "operator": "Exists"}]}]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                    f".nodeSelectorTerms[0].matchExpressions[0].key: {OS} is {OS_NOTE}"
                ),
            ],
            id="node-affinity",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z"}]},
            [f"spec.topologySpreadConstraints[0].labelSelector: {NULL}"],
            id="spread",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}], "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            [
                'spec.hostAliases[1].ip: duplicate ip "1.2.3.4"',
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="duplicates",
        ),
        pytest.param(
            {"containers": [{"env": env("1", "2"), "resources": {"limits": {"memory": "1500m"}}}]},
            [
                'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
                f"spec.containers[0].env[1]: {HIDES}",
            ],
            id="container",
        ),
        pytest.param({"containers": [{"env": env("1", "2$(A)")}]}, [], id="refers-to-itself"),
        pytest.param(
            {
                "initContainers": [{"ports": [{"containerPort": 80, "protocol": "TCP"}]}],
                "containers": [{"ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]}],
            },
            ["spec.containers[0].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]"],
            id="ports",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "gitRepo": {}}, {"name": "w", "storageos": {}}]},
            [
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
            ],
            id="volumes",
        ),
    ],
)  # fmt: skip
def test_pods(spec: dict[str, Any], warnings: list[str]) -> None:
    assert pod_warnings(RawObject({"metadata": {"name": "p"}, "spec": spec})) == warnings


def test_annotations_and_templates() -> None:
    annotations = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
    note = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    spec = {"nodeSelector": {OS: "x"}, "containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"annotations": annotations}, "spec": spec}

    assert pod_warnings(RawObject(pod)) == [f"spec.nodeSelector[{OS}]: {OS_NOTE}"]
    assert template_warnings(RawObject({"spec": {"template": pod}})) == [
        f"spec.template.spec.nodeSelector[{OS}]: {OS_NOTE}",
        f"spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: {note}",
    ]


def test_equal_ports_do_not_multiply() -> None:
    """Two thousand equal ports are two million pairs."""
    ports = [{"containerPort": 80}] * 2_000
    spec = {"containers": [{"name": "c", "image": "i", "ports": ports}]}

    found = pod_warnings(RawObject({"metadata": {"name": "p"}, "spec": spec}))

    assert len(list(found)) == MAX_DUPLICATE_PORTS
