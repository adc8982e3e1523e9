"""Defaults of kinds outside resource.k8s.io."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.identities import GroupVersionKind
from allot.apiserver.defaults.pod_priority import Denied, PriorityClasses, resolve_priority
from allot.apiserver.defaults.pods import pull_policy, tolerate_short_outages
from allot.apiserver.defaults.services import NODE_PORTS, keep_addresses, with_addresses
from allot.apiserver.kinds.job import with_job_selector
from allot.apiserver.kinds.resources import RESOURCES, find_kind

Data = dict[str, Any]


def filled(kind: str, data: Data) -> Data:
    """With defaults, applied twice: what is filled in once needs no more."""
    resource = find_kind(GroupVersionKind.parse(kind))
    assert resource is not None
    before = copy.deepcopy(data)
    once = resource.defaults(data)
    assert data == before
    assert resource.defaults(once) is once
    return once


def spec_of(kind: str, spec: Data) -> Data:
    found: Data = filled(kind, {"metadata": {"name": "x"}, "spec": spec})["spec"]
    return found


OUTAGES = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
CONTAINER = {
    "imagePullPolicy": "Always",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
TEMPLATE_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
PLAIN_TEMPLATE: Data = {"spec": {"containers": []}}
FULL_TEMPLATE: Data = {"metadata": {}, "spec": {"containers": []} | TEMPLATE_SPEC}


def test_pod() -> None:
    spec = spec_of(
        "v1/Pod", {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    )

    assert spec == TEMPLATE_SPEC | {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"} | CONTAINER],
        "enableServiceLinks": True,
    }


NODE_INFO = dict.fromkeys(
    (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
        "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/busybox", "Always"),
        ("registry:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:0123", "IfNotPresent"),
        ("", "IfNotPresent"),
        (None, "IfNotPresent"),
    ],
)
def test_pull_policy(image: object, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        (
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            {
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                }
            },
        ),
        (
            {"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}},
            {
                "livenessProbe": {
                    "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                    "periodSeconds": 5,
                    "timeoutSeconds": 1,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                }
            },
        ),
        (
            {"env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {
                "env": [
                    {
                        "name": "E",
                        "valueFrom": {
                            "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}
                        },
                    }
                ]
            },
        ),
    ],
)
def test_containers(given: Data, default: Data) -> None:
    spec = spec_of("v1/Pod", {"containers": [given], "initContainers": [given]})

    for field in ("containers", "initContainers"):
        shown = spec[field][0]
        assert {name: shown[name] for name in default} == default


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ({"name": "v"}, {"name": "v", "emptyDir": {}}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"secret": {}}, {"secret": {"defaultMode": 420}}),
        ({"configMap": {"defaultMode": 256}}, {"configMap": {"defaultMode": 256}}),
        ({"hostPath": {"path": "/"}}, {"hostPath": {"path": "/", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"image": {"reference": "i:1"}},
            {"image": {"reference": "i:1", "pullPolicy": "IfNotPresent"}},
        ),
    ],
)
def test_volumes(given: Data, default: Data) -> None:
    assert spec_of("v1/Pod", {"volumes": [given]})["volumes"] == [default]


def test_host_network_ports() -> None:
    container = {"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 1}]}
    spec = spec_of("v1/Pod", {"hostNetwork": True, "containers": [container]})

    assert [port["hostPort"] for port in spec["containers"][0]["ports"]] == [80, 1]


def test_requests_of_the_pod_as_a_whole() -> None:
    spec = spec_of(
        "v1/Pod",
        {
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        },
    )

    assert spec["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        ({"operator": "Exists"}, 0),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, 1),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, 2),
        ({"key": "other"}, 2),
    ],
)
def test_tolerations(toleration: Data, added: int) -> None:
    tolerations = tolerate_short_outages({"tolerations": [toleration]})["tolerations"]

    assert tolerations == [toleration, *OUTAGES[2 - added :]]


@pytest.mark.parametrize(
    ("kind", "given", "default"),
    [
        pytest.param(
            "v1/Namespace",
            {"metadata": {"name": "n"}},
            {
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "status": {"phase": "Active"},
            },
            id="namespace",
        ),
        pytest.param(
            "v1/Node",
            {"status": {"capacity": {"cpu": "1"}}},
            {
                "spec": {},
                "status": {
                    "capacity": {"cpu": "1"},
                    "allocatable": {"cpu": "1"},
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": NODE_INFO,
                },
            },
            id="node",
        ),
        pytest.param(
            "v1/Secret",
            {"stringData": {"a": "new"}, "data": {"a": "b2xk", "b": "Yg=="}},
            {"type": "Opaque", "data": {"a": "bmV3", "b": "Yg=="}},
            id="secret",
        ),
        pytest.param(
            "v1/Endpoints",
            {"subsets": [{"ports": [{"port": 1}]}]},
            {"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
            id="endpoints",
        ),
        pytest.param(
            "v1/LimitRange",
            {
                "spec": {
                    "limits": [
                        {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "x": "3"}},
                        {"type": "Pod", "max": {"cpu": "2"}},
                    ]
                }
            },
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Container",
                            "max": {"cpu": "2"},
                            "min": {"cpu": "1", "x": "3"},
                            "default": {"cpu": "2"},
                            "defaultRequest": {"cpu": "2", "x": "3"},
                        },
                        {"type": "Pod", "max": {"cpu": "2"}},
                    ]
                }
            },
            id="limit-range",
        ),
        pytest.param(
            "v1/PersistentVolumeClaim",
            {"spec": {}},
            {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
            id="volume-claim",
        ),
        pytest.param(
            "v1/PersistentVolume",
            {"spec": {"hostPath": {"path": "/"}}},
            {
                "spec": {
                    "hostPath": {"path": "/", "type": ""},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            },
            id="volume",
        ),
        pytest.param(
            "v1/ReplicationController",
            {
                "metadata": {},
                "spec": {"template": {"metadata": {"labels": {"a": "b"}}}},
                "status": {},
            },
            {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "template": {"metadata": {"labels": {"a": "b"}}},
                    "replicas": 1,
                    "selector": {"a": "b"},
                },
                "status": {"replicas": 0},
            },
            id="replication-controller",
        ),
        pytest.param(
            "apps/v1/Deployment",
            {"spec": {"template": PLAIN_TEMPLATE}},
            {
                "spec": {
                    "template": FULL_TEMPLATE,
                    "replicas": 1,
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    },
                }
            },
            id="deployment",
        ),
        pytest.param(
            "apps/v1/Deployment",
            {"spec": {"replicas": 0, "strategy": {"type": "Recreate"}}},
            {
                "spec": {
                    "replicas": 0,
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                    "strategy": {"type": "Recreate"},
                }
            },
            id="deployment-recreate",
        ),
        pytest.param(
            "apps/v1/StatefulSet",
            {"spec": {}},
            {
                "spec": {
                    "replicas": 1,
                    "podManagementPolicy": "OrderedReady",
                    "revisionHistoryLimit": 10,
                    "persistentVolumeClaimRetentionPolicy": {
                        "whenDeleted": "Retain",
                        "whenScaled": "Retain",
                    },
                    "updateStrategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"partition": 0, "maxUnavailable": 1},
                    },
                }
            },
            id="stateful-set",
        ),
        pytest.param(
            "apps/v1/DaemonSet",
            {"spec": {}, "status": {"numberReady": 1}},
            {
                "spec": {
                    "revisionHistoryLimit": 10,
                    "updateStrategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                    },
                },
                "status": {
                    "numberReady": 1,
                    "currentNumberScheduled": 0,
                    "numberMisscheduled": 0,
                    "desiredNumberScheduled": 0,
                },
            },
            id="daemon-set",
        ),
        pytest.param(
            "batch/v1/Job",
            {"metadata": {}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            {
                "metadata": {},  # labels come with the selector
                "spec": {
                    "template": {"metadata": {"labels": {"a": "b"}}},
                    "completions": 1,
                    "parallelism": 1,
                    "backoffLimit": 6,
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "manualSelector": False,
                    "podReplacementPolicy": "TerminatingOrFailed",
                },
            },
            id="job",
        ),
        pytest.param(
            "batch/v1/Job",
            {"spec": {"parallelism": 2, "backoffLimitPerIndex": 1, "podFailurePolicy": {}}},
            {
                "spec": {
                    "parallelism": 2,
                    "backoffLimitPerIndex": 1,
                    "podFailurePolicy": {},
                    "backoffLimit": 2147483647,
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "manualSelector": False,
                    "podReplacementPolicy": "Failed",
                }
            },
            id="work-queue",
        ),
        pytest.param(
            "batch/v1/CronJob",
            {"spec": {"jobTemplate": {"spec": {"template": PLAIN_TEMPLATE}}}},
            {
                "spec": {
                    "jobTemplate": {"metadata": {}, "spec": {"template": FULL_TEMPLATE}},
                    "concurrencyPolicy": "Allow",
                    "suspend": False,
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                }
            },
            id="cron-job",
        ),
        pytest.param(
            "storage.k8s.io/v1/StorageClass",
            {},
            {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
            id="storage-class",
        ),
        pytest.param(
            "storage.k8s.io/v1/CSIDriver",
            {"spec": {"attachRequired": False}},
            {
                "spec": {
                    "attachRequired": False,
                    "podInfoOnMount": False,
                    "storageCapacity": False,
                    "fsGroupPolicy": "ReadWriteOnceWithFSType",
                    "requiresRepublish": False,
                    "seLinuxMount": False,
                    "preventPodSchedulingIfMissing": False,
                    "volumeLifecycleModes": ["Persistent"],
                }
            },
            id="csi-driver",
        ),
        pytest.param(
            "scheduling.k8s.io/v1/PriorityClass",
            {"value": 5},
            {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
            id="priority-class",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1/RoleBinding",
            {
                "roleRef": {"kind": "Role"},
                "subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}],
            },
            {
                "roleRef": {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "ServiceAccount"},
                ],
            },
            id="role-binding",
        ),
        pytest.param(
            "discovery.k8s.io/v1/EndpointSlice",
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "name": "", "protocol": "TCP"}]},
            id="endpoint-slice",
        ),
        pytest.param("coordination.k8s.io/v1/Lease", {"spec": {}}, {"spec": {}}, id="lease"),
        pytest.param("v1/ConfigMap", {"data": {}}, {"data": {}}, id="config-map"),
    ],
)
def test_kinds(kind: str, given: Data, default: Data) -> None:
    assert filled(kind, given) == default


def test_what_needs_no_change_is_shared() -> None:
    affinity: Data = {"nodeAffinity": {}}
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [], "affinity": affinity}}

    filled_pod = filled("v1/Pod", pod)

    assert filled_pod["metadata"] is pod["metadata"]
    assert filled_pod["spec"]["affinity"] is affinity


_WORDS = st.sampled_from(
    [
        *(
            "metadata",
            "spec",
            "status",
            "template",
            "labels",
            "containers",
            "initContainers",
            "volumes",
        ),
        *("resources", "limits", "requests", "tolerations", "ports", "type", "strategy", "secret"),
        *(
            "rollingUpdate",
            "updateStrategy",
            "jobTemplate",
            "data",
            "stringData",
            "roleRef",
            "name",
        ),
        *(
            "subjects",
            "subsets",
            "capacity",
            "sessionAffinity",
            "sessionAffinityConfig",
            "clientIP",
        ),
        *(
            "selector",
            "livenessProbe",
            "httpGet",
            "projected",
            "sources",
            "env",
            "max",
            "hostNetwork",
        ),
    ]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "ClientIP", "Container"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_WORDS, _ANYTHING, max_size=5))
def test_nothing_is_too_strange(data: Data) -> None:
    for resource in RESOURCES:
        if resource.group != "resource.k8s.io":
            filled(str(resource.gvk("v1")), data)


# --- priorities ---

CLASSES = PriorityClasses(
    {"low": {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}}.get,
    {"metadata": {"name": "usual"}, "value": 3},
)


@pytest.mark.parametrize(
    ("spec", "resolved"),
    [
        (
            {},
            {
                "priority": 3,
                "preemptionPolicy": "PreemptLowerPriority",
                "priorityClassName": "usual",
            },
        ),
        (
            {"priorityClassName": "low"},
            {"priority": -5, "preemptionPolicy": "Never", "priorityClassName": "low"},
        ),
        (
            {"priorityClassName": "system-node-critical", "priority": 2000001000},
            {
                "priority": 2000001000,
                "preemptionPolicy": "PreemptLowerPriority",
                "priorityClassName": "system-node-critical",
            },
        ),
    ],
)
def test_priority(spec: Data, resolved: Data) -> None:
    assert resolve_priority({"spec": spec}, CLASSES) == {"spec": resolved}


def test_priority_without_classes() -> None:
    assert resolve_priority({"spec": {}}) == {
        "spec": {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "gone"}, "no PriorityClass with name gone was found"),
        (
            {"priority": 5},
            (
                "the integer value of priority (5) must not be provided in pod spec; priority "
                "admission controller computed 3 from the given PriorityClass name"
            ),
        ),
        (
            {"preemptionPolicy": "Never"},
            (
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
                "priority admission controller computed PreemptLowerPriority from the given "
                "PriorityClass name"
            ),
        ),
    ],
)
def test_priority_is_not_for_clients_to_choose(spec: Data, message: str) -> None:
    assert resolve_priority({"spec": spec}, CLASSES) == Denied(message)


# --- jobs ---


def test_job_selector() -> None:
    job = {
        "metadata": {"name": "j", "uid": "u"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}}},
    }

    spec = with_job_selector(job)["spec"]

    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert spec["template"]["metadata"]["labels"] == {
        "a": "b",
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u",
        "job-name": "j",
    }


def test_manual_selector() -> None:
    job = {"metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": True}}

    assert with_job_selector(job) is job


# --- services ---


def a_service(name: str = "s", **spec: Any) -> Data:
    return filled("v1/Service", {"metadata": {"name": name, "namespace": "n"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "default"),
    [
        (
            {"ports": [{"port": 80}]},
            {
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
            },
        ),
        (
            {"type": "ExternalName", "externalName": "e", "sessionAffinityConfig": {}},
            {"type": "ExternalName", "externalName": "e", "sessionAffinity": "None"},
        ),
        (
            {"type": "LoadBalancer", "sessionAffinity": "ClientIP"},
            {
                "type": "LoadBalancer",
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                "internalTrafficPolicy": "Cluster",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
            },
        ),
    ],
)
def test_service(spec: Data, default: Data) -> None:
    assert a_service(**spec)["spec"] == default


def test_addresses() -> None:
    first = with_addresses(a_service("a"), (), ())["spec"]
    again = with_addresses(a_service("a"), (), ())["spec"]
    beside = with_addresses(a_service("a"), {first["clusterIP"]}, ())["spec"]

    assert first == again
    assert first["clusterIP"] != beside["clusterIP"]
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert (first["ipFamilies"], first["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_headless_services_stay_so() -> None:
    spec = with_addresses(a_service(clusterIP="None"), (), ())["spec"]

    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


def test_services_outside_get_no_address() -> None:
    service = a_service(type="ExternalName")

    assert with_addresses(service, (), ()) is service


def test_node_ports() -> None:
    service = a_service(type="NodePort", ports=[{"port": 80}, {"port": 81, "nodePort": 30001}])

    ports = with_addresses(service, (), set(NODE_PORTS) - {30001, 31234})["spec"]["ports"]

    assert [port["nodePort"] for port in ports] == [31234, 30001]


def test_an_update_keeps_addresses() -> None:
    ports = [{"port": 80}]
    stored = with_addresses(a_service(type="NodePort", ports=ports), (), ())

    sent = a_service(type="NodePort", ports=[*ports, {"port": 81}])
    kept = keep_addresses(sent, stored)["spec"]

    assert kept["clusterIP"] == stored["spec"]["clusterIP"]
    assert kept["ports"][0] == stored["spec"]["ports"][0]
    assert "nodePort" not in kept["ports"][1]
