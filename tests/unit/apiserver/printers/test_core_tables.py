"""Tables of the kinds outside resource.k8s.io: the columns kubectl knows, the words it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.raw import RawObject
from allot.apiserver.kinds.resources import RESOURCES, Resource, find, find_kind
from allot.apiserver.printers.ages import human_age
from allot.apiserver.printers.column import Cell, Column
from allot.testing.manifests import a_pod_manifest

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(**delta: float) -> str:
    return (NOW - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def resource(api_version: str, plural: str) -> Resource:
    found = find(GroupVersion.parse(api_version), plural)
    assert found is not None
    return found


def row(api_version: str, kind: str, data: dict[str, Any], **metadata: Any) -> list[Cell]:
    document = {
        "apiVersion": api_version,
        "kind": kind,
        **data,
        "metadata": {"name": "x", "creationTimestamp": ago(minutes=5)} | metadata,
    }
    found = find_kind(GroupVersionKind.parse(f"{api_version}/{kind}"))
    assert found is not None
    return found.table.row(RawObject(document), lambda time: human_age(time, NOW))


def columns(item: Resource) -> tuple[Column, ...]:
    return item.table.columns


def test_every_row_has_a_cell_per_column() -> None:
    for item in RESOURCES:
        if item.group == "resource.k8s.io" or item.stored_as:
            continue
        api_version = str(GroupVersion(item.group, "v1"))
        assert len(row(api_version, item.kind, {})) == len(columns(item)), item.kind


def test_every_column_is_described() -> None:
    for item in RESOURCES:
        assert all(column.description for column in columns(item)), item.kind


def test_events_look_alike_in_both_groups() -> None:
    assert columns(resource("v1", "events")) == columns(resource("events.k8s.io/v1", "events"))


# As a real server answered.
RECORDED = {
    "pods": [
        ("Name", "string", "name", 0),
        ("Ready", "string", "", 0),
        ("Status", "string", "", 0),
        ("Restarts", "string", "", 0),
        ("Age", "string", "", 0),
        ("IP", "string", "", 1),
        ("Node", "string", "", 1),
        ("Nominated Node", "string", "", 1),
        ("Readiness Gates", "string", "", 1),
    ],
    "nodes": [
        ("Name", "string", "name", 0),
        ("Status", "string", "", 0),
        ("Roles", "string", "", 0),
        ("Age", "string", "", 0),
        ("Version", "string", "", 0),
        ("Internal-IP", "string", "", 1),
        ("External-IP", "string", "", 1),
        ("OS-Image", "string", "", 1),
        ("Kernel-Version", "string", "", 1),
        ("Container-Runtime", "string", "", 1),
    ],
}


@pytest.mark.parametrize("plural", RECORDED)
def test_recorded_columns(plural: str) -> None:
    assert [tuple(column) for column in columns(resource("v1", plural))] == RECORDED[plural]


def test_recorded_pod() -> None:
    pod = {"spec": {"nodeName": "tpn-0000", "containers": [{}]}, "status": {"phase": "Pending"}}

    assert row("v1", "Pod", pod, creationTimestamp=ago(seconds=16)) == [
        "x", "0/1", "Pending", "0", "16s", "<none>", "tpn-0000", "<none>", "<none>",
    ]  # fmt: skip


def test_recorded_node() -> None:
    node = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    assert row("v1", "Node", node, creationTimestamp=ago(seconds=19)) == [
        "x", "Ready", "<none>", "19s", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>",
    ]  # fmt: skip


# --- the status of pods ---


def a_status(
    name: str = "c", restarts: int = 0, ready: bool = False, **state: Any
) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, "ready": ready, "state": state}


RUNNING = a_status(ready=True, running={})
TWO_INIT = {"initContainers": [{"name": "a"}, {"name": "b"}]}
SIDECAR = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}


def pod_reporting(status: dict[str, Any], spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return a_pod_manifest(status=status, **(spec or {}))


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        pytest.param(pod_reporting({"phase": "Pending"}), ["0/1", "Pending", "0"], id="pending"),
        pytest.param(
            pod_reporting({"phase": "Failed", "reason": "Evicted"}),
            ["0/1", "Evicted", "0"],
            id="reason",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
                }
            ),
            ["0/1", "SchedulingGated", "0"],
            id="gated",
        ),
        pytest.param(
            pod_reporting({"phase": "Running", "containerStatuses": [RUNNING]}),
            ["1/1", "Running", "0"],
            id="running",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Running",
                    "containerStatuses": [
                        a_status(restarts=3, waiting={"reason": "CrashLoopBackOff"})
                        | {"lastState": {"terminated": {"finishedAt": ago(minutes=5)}}}
                    ],
                }
            ),
            ["0/1", "CrashLoopBackOff", "3 (5m ago)"],
            id="crash-loop",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Succeeded",
                    "containerStatuses": [a_status(terminated={"reason": "Completed"})],
                }
            ),
            ["0/1", "Completed", "0"],
            id="completed",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Running",
                    "containerStatuses": [a_status(terminated={"reason": "Completed"}), RUNNING],
                }
            ),
            ["1/1", "NotReady", "0"],
            id="partly-completed",
        ),
        pytest.param(
            pod_reporting(
                {"phase": "Failed", "containerStatuses": [a_status(terminated={"exitCode": 2})]}
            ),
            ["0/1", "ExitCode:2", "0"],
            id="exit-code",
        ),
        pytest.param(
            pod_reporting(
                {"phase": "Failed", "containerStatuses": [a_status(terminated={"signal": 9})]}
            ),
            ["0/1", "Signal:9", "0"],
            id="signal",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Pending",
                    "initContainerStatuses": [a_status("a", running={}), a_status("b")],
                },
                TWO_INIT,
            ),
            ["0/1", "Init:0/2", "0"],
            id="first-init",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Pending",
                    "initContainerStatuses": [
                        a_status("a", terminated={"exitCode": 0}),
                        a_status("b", waiting={"reason": "PodInitializing"}),
                    ],
                },
                TWO_INIT,
            ),
            ["0/1", "Init:1/2", "0"],
            id="second-init",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Pending",
                    "initContainerStatuses": [
                        a_status("a", restarts=2, waiting={"reason": "ImagePullBackOff"})
                    ],
                },
                TWO_INIT,
            ),
            ["0/1", "Init:ImagePullBackOff", "2"],
            id="init-waits",
        ),
        pytest.param(
            pod_reporting(
                {"initContainerStatuses": [a_status("a", terminated={"exitCode": 1})]}, TWO_INIT
            ),
            ["0/1", "Init:ExitCode:1", "0"],
            id="init-failed",
        ),
        pytest.param(
            pod_reporting(
                {
                    "phase": "Running",
                    "initContainerStatuses": [
                        a_status("s", 1, True, running={}) | {"started": True}
                    ],
                    "containerStatuses": [RUNNING],
                },
                SIDECAR,
            ),
            ["2/2", "Running", "1"],
            id="sidecar",
        ),
    ],
)
def test_pod_status(pod: dict[str, Any], shown: list[str]) -> None:
    assert row("v1", "Pod", pod)[1:4] == shown


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Succeeded"}, "Succeeded"),
    ],
)
def test_pod_being_deleted(status: dict[str, Any], word: str) -> None:
    assert row("v1", "Pod", pod_reporting(status), deletionTimestamp=ago(seconds=1))[2] == word


def test_readiness_gates() -> None:
    spec = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    status = {"podIP": "10.0.0.1", "conditions": [{"type": "a", "status": "True"}]}

    assert row("v1", "Pod", pod_reporting(status, spec))[5:] == [
        "10.0.0.1",
        "<none>",
        "<none>",
        "1/2",
    ]


def test_node() -> None:
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
    node = {
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.38.0", "osImage": "Linux"},
        },
    }

    assert row("v1", "Node", node, labels=labels) == [
        "x", "NotReady,SchedulingDisabled", "gpu,worker", "5m", "v1.38.0", "10.0.0.1", "<none>",
        "Linux", "<unknown>", "<unknown>",
    ]  # fmt: skip


TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]},
}
SELECTOR = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("api_version", "kind", "data", "shown"),
    [
        ("v1", "Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "5m"]),
        ("v1", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "5m"]),
        ("v1", "Secret", {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "5m"]),
        ("v1", "ServiceAccount", {"secrets": [{"name": "s"}]}, ["x", "5m"]),
        (
            "v1",
            "Service",
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIP": "10.96.0.9",
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53}],
                    "selector": {"b": "2", "a": "1"},
                }
            },
            ["x", "NodePort", "10.96.0.9", "<none>", "80:30080/TCP,53/TCP", "5m", "a=1,b=2"],
        ),
        (
            "v1",
            "Service",
            {"spec": {"type": "LoadBalancer", "clusterIP": "None"}},
            ["x", "LoadBalancer", "None", "<pending>", "<none>", "5m", "<none>"],
        ),
        (
            "v1",
            "Endpoints",
            {
                "subsets": [
                    {
                        "addresses": [{"ip": f"10.0.0.{n}"} for n in range(4)],
                        "ports": [{"port": 80}],
                    }
                ]
            },
            ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more...", "5m"],
        ),
        (
            "v1",
            "Event",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "type": "Normal",
                "reason": "Scheduled",
                "message": "ok\n",
                "source": {"component": "s", "host": "h"},
                "firstTimestamp": ago(minutes=3),
                "lastTimestamp": ago(seconds=9),
                "count": 4,
            },
            ["9s", "Normal", "Scheduled", "pod/p", "", "s, h", "ok", "3m", "4", "x"],
        ),
        (
            "v1",
            "Event",
            {"involvedObject": {"kind": "Node"}, "eventTime": ago(seconds=7)},
            ["7s", "", "", "node", "", "", "", "7s", "1", "x"],
        ),
        (
            "v1",
            "PersistentVolume",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "n", "name": "c"},
                    "storageClassName": "fast",
                    "volumeMode": "Block",
                },
                "status": {"phase": "Bound"},
            },
            ["x", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "fast", "<unset>", "", "5m", "Block"],
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            {"status": {"phase": "Pending", "capacity": {"storage": "1Gi"}}},
            ["x", "Pending", "", "", "", "", "<unset>", "5m", "<unset>"],
        ),
        (
            "v1",
            "ResourceQuota",
            {
                "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "3", "limits.cpu": 2}},
                "status": {"used": {"limits.cpu": "1"}},
            },
            ["x", "count/resourceclaims.resource.k8s.io: 0/3", "limits.cpu: 1/2", "5m"],
        ),
        ("v1", "LimitRange", {}, ["x", ago(minutes=5)]),
        ("v1", "PodTemplate", {"template": TEMPLATE}, ["x", "a,b", "i,j", "app=x"]),
        (
            "v1",
            "ReplicationController",
            {"spec": {"replicas": 2, "template": TEMPLATE, "selector": {"app": "x"}}},
            ["x", 2, 0, 0, "5m", "a,b", "i,j", "app=x"],
        ),
        (
            "apps/v1",
            "Deployment",
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            ["x", "1/3", 2, 1, "5m", "a,b", "i,j", "app=x,k"],
        ),
        (
            "apps/v1",
            "ReplicaSet",
            {"spec": {"replicas": 3, "selector": SELECTOR}, "status": {"replicas": 2}},
            ["x", 3, 2, 0, "5m", "", "", "app=x,k"],
        ),
        ("apps/v1", "StatefulSet", {"spec": {"replicas": 3}}, ["x", "0/3", "5m", "", ""]),
        (
            "apps/v1",
            "DaemonSet",
            {"status": {"desiredNumberScheduled": 3, "numberReady": 1}},
            ["x", 3, 0, 1, 0, 0, "<none>", "5m", "", "", "<none>"],
        ),
        ("apps/v1", "ControllerRevision", {"revision": 4}, ["x", "<none>", 4, "5m"]),
        (
            "batch/v1",
            "Job",
            {
                "spec": {"completions": 2},
                "status": {
                    "succeeded": 2,
                    "startTime": ago(minutes=4),
                    "completionTime": ago(minutes=2),
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["x", "Complete", "2/2", "2m", "5m", "", "", "<none>"],
        ),
        (
            "batch/v1",
            "Job",
            {"spec": {"parallelism": 3}, "status": {"startTime": ago(minutes=4)}},
            ["x", "Running", "0/1 of 3", "4m", "5m", "", "", "<none>"],
        ),
        (
            "batch/v1",
            "CronJob",
            {"spec": {"schedule": "@daily", "suspend": False}, "status": {"active": [{}]}},
            ["x", "@daily", "<none>", "False", 1, "<none>", "5m", "", "", "<none>"],
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            {"spec": {"minAvailable": 0}, "status": {"disruptionsAllowed": 1}},
            ["x", "0", "N/A", 1, "5m"],
        ),
        ("rbac.authorization.k8s.io/v1", "Role", {}, ["x", ago(minutes=5)]),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "User", "name": "v"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["x", "Role/r", "5m", "u, v", "", "n/s"],
        ),
        (
            "storage.k8s.io/v1",
            "StorageClass",
            {"provisioner": "p"},
            ["x", "p", "Delete", "Immediate", "false", "5m"],
        ),
        (
            "storage.k8s.io/v1",
            "CSIDriver",
            {"spec": {"attachRequired": False, "tokenRequests": [{"audience": "a"}]}},
            ["x", False, False, False, "a", False, "<none>", "5m"],
        ),
        ("storage.k8s.io/v1", "CSINode", {"spec": {"drivers": [{}, {}]}}, ["x", 2, "5m"]),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            {
                "spec": {
                    "attacher": "a",
                    "nodeName": "n",
                    "source": {"persistentVolumeName": "v"},
                },
                "status": {"attached": True},
            },
            ["x", "a", "v", "n", True, "5m"],
        ),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            {"value": 7, "preemptionPolicy": "Never"},
            ["x", 7, False, "5m", "Never"],
        ),
        ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "h"}}, ["x", "h", "5m"]),
        ("node.k8s.io/v1", "RuntimeClass", {"handler": "h"}, ["x", "h", "5m"]),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {}],
                "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}],
            },
            ["x", "IPv4", "80,*", "10.0.0.1,10.0.0.2", "5m"],
        ),
    ],
)
def test_rows(api_version: str, kind: str, data: dict[str, Any], shown: list[Cell]) -> None:
    assert row(api_version, kind, data) == shown


def test_the_default_storage_class_is_marked() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}

    shown = row("storage.k8s.io/v1", "StorageClass", {}, annotations=annotations)

    assert shown[0] == "x (default)"


def test_the_owner_of_a_revision() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}

    shown = row("apps/v1", "ControllerRevision", {}, ownerReferences=[owner])

    assert shown[1] == "statefulset.apps/web"
