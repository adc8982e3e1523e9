"""New pods, most of them with a mistake in a container, a volume, or what the whole pod has.

    python -m tests.conformance.pod_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/pods-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import PODS, container_changes, pod
from tests.conformance.wire_steps import DEPLOYMENTS, Step, each, print_answers, workload

Document = dict[str, Any]
EXEC = {"exec": {"command": ["x"]}}
VOLUMES = [
    {"name": "v", "emptyDir": {}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "p"}},
]


def containers() -> Iterator[Step]:
    for change in (*container_changes(), *_ports(), *_probes(), *_mounts(), *_others()):
        container = {"name": "c", "image": "i"} | change
        yield _created({"containers": [container], "volumes": VOLUMES})
        yield _templated({"containers": [container], "volumes": VOLUMES})
    for change in each(
        {"livenessProbe": {}},
        {"lifecycle": {"preStop": EXEC}},
        {"restartPolicy": "Foo"},
        {"name": "c"},
        {"image": ""},
    ):
        for policy in each({}, {"restartPolicy": "Always"}):
            init: Document = {"name": "i", "image": "i"} | policy | change
            yield _created({"initContainers": [init]})
    port = {"containerPort": 80, "hostPort": 80}
    shared = [{"name": name, "image": "i", "ports": [port]} for name in ("a", "b")]
    yield _created({"containers": shared})
    yield _created(
        {
            "containers": [
                {"name": "a", "image": "i"},
                {"name": "a", "image": "i"},
                {"name": "", "image": "i"},
            ]
        }
    )
    yield _created({"containers": []})
    never = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    yield _created({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"} | never]})
    yield _created({"ephemeralContainers": [{"name": "e", "image": "i"}]})
    for host_users in (True, False):
        context = {"securityContext": {"procMount": "Unmasked"}}
        yield _created(
            {"hostUsers": host_users, "containers": [{"name": "c", "image": "i"} | context]}
        )


def _created(spec: Document, **metadata: Any) -> Step:
    return Step("POST", f"{PODS}?dryRun=All", pod("x", spec, **metadata))


def _templated(spec: Document) -> Step:
    """The same in a Deployment: some rules hold for pods alone."""
    deployment = workload("x")
    deployment["spec"]["template"]["spec"] = spec
    return Step("POST", f"{DEPLOYMENTS}?dryRun=All", deployment)


def _ports() -> Iterator[Document]:
    for port in each(
        {}, {"containerPort": 0}, {"containerPort": 70000}, {"containerPort": -1}, {"containerPort": 80, "name": "Bad"},
        {"containerPort": 80, "name": "waytoolongnameforaport"}, {"containerPort": 80, "name": "123"},
        {"containerPort": 80, "name": "a--b"}, {"containerPort": 80, "name": "-a"}, {"containerPort": 80, "protocol": "Foo"},
        {"containerPort": 80, "hostPort": 70000}, {"containerPort": 80, "hostPort": -1}, {"containerPort": 80, "protocol": ""},
        {"containerPort": "80"},
    ):  # fmt: skip
        yield {"ports": [port]}
    yield {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]}
    yield {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]}


def _probes() -> Iterator[Document]:
    for probe in each(
        {}, {"exec": {}}, {"httpGet": {}}, {"httpGet": {"port": 80, "scheme": "Foo"}}, {"httpGet": {"port": "Bad_Name"}},
        {"httpGet": {"port": 70000}}, {"httpGet": {"port": 80, "httpHeaders": [{"name": "bad header", "value": "x"}]}},
        {"httpGet": {"port": 80, "path": ""}}, {"tcpSocket": {}}, {"tcpSocket": {"port": 0}}, {"tcpSocket": {"port": "x"}},
        {"grpc": {}}, {"grpc": {"port": 70000}}, EXEC | {"tcpSocket": {"port": 1}}, EXEC | {"initialDelaySeconds": -1},
        EXEC | {"timeoutSeconds": -1}, EXEC | {"periodSeconds": -1}, EXEC | {"successThreshold": -1},
        EXEC | {"failureThreshold": -1}, EXEC | {"successThreshold": 2}, EXEC | {"terminationGracePeriodSeconds": 0},
        EXEC | {"terminationGracePeriodSeconds": 5},
    ):  # fmt: skip
        for field in ("livenessProbe", "readinessProbe", "startupProbe"):
            yield {field: probe}
    for hook in each(
        {}, {"exec": {}}, {"sleep": {"seconds": -1}}, {"sleep": {"seconds": 0}}, {"sleep": {"seconds": 100}},
        EXEC | {"sleep": {"seconds": 1}}, {"httpGet": {}}, {"tcpSocket": {"port": 0}},
    ):  # fmt: skip
        yield {"lifecycle": {"preStop": hook}}
        yield {"lifecycle": {"postStart": hook}}
    yield {"lifecycle": {}}


def _mounts() -> Iterator[Document]:
    for mount in each(
        {"subPath": "/a"}, {"subPath": "a/../b"}, {"subPathExpr": "/a"}, {"subPath": "a", "subPathExpr": "b"},
        {"mountPropagation": "Bidirectional"}, {"recursiveReadOnly": "Enabled"}, {"mountPath": ""}, {"mountPath": "a:b"},
        {"recursiveReadOnly": "Enabled", "readOnly": True, "mountPropagation": "HostToContainer"},
        {"recursiveReadOnly": "Disabled"}, {"recursiveReadOnly": "IfPossible", "readOnly": True}, {"mountPropagation": ""},
    ):  # fmt: skip
        yield {"volumeMounts": [{"name": "v", "mountPath": "/x"} | mount]}
    for device in each(
        {"name": "claim", "devicePath": "/x"}, {"name": "claim"}, {"devicePath": "/x"}, {"name": "claim", "devicePath": "/a/../b"},
        {"name": "v", "devicePath": "/x"}, {"name": "absent", "devicePath": ""},
    ):  # fmt: skip
        yield {"volumeDevices": [device]}
    device = {"name": "claim", "devicePath": "/x"}
    yield {"volumeDevices": [device, device]}
    yield {"volumeDevices": [device], "volumeMounts": [{"name": "claim", "mountPath": "/y"}]}
    yield {"volumeDevices": [device], "volumeMounts": [{"name": "v", "mountPath": "/x"}]}


def _others() -> Iterator[Document]:
    for field, value in (
        ("apiVersion", "v2"), ("fieldPath", "metadata.labels['a']"), ("fieldPath", "metadata.labels['bad key!']"),
        ("fieldPath", "metadata.annotations['A/B']"), ("fieldPath", "metadata.name['a']"), ("fieldPath", "metadata.labels"),
        ("fieldPath", "spec.host"), ("fieldPath", "status.phase"), ("fieldPath", "spec.restartPolicy"),
    ):  # fmt: skip
        reference = {"fieldPath": "metadata.name"} | {field: value}
        yield {"env": [{"name": "A", "valueFrom": {"fieldRef": reference}}]}
    for resource in each(
        {}, {"resource": "limits.cpu", "divisor": "2"}, {"resource": "limits.memory", "divisor": "2"},
        {"resource": "limits.memory", "divisor": "1Mi"}, {"resource": "requests.ephemeral-storage", "divisor": "3"},
        {"resource": "limits.hugepages-2Mi", "divisor": "3"},
        {"resource": "limits.cpu", "divisor": "1m"},
    ):  # fmt: skip
        yield {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": resource}}]}
    reference = {"name": "s", "key": "k"}
    for source in each(
        {"secretKeyRef": reference, "configMapKeyRef": reference}, {"secretKeyRef": {"key": "k"}},
        {"secretKeyRef": {"name": "s", "key": "bad key!"}}, {"configMapKeyRef": {"name": "s", "key": ".."}},

    ):  # fmt: skip
        yield {"env": [{"name": "A", "valueFrom": source}]}
    for name in ("a b", "1a", "a\tb", "ä", "a.b", "-", "A" * 300):
        yield {"env": [{"name": name, "value": "x"}]}
    for policy in each(
        {"resourceName": "cpu"}, {"resourceName": "foo", "restartPolicy": "NotRequired"}, {"restartPolicy": "NotRequired"},
        {"resourceName": "cpu", "restartPolicy": "Foo"},
    ):  # fmt: skip
        yield {"resizePolicy": [policy]}
    cpu = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
    yield {"resizePolicy": [cpu, cpu]}
    for profile in each(
        {}, {"type": ""}, {"type": "Localhost", "localhostProfile": "/a"}, {"type": "Localhost", "localhostProfile": "a/.."},
        {"type": "RuntimeDefault", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": ""},
        {"type": "Localhost", "localhostProfile": " a"}, {"type": "Localhost", "localhostProfile": "a" * 5000},
    ):  # fmt: skip
        yield {"securityContext": {"seccompProfile": profile}}
        yield {"securityContext": {"appArmorProfile": profile}}
    for options in each(
        {"gmsaCredentialSpec": ""}, {"runAsUserName": ""}, {"runAsUserName": "a\\b\\c"}, {"runAsUserName": "x" * 300},
        {"gmsaCredentialSpecName": ""},
    ):  # fmt: skip
        yield {"securityContext": {"windowsOptions": options}}
    yield {"securityContext": {"runAsUser": 2**31}}
    yield {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}
    yield {"restartPolicy": "Always"}
    yield {"restartPolicy": "Never"}
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
    for rules in each(
        [rule],
        [{}],
        [rule | {"action": "Foo"}],
        [rule | {"exitCodes": {"operator": "Foo", "values": []}}],
    ):
        yield {"restartPolicyRules": rules}
        yield {"restartPolicy": "Never", "restartPolicyRules": rules}


# --- the rest of the spec ---


def pods() -> Iterator[Step]:
    for spec in _specs():
        yield _created(spec)
    for volume in _volumes():
        yield _created({"volumes": [volume]})
    for metadata in each(
        {"labels": {"bad key!": "x"}}, {"annotations": {"bad key!": "x"}}, {"generateName": "Bad_"}, {"finalizers": ["x"]},
        {"ownerReferences": [{}]}, {"namespace": "other"},
        {"name": "Bad_Name"}, {"name": ""},

    ):  # fmt: skip
        yield Step("POST", f"{PODS}?dryRun=All", pod("x") | {"metadata": {"name": "x"} | metadata})


def _specs() -> Iterator[Document]:
    yield from (
        {"restartPolicy": "Foo"}, {"dnsPolicy": "Foo"}, {"dnsPolicy": "None"}, {"dnsConfig": {"nameservers": ["x"]}},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}},
        {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}}, {"dnsConfig": {"options": [{}]}},
        {"activeDeadlineSeconds": 0}, {"activeDeadlineSeconds": -5},
        {"activeDeadlineSeconds": 2**40}, {"nodeName": "Bad_Name"}, {"hostname": "Bad_Name"}, {"subdomain": "Bad_Name"},
        {"hostname": "a.b"}, {"subdomain": "a.b"}, {"hostnameOverride": "Bad_Name"},
        {"priorityClassName": "absent"}, {"priority": 5}, {"preemptionPolicy": "Foo"}, {"runtimeClassName": "Bad_Name"},
        {"schedulerName": ""}, {"imagePullSecrets": [{}]}, {"imagePullSecrets": [{"name": "Bad_Name"}]},
        {"hostAliases": [{"ip": "x"}]}, {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["Bad_Name"]}]}, {"hostAliases": [{}]},
        {"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}]},
        {"hostPID": True, "shareProcessNamespace": True}, {"hostUsers": False, "hostNetwork": True},
        {"hostUsers": False, "hostPID": True}, {"os": {"name": "foo"}}, {"os": {}}, {"os": {"name": "windows"}, "hostPID": True},
        {"readinessGates": [{"conditionType": "bad type!"}]}, {"readinessGates": [{}]}, {"overhead": {"cpu": "-1"}},
        {"setHostnameAsFQDN": True, "hostNetwork": True}, {"securityContext": {"runAsUser": -1}},
        {"securityContext": {"runAsGroup": -1}}, {"securityContext": {"fsGroup": -1}},
        {"securityContext": {"supplementalGroups": [-1]}}, {"securityContext": {"sysctls": [{}]}},
        {"securityContext": {"sysctls": [{"name": "bad name!", "value": "x"}]}},
        {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "x"}] * 2}},
        {"securityContext": {"fsGroupChangePolicy": "Foo"}}, {"securityContext": {"supplementalGroupsPolicy": "Foo"}},
        {"securityContext": {"seccompProfile": {"type": "Foo"}}}, {"securityContext": {"appArmorProfile": {"type": "Foo"}}},
        {"securityContext": {"seLinuxChangePolicy": "Foo"}}, {"enableServiceLinks": None}, {"tolerations": [{"operator": "Foo"}]},
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}, {"tolerations": [{"effect": "Foo", "operator": "Exists"}]},
        {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, {"tolerations": [{"key": "bad key!"}]}, {"tolerations": [{}]},
        {"nodeSelector": {"bad key!": "x"}}, {"nodeSelector": {"a": "bad value!"}}, {"schedulingGates": [{}]},
        {"schedulingGates": [{"name": "a"}, {"name": "a"}]}, {"schedulingGates": [{"name": "a"}], "nodeName": "n"},

        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
        {"foo": 1},
    )  # fmt: skip


def _volumes() -> Iterator[Document]:
    for source in each(
        {}, {"emptyDir": {}, "hostPath": {"path": "/x"}}, {"hostPath": {}}, {"hostPath": {"path": "a/../b"}},
        {"hostPath": {"path": "/x", "type": "Foo"}}, {"emptyDir": {"sizeLimit": "-1"}}, {"emptyDir": {"medium": "Foo"}},
        {"secret": {}}, {"secret": {"secretName": "s", "defaultMode": 4096}}, {"secret": {"secretName": "s", "items": [{}]}},
        {"secret": {"secretName": "s", "items": [{"key": "k", "path": "/x"}]}}, {"configMap": {}},
        {"configMap": {"name": "c", "items": [{"key": "k", "path": "../x"}]}}, {"configMap": {"name": "c", "defaultMode": -1}},
        {"persistentVolumeClaim": {}}, {"persistentVolumeClaim": {"claimName": "Bad_Name"}}, {"downwardAPI": {"items": [{}]}},
        {"downwardAPI": {"items": [{"path": "p"}]}},
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "spec.nodeName"}}]}},

        {"projected": {"sources": [{"secret": {}}]}}, {"csi": {}}, {"csi": {"driver": "Bad_Name!"}}, {"nfs": {}},
        {"nfs": {"server": "s", "path": "x"}}, {"iscsi": {}}, {"ephemeral": {}}, {"gitRepo": {}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"image": {}}, {"image": {"reference": "r", "pullPolicy": "Foo"}},
    ):  # fmt: skip
        yield {"name": "v"} | source
    yield {"emptyDir": {}}
    yield {"name": "Bad_Name", "emptyDir": {}}


def all_steps() -> list[Step]:
    return [*containers(), *pods()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
