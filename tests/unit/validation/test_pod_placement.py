"""Where a pod may run: what its spec may say about that."""

from __future__ import annotations

from typing import Any

import pytest

from allot.validation.fields import FieldPath
from allot.validation.pod_placement import validate_pod_placement

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DO_NOT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def toleration(**fields: Any) -> dict[str, Any]:
    return {"tolerations": [fields]}


def node_expression(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def pod_term(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def spread(**fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [DO_NOT | fields]}


GOOD = [
    {},
    {"nodeSelector": {"zone": "a"}, "nodeName": "node-1"},
    toleration(operator="Exists"),
    toleration(key="a", value="b", effect="NoSchedule"),
    toleration(key="a", operator="Exists", effect="NoExecute", tolerationSeconds=-1),
    node_expression(key="a", operator="Gt", values=["1"]),
    pod_term(topologyKey="zone", labelSelector={"matchLabels": {"a": "b"}}, namespaces=["x"]),
    spread(minDomains=2, nodeTaintsPolicy="Honor"),
    {"schedulingGates": [{"name": "a"}, {"name": "example.com/b"}]},
]


@pytest.mark.parametrize("spec", GOOD)
def test_what_is_understood_passes(spec: dict[str, Any]) -> None:
    assert list(validate_pod_placement(spec, FieldPath("spec"))) == []


NODE_TERMS = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
EXPRESSION = f"{NODE_TERMS}[0].matchExpressions[0]"
POD_TERM = f"affinity.podAntiAffinity.{REQUIRED}[0]"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nodeSelector": {"a b": "c"}}, "nodeSelector"),
        ({"nodeSelector": {"a": "c d"}}, "nodeSelector"),
        ({"nodeName": "Bad Name"}, "nodeName"),
        (toleration(operator="Exists", value="x"), "tolerations[0].operator"),
        (toleration(value="x"), "tolerations[0].operator"),
        (toleration(key="a", operator="Sometimes"), "tolerations[0].operator"),
        (toleration(key="a", value="b c"), "tolerations[0].operator"),
        (toleration(key="a b", operator="Exists"), "tolerations[0].key"),
        (toleration(key="a", effect="NoWay"), "tolerations[0].effect"),
        (toleration(key="a", effect="NoSchedule", tolerationSeconds=3), "tolerations[0].effect"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, NODE_TERMS),
        (node_expression(key="a", operator="Like"), f"{EXPRESSION}.operator"),
        (node_expression(key="a", operator="In"), f"{EXPRESSION}.values"),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}},
            f"affinity.nodeAffinity.{PREFERRED}[0].weight",
        ),
        (pod_term(), f"{POD_TERM}.topologyKey"),
        (pod_term(topologyKey="a b"), f"{POD_TERM}.topologyKey"),
        (pod_term(topologyKey="zone", namespaces=["A"]), f"{POD_TERM}.namespace"),
        (
            pod_term(topologyKey="zone", labelSelector={"matchExpressions": [{"key": "a"}]}),
            f"{POD_TERM}.labelSelector.matchExpressions[0].operator",
        ),
        (
            {
                "affinity": {
                    "podAffinity": {
                        PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]
                    }
                }
            },
            f"affinity.podAffinity.{PREFERRED}[0].weight",
        ),
        (spread(maxSkew=0), "topologySpreadConstraints[0].maxSkew"),
        (spread(topologyKey=""), "topologySpreadConstraints[0].topologyKey"),
        (spread(whenUnsatisfiable=""), "topologySpreadConstraints[0].whenUnsatisfiable"),
        (spread(whenUnsatisfiable="Maybe"), "topologySpreadConstraints[0].whenUnsatisfiable"),
        (spread(minDomains=0), "topologySpreadConstraints[0].minDomains"),
        (
            spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway"),
            "topologySpreadConstraints[0].minDomains",
        ),
        (spread(nodeAffinityPolicy="Perhaps"), "topologySpreadConstraints[0].nodeAffinityPolicy"),
        (
            {"topologySpreadConstraints": [DO_NOT, DO_NOT]},
            "topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "schedulingGates[1]"),
        ({"schedulingGates": [{"name": "a b"}]}, "schedulingGates[0]"),
    ],
)
def test_what_no_scheduler_understands_is_refused(spec: dict[str, Any], field: str) -> None:
    errors = list(validate_pod_placement(spec, FieldPath("spec")))

    assert {str(error.path) for error in errors} == {f"spec.{field}"}
