"""Strategies of kinds outside resource.k8s.io: what a write prepares, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot import features
from allot.api.core import Namespace, Pod
from allot.api.identities import GroupVersionKind
from allot.api.raw import RawObject
from allot.apiserver.kinds.namespace import finalize, terminate
from allot.apiserver.kinds.raw_strategy import RawStrategy
from allot.apiserver.kinds.request import Caller, WriteRequest
from allot.apiserver.kinds.resources import RESOURCES, find_kind
from allot.apiserver.registry.deletion import is_finished
from allot.validation.expressions import AcceptEverything

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = WriteRequest(
    gates=features.DEFAULTS,
    version="v1",
    expressions=AcceptEverything(),
    now=NOW,
    new_name_suffix=lambda: "bcdfg",
    caller=Caller("me", {}, lambda _: True),
)


def strategy(kind: str) -> RawStrategy:
    resource = find_kind(GroupVersionKind.parse(kind))
    assert resource is not None
    assert isinstance(resource.strategy, RawStrategy)
    return resource.strategy


def an_object(kind: str, **data: Any) -> RawObject:
    """With defaults, in namespace `ns` if its kind has namespaces."""
    gvk = GroupVersionKind.parse(kind)
    resource = find_kind(gvk)
    assert resource is not None
    place = {"namespace": "ns"} if resource.namespaced else {}
    metadata = {"name": "x", **place, **data.pop("metadata", {})}
    whole = {"apiVersion": str(gvk.group_version), "kind": gvk.kind, "metadata": metadata, **data}
    return RawObject(resource.defaults(whole))


def problems_of_create(kind: str, **data: Any) -> list[str]:
    judge = strategy(kind)
    prepared = judge.prepare_create(an_object(kind, **data), REQUEST)
    return [str(error) for error in judge.validate_create(prepared, REQUEST)]


def problems_of_update(kind: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    judge = strategy(kind)
    old = judge.prepare_create(an_object(kind, **before), REQUEST)
    new = an_object(kind, **after)
    prepared = judge.prepare_update(new, old, REQUEST)
    return [str(error) for error in judge.validate_update(prepared, old, REQUEST)]


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "x"}}
WORKLOAD = {"selector": SELECTOR, "template": TEMPLATE}
JOB_TEMPLATE = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def test_kinds_with_a_status_endpoint_have_a_status() -> None:
    for resource in RESOURCES:
        if isinstance(resource.strategy, RawStrategy):
            has_endpoint = resource.subresource("status") is not None
            assert has_endpoint == (resource.strategy.rules.status is not None), resource.kind


# --- preparing ---


@pytest.mark.parametrize(
    ("kind", "status", "generation"),
    [
        ("apps/v1/Deployment", {}, 1),
        ("apps/v1/ReplicaSet", {"replicas": 0}, 1),
        ("policy/v1/PodDisruptionBudget", None, 1),
        ("scheduling.k8s.io/v1/PriorityClass", {"x": 1}, 1),
        ("discovery.k8s.io/v1/EndpointSlice", {"x": 1}, 1),
        ("v1/ConfigMap", {"x": 1}, 0),
        ("v1/Service", {"loadBalancer": {}}, 0),
        ("v1/PersistentVolumeClaim", {"phase": "Pending"}, 0),
        ("v1/Node", None, 0),
    ],
)
def test_create(kind: str, status: Any, generation: int) -> None:
    created = strategy(kind).prepare_create(an_object(kind, status={"x": 1}), REQUEST)

    if status is not None:
        assert created.get("status") == status
    assert created.metadata.generation == generation


@pytest.mark.parametrize(
    ("kind", "path", "counts"),
    [
        ("apps/v1/Deployment", ("spec", "replicas"), True),
        ("apps/v1/Deployment", ("metadata", "annotations"), True),
        ("apps/v1/Deployment", ("metadata", "labels"), False),
        ("apps/v1/Deployment", ("status", "replicas"), False),
        ("apps/v1/ReplicaSet", ("metadata", "annotations"), False),
        ("batch/v1/CronJob", ("spec", "suspend"), True),
        ("v1/PodTemplate", ("template", "metadata"), True),
        ("discovery.k8s.io/v1/EndpointSlice", ("metadata", "labels"), True),
        ("scheduling.k8s.io/v1/PriorityClass", ("description",), False),
    ],
)
def test_generation(kind: str, path: tuple[str, ...], counts: bool) -> None:
    old = strategy(kind).prepare_create(an_object(kind), REQUEST)
    new = old.with_value({"a": "b"}, *path)

    updated = strategy(kind).prepare_update(new, old, REQUEST)

    assert updated.metadata.generation == 1 + counts


def test_an_update_keeps_the_status() -> None:
    old = an_object("apps/v1/Deployment", status={"replicas": 3})
    new = an_object("apps/v1/Deployment", status={"replicas": 4})

    updated = strategy("apps/v1/Deployment").prepare_update(new, old, REQUEST)

    assert updated.get("status") == {"replicas": 3}


def test_a_status_update_keeps_the_rest() -> None:
    old = an_object("apps/v1/Deployment", spec={"replicas": 1}, metadata={"labels": {"a": "b"}})
    new = an_object("apps/v1/Deployment", spec={"replicas": 2}, status={"replicas": 2}, other=1)

    updated = strategy("apps/v1/Deployment").prepare_status_update(new, old, REQUEST)

    assert updated == old.with_value({"replicas": 2}, "status")


def test_nodes_annotate_themselves_in_their_status() -> None:
    old, new = an_object("v1/Node"), an_object("v1/Node", metadata={"annotations": {"a": "b"}})

    updated = strategy("v1/Node").prepare_status_update(new, old, REQUEST)

    assert updated.metadata.annotations == {"a": "b"}


def test_unknown_fields_survive() -> None:
    old = an_object("apps/v1/Deployment", future={"a": 1})
    old = old.with_value("later", "metadata", "future")

    updated = strategy("apps/v1/Deployment").prepare_update(old, old, REQUEST)

    assert updated == old


def test_both_events_are_in_the_namespace_of_their_object() -> None:
    problem = 'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    event = an_object("v1/Event", involvedObject={"namespace": "other"})

    for kind in ("v1/Event", "events.k8s.io/v1/Event"):
        assert str(next(iter(strategy(kind).validate_create(event, REQUEST)))) == problem


# --- names ---


@pytest.mark.parametrize(
    ("kind", "name", "allowed"),
    [
        ("v1/ConfigMap", "a.b", True),
        ("v1/ConfigMap", "A", False),
        ("v1/Namespace", "a.b", False),
        ("v1/Service", "1a", True),
        ("v1/Service", "a.b", False),
        ("apps/v1/StatefulSet", "a.b", False),
        ("rbac.authorization.k8s.io/v1/ClusterRole", "system:node", True),
        ("rbac.authorization.k8s.io/v1/ClusterRole", "a/b", False),
        ("v1/Event", "pod.18A", True),
        ("batch/v1/CronJob", "a" * 52, True),
        ("batch/v1/CronJob", "a" * 53, False),
    ],
)
def test_names(kind: str, name: str, allowed: bool) -> None:
    problems = problems_of_create(kind, metadata={"name": name})

    assert any(problem.startswith("metadata.name: ") for problem in problems) != allowed


# --- validation ---


@pytest.mark.parametrize(
    ("kind", "data", "problems"),
    [
        pytest.param("v1/ConfigMap", {"data": {"a.b_c-D": "1"}}, [], id="config-map"),
        pytest.param(
            "v1/ConfigMap",
            {"data": {"..a": "", "b": ""}, "binaryData": {"b": ""}},
            [
                "data[..a]: Invalid value: \"..a\": must not start with '..'",
                'data[b]: Invalid value: "b": duplicate of key present in binaryData',
            ],
            id="config-map-keys",
        ),
        pytest.param(
            "v1/ConfigMap",
            {"data": {"a": "x" * (1024 * 1024 + 1)}},
            ["[]: Too long: may not be more than 1048576 bytes"],
            id="config-map-size",
        ),
        pytest.param(
            "v1/Secret",
            {"type": "kubernetes.io/tls", "stringData": {"tls.crt": "c"}},
            ["data[tls.key]: Required value"],
            id="tls-secret",
        ),
        pytest.param(
            "v1/Secret",
            {"stringData": {"a": "x" * (1024 * 1024 + 1)}},
            ["data: Too long: may not be more than 1048576 bytes"],
            id="secret-size",
        ),
        pytest.param("apps/v1/Deployment", {"spec": WORKLOAD}, [], id="deployment"),
        pytest.param(
            "apps/v1/Deployment",
            {"spec": {"template": TEMPLATE, "replicas": -1}},
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`',
            ],
            id="no-selector",
        ),
        pytest.param(
            "apps/v1/Deployment",
            {"spec": {"template": TEMPLATE, "selector": {}}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="empty-selector",
        ),
        pytest.param(
            "apps/v1/StatefulSet",
            {"spec": WORKLOAD | {"selector": {"matchLabels": {"app": "y"}}}},
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"x"}: '
                    "`selector` does not match template `labels`"
                )
            ],
            id="other-selector",
        ),
        pytest.param(
            "apps/v1/DaemonSet",
            {"spec": WORKLOAD | {"template": TEMPLATE | JOB_TEMPLATE}},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
            ],
            id="restart-policy",
        ),
        pytest.param(
            "apps/v1/ReplicaSet",
            {"spec": {"selector": SELECTOR, "template": {"metadata": TEMPLATE["metadata"]}}},
            ["spec.template.spec.containers: Required value"],
            id="no-containers",
        ),
        pytest.param(
            "v1/ReplicationController",
            {"spec": {}},
            ["spec.selector: Required value", "spec.template: Required value"],
            id="empty-controller",
        ),
        pytest.param("batch/v1/Job", {"spec": {"template": JOB_TEMPLATE}}, [], id="job"),
        pytest.param(
            "batch/v1/Job",
            {"spec": {"template": JOB_TEMPLATE, "completionMode": "Indexed", "parallelism": 2}},
            ["spec.completions: Required value: when completion mode is Indexed"],
            id="indexed-job-without-completions",
        ),
        pytest.param(
            "batch/v1/Job",
            {"spec": {"template": TEMPLATE}},
            [
                (
                    "spec.template.spec.restartPolicy: Required value: "
                    'valid values: "OnFailure", "Never"'
                )
            ],
            id="job-restart-policy",
        ),
        pytest.param(
            "batch/v1/CronJob",
            {"spec": {"schedule": "* *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}},
            [('spec.schedule: Invalid value: "* *": expected exactly 5 fields, found 2: [* *]')],
            id="cron-schedule",
        ),
        pytest.param(
            "policy/v1/PodDisruptionBudget",
            {"spec": {"minAvailable": "50"}},
            [
                (
                    'spec.minAvailable: Invalid value: "50": a valid percent string must be a numeric '
                    "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation "
                    "is '[0-9]+%')"
                )
            ],
            id="budget",
        ),
        pytest.param(
            "v1/ResourceQuota",
            {"spec": {"hard": {"count/pods": "1500m", "cpu": "-1", "memory": "1Gi"}}},
            [
                'spec.hard[count/pods]: Invalid value: "1500m": must be an integer',
                'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="quota",
        ),
        pytest.param(
            "coordination.k8s.io/v1/Lease",
            {"spec": {"leaseDurationSeconds": 0}},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
            id="lease",
        ),
        pytest.param(
            "scheduling.k8s.io/v1/PriorityClass",
            {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="priority-value",
        ),
        pytest.param(
            "scheduling.k8s.io/v1/PriorityClass",
            {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
            [],
            id="system-priority",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1/Role",
            {"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}, {"verbs": []}]},
            [
                (
                    'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: '
                    "namespaced rules cannot apply to non-resource URLs"
                ),
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
                "rules[1].verbs: Required value",
            ],
            id="role",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "s"}],
            },
            [
                'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                "subjects[0].namespace: Required value",
            ],
            id="binding",
        ),
        pytest.param(
            "v1/Service",
            {"spec": {"ports": [{"port": 80}, {"port": 0, "name": "b"}]}},
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[1].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
            id="service-ports",
        ),
        pytest.param("v1/Service", {"spec": {"clusterIP": "None"}}, [], id="headless-service"),
        pytest.param(
            "v1/PersistentVolumeClaim",
            {"spec": {}},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
            id="volume-claim",
        ),
        pytest.param(
            "v1/Node",
            {"spec": {"taints": [{"key": "a", "effect": "Now"}]}},
            [
                (
                    'metadata.taints[0].effect: Unsupported value: "Now": supported values: '
                    '"NoSchedule", "PreferNoSchedule", "NoExecute"'
                )
            ],
            id="taint",
        ),
        pytest.param(
            "discovery.k8s.io/v1/EndpointSlice", {}, ["addressType: Required value"], id="endpoints"
        ),
        pytest.param("v1/Event", {"involvedObject": {"namespace": "ns"}}, [], id="event"),
        pytest.param(
            "v1/Event",
            {"metadata": {"namespace": "default"}, "involvedObject": {"kind": "Node"}},
            [],
            id="event-about-a-node",
        ),
    ],
)
def test_create_is_validated(kind: str, data: dict[str, Any], problems: list[str]) -> None:
    assert problems_of_create(kind, **data) == problems


@pytest.mark.parametrize(
    ("kind", "before", "after", "problems"),
    [
        pytest.param(
            "v1/ConfigMap",
            {"data": {"a": "1"}, "immutable": True},
            {"data": {"a": "2"}},
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
            id="immutable",
        ),
        pytest.param("v1/ConfigMap", {}, {"immutable": True}, [], id="made-immutable"),
        pytest.param(
            "v1/Secret",
            {},
            {"type": "other"},
            ['type: Invalid value: "other": field is immutable'],
            id="secret-type",
        ),
        pytest.param(
            "apps/v1/Deployment",
            {"spec": WORKLOAD},
            {"spec": WORKLOAD | {"selector": SELECTOR | {"matchExpressions": []}}},
            [
                (
                    'spec.selector: Invalid value: {"matchLabels":{"app":"x"},"matchExpressions":[]}: '
                    "field is immutable"
                )
            ],
            id="selector",
        ),
        pytest.param(
            "apps/v1/StatefulSet",
            {"spec": WORKLOAD},
            {"spec": WORKLOAD | {"serviceName": "s"}},
            [
                (
                    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                    "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
                )
            ],
            id="stateful-set",
        ),
        pytest.param(
            "apps/v1/StatefulSet",
            {"spec": WORKLOAD},
            {"spec": WORKLOAD | {"replicas": 3}},
            [],
            id="stateful-set-replicas",
        ),
        pytest.param(
            "batch/v1/Job",
            {"spec": {"manualSelector": True, "selector": {}, "template": JOB_TEMPLATE}},
            {
                "spec": {
                    "manualSelector": True,
                    "selector": {},
                    "template": JOB_TEMPLATE,
                    "completions": 2,
                    "parallelism": 1,
                }
            },
            ["spec.completions: Invalid value: 2: field is immutable"],
            id="job",
        ),
        pytest.param(
            "batch/v1/Job",
            {"spec": {"manualSelector": True, "selector": {}, "template": JOB_TEMPLATE}},
            {
                "spec": {
                    "manualSelector": True,
                    "selector": {},
                    "template": JOB_TEMPLATE,
                    "suspend": True,
                }
            },
            [],
            id="job-suspended",
        ),
        pytest.param(
            "scheduling.k8s.io/v1/PriorityClass",
            {"value": 1},
            {"value": 2},
            ["value: Forbidden: may not be changed in an update."],
            id="priority",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1/RoleBinding",
            {"roleRef": {"kind": "Role", "name": "a"}},
            {"roleRef": {"kind": "Role", "name": "b"}},
            [
                (
                    'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io",'
                    '"Kind":"Role","Name":"b"}: field is immutable'
                )
            ],
            id="role-reference",
        ),
        pytest.param(
            "storage.k8s.io/v1/StorageClass",
            {"provisioner": "a"},
            {"provisioner": "b"},
            ["provisioner: Forbidden: updates to provisioner are forbidden."],
            id="provisioner",
        ),
        pytest.param(
            "v1/Service",
            {"spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 80}]}},
            {"spec": {"ports": [{"port": 81}]}},
            [],
            id="service-keeps-its-address",
        ),
        pytest.param(
            "v1/Service",
            {"spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 80}]}},
            {"spec": {"clusterIP": "10.96.0.8", "ports": [{"port": 80}]}},
            ['spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set'],
            id="service-address",
        ),
    ],
)
def test_update_is_validated(
    kind: str, before: dict[str, Any], after: dict[str, Any], problems: list[str]
) -> None:
    assert problems_of_update(kind, before, after) == problems


# --- pods ---


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"containers": [{"name": "c", "image": "i"}]}, []),
        ({}, ["spec.containers: Required value"]),
        (
            {"containers": [{}, {"name": "c", "image": "i "}, {"name": "c", "image": "i"}]},
            [
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
                'spec.containers[2].name: Duplicate value: "c"',
                (
                    'spec.containers[1].image: Invalid value: "i ": '
                    "must not have leading or trailing whitespace"
                ),
            ],
        ),
        (
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
                        "ports": [{"containerPort": 70000}],
                    }
                ]
            },
            [
                (
                    "spec.containers[0].ports[0].containerPort: Invalid value: 70000: "
                    "must be between 1 and 65535, inclusive"
                ),
                'spec.containers[0].volumeMounts[0].name: Not found: "v"',
                (
                    'spec.containers[0].resources.requests: Invalid value: "2": '
                    "must be less than or equal to cpu limit of 1"
                ),
            ],
        ),
        (
            {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Sometimes"},
            [
                (
                    'spec.restartPolicy: Unsupported value: "Sometimes": '
                    'supported values: "Always", "OnFailure", "Never"'
                )
            ],
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}
                ],
                "resourceClaims": [{"name": "x"}],
            },
            [
                (
                    'spec.resourceClaims[0]: Invalid value: {"Name":"x","ResourceClaimName":null,'
                    '"ResourceClaimTemplateName":null}: '
                    "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
                )
            ],
        ),
    ],
)
def test_pods(spec: dict[str, Any], problems: list[str]) -> None:
    assert problems_of_create("v1/Pod", spec=spec) == problems


def test_a_pod_keeps_the_priority_it_was_given() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    old = an_object("v1/Pod", spec=spec | {"priority": 7, "preemptionPolicy": "Never"})
    new = an_object("v1/Pod", spec=spec)

    updated = strategy("v1/Pod").prepare_update(new, old, REQUEST)

    assert isinstance(updated, Pod)
    assert (updated.get("spec", "priority"), updated.get("spec", "preemptionPolicy")) == (
        7,
        "Never",
    )
    assert not list(strategy("v1/Pod").validate_update(updated, old, REQUEST))


# --- namespaces ---


def test_namespaces_hold_on_to_their_contents() -> None:
    created = strategy("v1/Namespace").prepare_create(an_object("v1/Namespace"), REQUEST)
    sent = created.with_value([], "spec", "finalizers").with_value({}, "status")

    updated = strategy("v1/Namespace").prepare_update(sent, created, REQUEST)

    assert created.get("spec", "finalizers") == ["kubernetes"]
    assert created.metadata.labels == {"kubernetes.io/metadata.name": "x"}
    assert updated == created


def test_the_life_of_a_namespace() -> None:
    created = Namespace({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}})
    terminating = terminate(created, NOW)
    emptied = finalize(terminating.with_value([], "spec", "finalizers"), terminating)

    assert terminating.get("status", "phase") == "Terminating"
    assert terminating.metadata.deletion_timestamp == NOW
    assert terminate(terminating, NOW.replace(year=2027)) is terminating
    assert [is_finished(stage) for stage in (created, terminating, emptied)] == [
        False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("metadata", "phase", "allowed"),
    [
        ({}, "Active", True),
        ({}, "Terminating", False),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Terminating", True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Active", False),
    ],
)
def test_namespace_phases(metadata: dict[str, Any], phase: str, allowed: bool) -> None:
    namespace = an_object("v1/Namespace", metadata=metadata, status={"phase": phase})

    problems = strategy("v1/Namespace").validate_status_update(namespace, namespace, REQUEST)

    assert (list(problems) == []) == allowed
