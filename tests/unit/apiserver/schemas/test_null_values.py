"""Nulls in documents: a field that is null is not there; in a list or map null is the empty value."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.fields import Type
from allot.apiserver.schemas.null_values import without_nulls
from allot.apiserver.schemas.types import type_named, type_of
from tests.clients.in_process import InProcessServer

STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
POD = GroupVersionKind("", "v1", "Pod")
ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")


@pytest.mark.parametrize(
    ("gvk", "given", "expected"),
    [
        pytest.param(
            STATEFUL_SET,
            {"spec": {"selector": {"matchExpressions": [None]}, "replicas": None}},
            {"spec": {"selector": {"matchExpressions": [{}]}}},
            id="a-struct",
        ),
        pytest.param(
            POD,
            {"metadata": {"finalizers": [None], "creationTimestamp": None}},
            {"metadata": {"finalizers": [""]}},
            id="a-text",
        ),
        pytest.param(
            ROLE,
            {"rules": [None, {"verbs": [None, "get"]}]},
            {"rules": [{}, {"verbs": ["", "get"]}]},
            id="outside-spec",
        ),
        pytest.param(
            POD,
            {"spec": {"nodeSelector": {"a": None, "b": "c"}}},
            {"spec": {"nodeSelector": {"a": "", "b": "c"}}},
            id="a-map",
        ),
        pytest.param(
            GroupVersionKind("", "v1", "ConfigMap"),
            {"data": {"a": None}, "binaryData": None},
            {"data": {"a": ""}},
            id="a-map-outside-spec",
        ),
        pytest.param(
            GroupVersionKind("apps", "v1", "ControllerRevision"),
            {"data": {"a": None}, "revision": 1},
            {"data": {"a": None}, "revision": 1},
            id="free-form",
        ),
    ],
)
def test_nulls(gvk: GroupVersionKind, given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert without_nulls(given, gvk) == expected


def test_no_list_with_a_null_makes_the_server_fail() -> None:
    """In every list of structs and texts of workloads, policies and budgets, at any depth up to four."""
    kinds = {
        "/apis/apps/v1/namespaces/default/statefulsets": STATEFUL_SET,
        "/apis/apps/v1/namespaces/default/deployments": GroupVersionKind(
            "apps", "v1", "Deployment"
        ),
        "/apis/batch/v1/namespaces/default/jobs": GroupVersionKind("batch", "v1", "Job"),
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets": GroupVersionKind(
            "policy", "v1", "PodDisruptionBudget"
        ),
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies": GroupVersionKind(
            "networking.k8s.io", "v1", "NetworkPolicy"
        ),
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": GroupVersionKind(
            "autoscaling", "v2", "HorizontalPodAutoscaler"
        ),
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies": GroupVersionKind(
            "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"
        ),
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": GroupVersionKind(
            "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"
        ),
        "/api/v1/namespaces/default/services": GroupVersionKind("", "v1", "Service"),
        "/api/v1/namespaces/default/resourcequotas": GroupVersionKind("", "v1", "ResourceQuota"),
        "/api/v1/namespaces/default/pods": POD,
        "/api/v1/nodes": GroupVersionKind("", "v1", "Node"),
    }
    with InProcessServer() as server:
        for path, gvk in kinds.items():
            schema = type_of(gvk)
            assert schema is not None
            for body in _with_one_null(schema, 4):
                body.setdefault("metadata", {})["name"] = "x"
                answer = server.request("POST", path, body=body)
                assert answer.code in (201, 409, 422, 400), (path, body, answer)


def _with_one_null(schema: Type, depth: int) -> list[dict[str, Any]]:
    """Objects that have nothing but a null in one of their lists."""
    found: list[dict[str, Any]] = []
    for name, field in schema.fields.items():
        if name in ("status", "managedFields"):
            continue
        if field.container == "list":
            found.append({name: [None]})
        if field.is_type and depth > 1:
            for inner in _with_one_null(type_named(field.type), depth - 1):
                wrapped: Any = {"list": [inner], "map": {"k": inner}}.get(field.container, inner)
                found.append({name: wrapped})
    return found
