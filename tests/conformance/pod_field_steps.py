"""New pods with every family of fields, good and bad, and objects of other kinds with empty parts.

    python -m tests.conformance.pod_field_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount` and all DRA feature gates on, without a
scheduler and a controller manager. `gzip -9n` of what it prints is `data/pod-fields-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import (
    ALL_DEVICES,
    CLAIMS,
    CLASSES,
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    SLICE,
    SLICES,
    TEMPLATES,
    pod,
)
from tests.conformance.wire_steps import DEPLOYMENTS, STRATEGIC, Step, each, print_answers, workload

Document = dict[str, Any]
CONTAINER: Document = {"name": "c", "image": "i"}
EXEC = {"exec": {"command": ["x"]}}
SELECTOR = {"matchLabels": {"a": "b"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _created(spec: Document, **metadata: Any) -> Step:
    return Step("POST", f"{PODS}?dryRun=All", pod("x", spec, **metadata))


def _with_container(**fields: Any) -> Step:
    return _created({"containers": [CONTAINER | fields]})


# --- pods that are good ---


def good_pods() -> Iterator[Step]:
    for spec in (*_good_specs(), *_good_host_specs(), *_good_placements()):
        yield _created(spec)
    for container in _good_containers():
        spec = {"containers": [CONTAINER | container], "volumes": _mounted_volumes()}
        yield _created(spec)
        yield Step("POST", f"{DEPLOYMENTS}?dryRun=All", _deployment(spec))
        yield _created(
            spec
            | {
                "containers": [CONTAINER],
                "initContainers": [
                    {"name": "side", "image": "i", "restartPolicy": "Always"} | container
                ],
            }
        )
    for volume in _good_volumes():
        yield _created({"volumes": [volume]})
        yield _created({"volumes": [volume], "serviceAccountName": "default"})
    yield Step("POST", f"{DEPLOYMENTS}?dryRun=All", _deployment({"volumes": _good_volumes()}))
    for metadata in each(
        {"annotations": {"a/b": "c"}}, {"labels": {"a": "b"}}, {"generateName": "p-"}, {"finalizers": ["example.com/f"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}]},
    ):  # fmt: skip
        yield _created({}, **metadata)


def _deployment(spec: Document) -> Document:
    deployment = workload("x")
    deployment["spec"]["template"]["spec"] = {"containers": [CONTAINER]} | spec
    return deployment


def _good_specs() -> tuple[Document, ...]:
    amounts = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    exact = {"limits": {"cpu": "1", "memory": "1Gi"}}
    huge = {"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "limits": {"hugepages-2Mi": "4Mi"}}
    init = [
        {"name": "first", "image": "i", "resources": amounts},
        {
            "name": "side",
            "image": "i:v1",
            "restartPolicy": "Always",
            "startupProbe": EXEC,
            "resources": amounts,
        },
    ]
    return (
        {}, {"restartPolicy": "Never"}, {"restartPolicy": "OnFailure", "activeDeadlineSeconds": 5},
        {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 600},
        {"initContainers": init}, {"initContainers": init, "resources": amounts}, {"resources": amounts}, {"resources": exact},
        {"resources": exact, "containers": [CONTAINER | {"resources": exact}]},
        {"resources": amounts, "containers": [CONTAINER | {"resources": {"limits": {"cpu": "1"}}}]},
        {"resources": amounts, "containers": [CONTAINER | {"resources": {"requests": {"cpu": "500m"}}}, CONTAINER | {"name": "d"}]},
        {"resources": {"limits": {"memory": "1Gi"}}}, {"resources": {"requests": {"memory": "1Gi"}}}, {"resources": {}},
        {"resources": huge},
        {"containers": [CONTAINER | {"resources": huge}]},
        {"containers": [CONTAINER | {"resources": {"limits": {"example.com/x": "1"}}}]},
        {"containers": [CONTAINER | {"resources": exact}]},
        {"containers": [CONTAINER | {"resources": {"claims": [{"name": "g"}, {"name": "h", "request": "r"}]}}],
         "resourceClaims": [{"name": "g", "resourceClaimName": "g"}, {"name": "h", "resourceClaimTemplateName": "h"}]},
        {"schedulingGates": [{"name": "example.com/g"}, {"name": "h"}]}, {"readinessGates": [{"conditionType": "example.com/r"}]},
        {"schedulerName": "other"}, {"automountServiceAccountToken": False}, {"serviceAccountName": "default"},
        {"serviceAccount": "default"}, {"imagePullSecrets": [{"name": "s"}]}, {"enableServiceLinks": False},
        {"priorityClassName": "system-node-critical"}, {"preemptionPolicy": "PreemptLowerPriority"},
    )  # fmt: skip


def _good_host_specs() -> tuple[Document, ...]:
    windows = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
    return (
        {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True}, {"hostnameOverride": "h.example.com"},
        {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a.b", "c"]}, {"ip": "::1"}]},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", "fd00::1"], "searches": ["a.b.", "_tcp.example.com", "."],
                                            "options": [{"name": "ndots", "value": "2"}, {"name": "debug"}]}},
        {"dnsPolicy": "Default", "dnsConfig": {}}, {"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True},
        {"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]},
        {"hostNetwork": True, "initContainers": [{"name": "i", "image": "i", "ports": [{"containerPort": 80}]}]},
        {"hostPID": True, "hostIPC": True}, {"shareProcessNamespace": True}, {"hostUsers": False}, {"hostUsers": True},
        {"os": {"name": "linux"}}, {"os": {"name": "windows"}},
        {"os": {"name": "windows"}, "hostNetwork": True, "securityContext": windows},
        {"hostNetwork": True, "securityContext": windows},
        {"hostNetwork": True, "containers": [CONTAINER | {"securityContext": windows}]},
        {"os": {"name": "windows"}, "securityContext": {"windowsOptions": {
            "gmsaCredentialSpecName": "g", "gmsaCredentialSpec": "{}", "runAsUserName": "ContainerUser"}}},
        {"securityContext": {
            "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "fsGroup": 5, "supplementalGroups": [1, 2],
            "fsGroupChangePolicy": "OnRootMismatch", "supplementalGroupsPolicy": "Strict", "seLinuxChangePolicy": "Recursive",
            "seLinuxOptions": {"level": "s0:c1,c2"}, "seccompProfile": {"type": "Localhost", "localhostProfile": "p/x.json"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"},
            "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}, {"name": "net/ipv4/ip_local_port_range", "value": "1 2"}]}},
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "appArmorProfile": {"type": "Unconfined"}}},
        {"tolerations": [
            {"operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "c", "effect": "NoSchedule"}, {"key": "d", "effect": "NoExecute", "tolerationSeconds": -5}]},
    )  # fmt: skip


def _good_placements() -> tuple[Document, ...]:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    term = {"topologyKey": "zone", "labelSelector": SELECTOR}
    node_term = {
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["b"]},
            {"key": "c", "operator": "Exists"},
            {"key": "d", "operator": "Gt", "values": ["5"]},
        ],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
    }
    return (
        {"nodeSelector": {"a": "b", "example.com/c": ""}},
        {"topologySpreadConstraints": [
            spread | {"labelSelector": SELECTOR, "minDomains": 2, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
                      "matchLabelKeys": ["pod-template-hash"]},
            spread | {"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}]},
        {"topologySpreadConstraints": []},
        {"affinity": {}}, {"affinity": {"nodeAffinity": {}, "podAffinity": {}, "podAntiAffinity": {}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [node_term]},
                                       PREFERRED: [{"weight": 1, "preference": node_term}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"namespaces": ["a"], "namespaceSelector": {}}],
                                      PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [term | {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["y"]}]}}},
    )  # fmt: skip


def _good_containers() -> tuple[Document, ...]:
    reference = {"name": "s", "key": "k.e_y-1"}
    return (
        {"command": ["a"], "args": ["$(B)"], "workingDir": "/w", "stdin": True, "stdinOnce": True, "tty": True},
        {"image": "registry.example.com/a@sha256:" + "0" * 64, "imagePullPolicy": "Always"},
        {"ports": [{"containerPort": 80, "name": "http", "hostPort": 8080, "hostIP": "127.0.0.1"},
                   {"containerPort": 53, "protocol": "UDP", "name": "dns"}, {"containerPort": 5, "protocol": "SCTP"}]},
        {"ports": []},
        {"env": [
            {"name": "A", "value": "x"}, {"name": "a.b-c_d"}, {"name": "1 odd"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "E", "valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "requests.memory", "divisor": "1Mi"}}},
            {"name": "F", "valueFrom": {"secretKeyRef": reference}},
            {"name": "G", "valueFrom": {"configMapKeyRef": reference | {"optional": True}}},
            {"name": "H", "valueFrom": {"fileKeyRef": {"volumeName": "cache", "path": "e.env", "key": "K"}}}],
         "envFrom": [{"configMapRef": {"name": "a"}, "prefix": "P_"}, {"secretRef": {"name": "b", "optional": True}}]},
        {"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "X-A", "value": "b"}]}, "terminationGracePeriodSeconds": 5},
         "readinessProbe": {"grpc": {"port": 5}, "successThreshold": 3}, "startupProbe": {"tcpSocket": {"port": "http", "host": "h"}}},
        {"livenessProbe": {"httpGet": {"path": "x?y", "port": "http", "scheme": "HTTPS", "host": "h"}, "timeoutSeconds": 3}},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 3}}, "postStart": {"httpGet": {"port": 80}}}},
        {"lifecycle": {"preStop": EXEC, "postStart": {"tcpSocket": {"port": 5}}}},
        {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"},
                          {"resourceName": "memory", "restartPolicy": "RestartContainer"}],
         "resources": {"limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}}},
        {"volumeMounts": [
            {"name": "empty", "mountPath": "/a", "subPath": "s/t", "mountPropagation": "None"},
            {"name": "empty", "mountPath": "/b", "subPathExpr": "$(A)", "readOnly": True, "recursiveReadOnly": "IfPossible"},
            {"name": "host", "mountPath": "c", "mountPropagation": "HostToContainer"}, {"name": "empty", "mountPath": "C:\\d"}]},
        {"volumeDevices": [{"name": "claim", "devicePath": "/dev/x"}]},
        {"securityContext": {
            "runAsUser": 0, "runAsNonRoot": False, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "RuntimeDefault"}, "procMount": "Default", "seLinuxOptions": {"user": "u"}}},
        {"securityContext": {"privileged": True}, "volumeMounts": [
            {"name": "host", "mountPath": "/x", "mountPropagation": "Bidirectional"}]},
        {"terminationMessagePath": "/x", "terminationMessagePolicy": "FallbackToLogsOnError"},
    )  # fmt: skip


def _mounted_volumes() -> list[Document]:
    names = ("empty", "host", "claim", "cache")
    return [volume for volume in _good_volumes() if volume["name"] in names]


def _good_volumes() -> list[Document]:
    items = {
        "items": [{"key": "k", "path": "a/b", "mode": 0o400}],
        "defaultMode": 0o600,
        "optional": True,
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    files = {"items": [
        {"path": "p", "fieldRef": {"fieldPath": "metadata.labels['a']"}},
        {"path": "q", "mode": 0, "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]}  # fmt: skip
    token = {"serviceAccountToken": {"path": "t", "audience": "a", "expirationSeconds": 600}}
    trust = {"clusterTrustBundle": {"name": "t", "path": "ca.pem"}}
    sources: tuple[tuple[str, Document], ...] = (
        ("empty", {"emptyDir": {}}), ("memory", {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
        ("huge", {"emptyDir": {"medium": "HugePages-2Mi"}}), ("host", {"hostPath": {"path": "/x", "type": "DirectoryOrCreate"}}),
        ("host-any", {"hostPath": {"path": "C:\\x", "type": ""}}),
        ("secret", {"secret": {"secretName": "s"} | items}), ("config", {"configMap": {"name": "c"} | items}),
        ("claim", {"persistentVolumeClaim": {"claimName": "p", "readOnly": True}}), ("downward", {"downwardAPI": files}),
        ("projected", {"projected": {"sources": [
            {"secret": {"name": "s"}}, {"configMap": {"name": "c", "optional": True}}, {"downwardAPI": files | {"items": [
                {"path": "r", "fieldRef": {"fieldPath": "metadata.name"}}]}}, token]}}),
        ("token", {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}], "defaultMode": 0o400}}),
        ("none", {"projected": {"sources": []}}), ("trust", {"projected": {"sources": [trust]}}),
        ("csi", {"csi": {"driver": "d.example.com", "fsType": "ext4", "volumeAttributes": {"a": "b"},
                         "nodePublishSecretRef": {"name": "s"}}}),
        ("nfs", {"nfs": {"server": "s", "path": "/x"}}),
        ("iscsi", {"iscsi": {"targetPortal": "1.2.3.4:5", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}),
        ("ephemeral", {"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": claim}}}),
        ("image", {"image": {"reference": "r", "pullPolicy": "Never"}}), ("image-default", {"image": {"reference": "r:latest"}}),
        ("flex", {"flexVolume": {"driver": "d/x"}}), ("fc", {"fc": {"targetWWNs": ["w"], "lun": 1}}),
        ("git", {"gitRepo": {"repository": "r"}}), ("rbd", {"rbd": {"monitors": ["m"], "image": "i"}}),
        ("ceph", {"cephfs": {"monitors": ["m"]}}), ("gluster", {"glusterfs": {"endpoints": "e", "path": "p"}}),
        ("azure-file", {"azureFile": {"secretName": "s", "shareName": "n"}}),
        ("azure-disk", {"azureDisk": {"diskName": "d", "diskURI": "https://blob/x"}}),
        ("aws", {"awsElasticBlockStore": {"volumeID": "v"}}), ("gce", {"gcePersistentDisk": {"pdName": "p"}}),
        ("cinder", {"cinder": {"volumeID": "v"}}), ("vsphere", {"vsphereVolume": {"volumePath": "v"}}),
        ("portworx", {"portworxVolume": {"volumeID": "v"}}), ("quobyte", {"quobyte": {"registry": "r:1", "volume": "v"}}),
        ("scale-io", {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}}),
        ("storage-os", {"storageos": {"volumeName": "v"}}), ("flocker", {"flocker": {"datasetName": "d"}}),
        ("photon", {"photonPersistentDisk": {"pdID": "p"}}),
        ("cache", {"emptyDir": {}}),
    )  # fmt: skip
    return [{"name": name} | source for name, source in sources]


# --- pods with a mistake ---


def bad_pods() -> Iterator[Step]:
    for seconds in (-1, -2, 0):
        yield _created({"terminationGracePeriodSeconds": seconds})
        yield Step(
            "POST",
            f"{DEPLOYMENTS}?dryRun=All",
            _deployment({"terminationGracePeriodSeconds": seconds}),
        )
    yield from _stop_signals()
    yield from _files_of_variables()
    yield from _pod_resources()
    yield from _windows()
    for spec in _bad_specs():
        yield _created(spec)
    for volume in _bad_volumes():
        spec = {"serviceAccountName": "default"} if "projected" in volume else {}
        yield _created({"volumes": [{"name": "v"} | volume]} | spec)
    yield from _annotated()
    for port in each(
        {"containerPort": 80, "hostIP": "127.0.0.1"}, {"containerPort": 80, "hostIP": "x"},
        {"containerPort": 80, "hostIP": "x", "hostPort": 80},
        {"containerPort": 80, "hostIP": "127.0.0.01", "hostPort": 80}, {"containerPort": 80, "hostIP": "::1", "hostPort": 80},
    ):  # fmt: skip
        yield _with_container(ports=[port])
        yield Step(
            "POST",
            f"{DEPLOYMENTS}?dryRun=All",
            _deployment({"containers": [CONTAINER | {"ports": [port]}]}),
        )


def _stop_signals() -> Iterator[Step]:
    for signal in ("SIGTERM", "SIGKILL", "SIGRTMIN+3", "FOO", "", "sigterm"):
        container = CONTAINER | {"lifecycle": {"stopSignal": signal}}
        for system in each({}, {"os": {"name": "linux"}}, {"os": {"name": "windows"}}):
            yield _created({"containers": [container]} | system)
    signal_container = CONTAINER | {"lifecycle": {"stopSignal": "SIGUSR1", "preStop": EXEC}}
    yield _created({"containers": [signal_container], "os": {"name": "linux"}})


def _files_of_variables() -> Iterator[Step]:
    good = {"volumeName": "v", "path": "a/b.env", "key": "K"}
    for change in each(
        {}, {"volumeName": ""}, {"path": ""}, {"key": ""}, {"optional": True}, {"volumeName": "absent"}, {"path": "/a"},
        {"path": "../a"}, {"path": "a/../b"}, {"key": "bad key"}, {"key": "a=b"}, {"volumeName": "Bad_Name"}, {"volumeName": "h"},
        {"key": "1a"}, {"path": "a:b"}, {"key": "K" * 300},
    ):  # fmt: skip
        variable = {"name": "A", "valueFrom": {"fileKeyRef": good | change}}
        volumes = [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/x"}}]
        yield _created({"containers": [CONTAINER | {"env": [variable]}], "volumes": volumes})
    variable = {"name": "A", "valueFrom": {"fileKeyRef": {}}}
    yield _with_container(env=[variable])


def _pod_resources() -> Iterator[Step]:
    for resources in each(
        {"requests": {"cpu": "-1"}}, {"requests": {"foo": "1"}}, {"requests": {"example.com/x": "1"}, "limits": {"example.com/x": "1"}},
        {"requests": {"ephemeral-storage": "1Gi"}}, {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, {"claims": [{"name": "x"}]},
        {"requests": {"hugepages-2Mi": "2Mi"}}, {"limits": {"hugepages-2Mi": "2Mi"}}, {"requests": {"cpu": "x"}},
        {"limits": {"hugepages-2Mi": "3Mi"}}, {"limits": {"storage": "1"}}, {"requests": {"memory": "0.5"}},
    ):  # fmt: skip
        yield _created({"resources": resources})
    for whole, own in (
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}), ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}),
        ({"limits": {"memory": "1Gi"}}, {"requests": {"memory": "2Gi"}}), ({"limits": {"cpu": "3"}}, {"requests": {"cpu": "1"}}),
        ({"limits": {"cpu": "3"}}, {"limits": {"cpu": "1"}}), ({"requests": {"memory": "1Gi"}}, {"limits": {"hugepages-2Mi": "2Mi"}}),
        ({"limits": {"memory": "3Gi"}}, {"requests": {"cpu": "1"}}),
    ):  # fmt: skip
        containers = [CONTAINER | {"resources": own}]
        yield _created({"resources": whole, "containers": containers})
        yield _created({"resources": whole, "containers": containers, "os": {"name": "windows"}})
        side = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": own}
        yield _created({"resources": whole, "containers": containers, "initContainers": [side]})
        yield _created(
            {"resources": whole, "initContainers": [{"name": "i", "image": "i", "resources": own}]}
        )


def _windows() -> Iterator[Step]:
    for value in (True, False, None):
        options = {"windowsOptions": {"hostProcess": value}}
        for host in each({}, {"hostNetwork": True}):
            yield _created({"securityContext": options} | host)
            yield _created({"containers": [CONTAINER | {"securityContext": options}]} | host)
    yes, no = ({"windowsOptions": {"hostProcess": value}} for value in (True, False))
    yield _created(
        {
            "hostNetwork": True,
            "securityContext": yes,
            "containers": [CONTAINER | {"securityContext": no}],
        }
    )
    yield _created(
        {
            "hostNetwork": True,
            "securityContext": no,
            "containers": [CONTAINER | {"securityContext": yes}],
        }
    )
    yield _created(
        {
            "hostNetwork": True,
            "containers": [CONTAINER | {"securityContext": yes}, CONTAINER | {"name": "d"}],
        }
    )
    system = {"os": {"name": "windows"}}
    for spec in each(
        {"securityContext": {"seLinuxOptions": {"level": "x"}}}, {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        {"securityContext": {"fsGroup": 1}}, {"securityContext": {"runAsUser": 1}}, {"shareProcessNamespace": True},
        {"securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}, {"hostUsers": False}, {"hostIPC": True},
        {"securityContext": {"supplementalGroups": [1]}}, {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
        {"securityContext": {"fsGroupChangePolicy": "Always"}}, {"securityContext": {"runAsGroup": 1}},
        {"containers": [CONTAINER | {"securityContext": {"privileged": True}}]},
        {"containers": [CONTAINER | {"securityContext": {"capabilities": {"drop": ["ALL"]}}}]},
        {"containers": [CONTAINER | {"securityContext": {"readOnlyRootFilesystem": True}}]},
        {"containers": [CONTAINER | {"securityContext": {"allowPrivilegeEscalation": False}}]},
        {"containers": [CONTAINER | {"securityContext": {"procMount": "Default"}}]},
        {"containers": [CONTAINER | {"securityContext": {"runAsUser": 1}}]},
        {"initContainers": [{"name": "i", "image": "i", "securityContext": {"runAsUser": 1}}]},
    ):  # fmt: skip
        yield _created(system | spec)
    yield _created(
        {"os": {"name": "linux"}, "securityContext": {"windowsOptions": {"runAsUserName": "x"}}}
    )
    context = {"securityContext": {"windowsOptions": {"runAsUserName": "x"}}}
    yield _created({"os": {"name": "linux"}, "containers": [CONTAINER | context]})


def _bad_specs() -> tuple[Document, ...]:
    searches: tuple[list[str], ...] = (
        ["Bad_Name!"], ["a" * 300], [f"a{number}.example.com" for number in range(33)], [""], ["a" * 60 + "." + "b" * 60] * 20,
        ["A.example.com"], ["-a"], ["a..b"], ["_a.b"],
    )  # fmt: skip
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    term = {"topologyKey": "zone", "labelSelector": SELECTOR}
    return (
        *({"dnsConfig": {"searches": names}} for names in searches),
        {"topologySpreadConstraints": [{}]}, {"topologySpreadConstraints": [spread | {"matchLabelKeys": ["x"]}]},
        {"topologySpreadConstraints": [spread | {"labelSelector": SELECTOR, "matchLabelKeys": ["a"]}]},
        {"topologySpreadConstraints": [spread | {"labelSelector": SELECTOR, "matchLabelKeys": ["bad key!"]}]},
        {"topologySpreadConstraints": [spread | {"labelSelector": SELECTOR, "matchLabelKeys": ["x", "x"]}]},
        {"topologySpreadConstraints": [spread | {"maxSkew": 0, "minDomains": 0}]}, {"topologySpreadConstraints": [spread, spread]},
        {"topologySpreadConstraints": [spread | {"nodeAffinityPolicy": "Foo", "nodeTaintsPolicy": "Foo"}]},
        {"topologySpreadConstraints": [spread | {"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]},
        {"topologySpreadConstraints": [spread | {"topologyKey": "bad key!", "whenUnsatisfiable": "Foo"}]},
        {"topologySpreadConstraints": [spread | {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}]},
        {"affinity": {"podAffinity": {REQUIRED: [{}]}}}, {"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}},
        {"affinity": {"podAffinity": {PREFERRED: [{}]}}}, {"affinity": {"podAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": term}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"matchLabelKeys": ["bad key!"]}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z", "matchLabelKeys": ["x"]}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"namespaces": ["Bad_Name"]}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [term | {"namespaceSelector": {"matchLabels": {"a": "bad value!"}}}]}}},
        {"affinity": {"nodeAffinity": {PREFERRED: [{}]}}}, {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}}},
                {"overhead": {"cpu": "1"}}, {"runtimeClassName": "absent"}, {"runtimeClassName": "a.b"}, {"nodeName": "a.b"},
        {"hostUsers": False, "hostIPC": True}, {"hostnameOverride": "h", "hostNetwork": True},
        {"hostnameOverride": "h", "setHostnameAsFQDN": True}, {"hostnameOverride": "a" * 65}, {"hostname": "a" * 64},
        {"readinessGates": [{"conditionType": "a"}, {"conditionType": "a"}]},
        {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, {"hostAliases": [{"ip": "127.0.0.01"}]},
        {"securityContext": {"sysctls": [{"name": "net.ipv4.x", "value": ""}], }, "hostNetwork": True},
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}, "hostIPC": True},
        {"securityContext": {"sysctls": [{"name": "kernel/msgmax", "value": "1"}, {"name": "kernel.msgmax", "value": "1"}]}},
        {"tolerations": [{"key": "a", "value": "bad value!"}]},
        {"resourceClaims": [{"name": "a"}]}, {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}] * 2},
        {"nodeSelector": {"a": ""}}, {"nodeSelector": None}, {"containers": None}, {"volumes": [{}]},
        {"containers": [{"name": "c"}]}, {"initContainers": [{}]}, {"preemptionPolicy": "Never"},
        {"priorityClassName": "Bad_Name"}, {"schedulerName": "Bad Name"}, {"restartPolicy": ""},
        {"ephemeralContainers": []},
        {"schedulingGroup": {"podGroupName": "g"}}, {"schedulingGroup": {}}, {"schedulingGroup": {"podGroupName": "Bad_Name"}},
    )  # fmt: skip


def _bad_volumes() -> tuple[Document, ...]:
    token = {"path": "t"}
    projected: tuple[Any, ...] = (
        {}, {"sources": None}, {"sources": [{"serviceAccountToken": {}}]},
        {"sources": [{"serviceAccountToken": token | {"expirationSeconds": 5}}]},
        {"sources": [{"serviceAccountToken": token | {"expirationSeconds": 2**33}}]},
        {"sources": [{"serviceAccountToken": token | {"path": "../x"}}]},
        {"sources": [{"serviceAccountToken": token, "secret": {"name": "s"}}]},
        {"sources": [{"configMap": {}}]}, {"sources": [{"downwardAPI": {"items": [{}]}}]}, {"sources": [{"downwardAPI": {}}]},
        {"sources": [{"clusterTrustBundle": {}}]}, {"sources": [{"clusterTrustBundle": {"path": "p"}}]},
        {"sources": [{"clusterTrustBundle": {"path": "p", "signerName": "s/x", "name": "n"}}]},
        {"sources": [{"podCertificate": {}}]},
        {"sources": [{"podCertificate": {"signerName": "e.com/s", "keyType": "ED25519", "credentialBundlePath": "c"}}]},
        {"sources": [{"secret": {"name": "s"}}], "defaultMode": 4096},
    )  # fmt: skip
    return (
        *({"projected": source} for source in projected),
        {"secret": {"secretName": "Bad_Name"}}, {"configMap": {"name": "Bad_Name"}}, {"iscsi": {"targetPortal": "p"}},
        {"iscsi": {"targetPortal": "p", "iqn": "x", "lun": 0}}, {"iscsi": {"targetPortal": "p", "iqn": "eui.0", "lun": 300}},
        {"csi": {"driver": "d", "nodePublishSecretRef": {}}}, {"fc": {}}, {"fc": {"targetWWNs": ["w"]}}, {"flexVolume": {}},
        {"rbd": {}}, {"cephfs": {}}, {"glusterfs": {}}, {"azureFile": {}}, {"azureDisk": {}}, {"awsElasticBlockStore": {}},
        {"gcePersistentDisk": {}}, {"cinder": {}}, {"vsphereVolume": {}}, {"portworxVolume": {}}, {"quobyte": {}}, {"scaleIO": {}},
        {"storageos": {}}, {"flocker": {}}, {"photonPersistentDisk": {}}, {"gitRepo": {"repository": "r", "directory": "/x"}},
        {"gitRepo": {"repository": "r", "directory": "../x"}}, {"emptyDir": None},
        {"downwardAPI": {"items": [{"path": "/p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {}}}},
        {"foo": {}},
    )  # fmt: skip


def _annotated() -> Iterator[Step]:
    armor, seccomp = (
        "container.apparmor.security.beta.kubernetes.io/",
        "container.seccomp.security.alpha.kubernetes.io/",
    )
    for written in each(
        {f"{armor}c": "runtime/default"}, {f"{armor}c": "unconfined"}, {f"{armor}c": "localhost/p"},
        {f"{armor}c": ""}, {f"{armor}absent": "runtime/default"}, {f"{armor}c": "localhost/"},
        {f"{seccomp}c": "runtime/default"}, {f"{seccomp}c": "foo"}, {"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"},
        {"seccomp.security.alpha.kubernetes.io/pod": "localhost/p"}, {"seccomp.security.alpha.kubernetes.io/pod": "foo"},
        {"kubernetes.io/config.mirror": "x"}, {"kubernetes.io/config.source": "x"},
        {"controller.kubernetes.io/pod-deletion-cost": "x"}, {"controller.kubernetes.io/pod-deletion-cost": "5"},
        {"controller.kubernetes.io/pod-deletion-cost": "+5"}, {"controller.kubernetes.io/pod-deletion-cost": "05"},
        {"scheduler.alpha.kubernetes.io/critical-pod": ""},
        {"a": "x" * 300_000}, {"batch.kubernetes.io/job-completion-index": "x"},
    ):  # fmt: skip
        yield _created({}, annotations=written)
    mirror = {"kubernetes.io/config.mirror": "x"}
    for spec in each(
        {"nodeName": "n"}, {"nodeName": "n", "serviceAccountName": "s"}, {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
        {"nodeName": "n", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        {"nodeName": "n", "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
        {"nodeName": "n", "volumes": [{"name": "v", "configMap": {"name": "s"}}]},
        {"nodeName": "n", "containers": [CONTAINER | {"envFrom": [{"secretRef": {"name": "s"}}]}]},
    ):  # fmt: skip
        yield _created(spec, annotations=mirror)
    for value in ("localhost/p", "unconfined"):
        same = {"appArmorProfile": {"type": "RuntimeDefault"}}
        spec = {"containers": [CONTAINER | {"securityContext": same}]}
        yield _created(spec, annotations={f"{armor}c": value})
    yield _created(
        {
            "containers": [
                CONTAINER
                | {
                    "securityContext": {
                        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}
                    }
                }
            ]
        }
    )
    yield _created({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}})
    yield _created({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}})


def combined() -> Iterator[Step]:
    """Pods at the edges of the rules above."""
    page = {"hugepages-2Mi": "2Mi"}
    system = {"os": {"name": "windows"}}
    for spec in each(
        system | {"hostUsers": True}, system | {"hostPID": False, "shareProcessNamespace": False},
        system | {"securityContext": {"runAsNonRoot": True}},
        system | {"hostNetwork": True, "resources": {}},
        {"containers": [CONTAINER | {"resources": {"limits": {"hugepages-2Mi": "0", "cpu": "1"}}}]},
        {"containers": [CONTAINER | {"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}}]},
        {"containers": [CONTAINER | {"resources": {"limits": page | {"memory": "1Gi"}}}], "resources": {"limits": {"memory": "2Gi"}}},
        {"containers": [CONTAINER | {"resources": {"limits": page, "requests": {"cpu": "1"}}}]},
        {"resources": {"limits": {"cpu": "2"}}, "containers": [CONTAINER | {"resources": {"limits": {"example.com/x": "1"}}}]},
        {"resources": {"requests": {"cpu": "2"}}, "containers": [CONTAINER | {"resources": {"requests": {"cpu": "1500m"}}}] * 1},
        {"dnsConfig": {"searches": ["svc.cluster.local", "example.com."]}}, {"serviceAccountName": "default", "hostAliases": []},
        {"hostnameOverride": "a" * 64}, {"hostnameOverride": "a.b", "setHostnameAsFQDN": False},
        {"volumes": [{"name": "v", "fc": {"wwids": ["w"]}}]}, {"volumes": [{"name": "v", "flocker": {"datasetUUID": "u"}}]},
        {"volumes": [{"name": "v", "iscsi": {"targetPortal": "p", "iqn": "eui.0123456789abcdef"}}]},
        {"volumes": [{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}}]},
        {"volumes": [{"name": "v", "downwardAPI": {"items": [
            {"path": "p", "resourceFieldRef": {"containerName": "c", "resource": "requests.memory", "divisor": "1Ki"}}]}}]},
        {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]}},
        {"securityContext": {"sysctls": [{"name": "kernel.sem", "value": "1"}, {"name": "fs.mqueue.msg_max", "value": "1"}]}},
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}]}}},
    ):  # fmt: skip
        yield _created(spec)
    for written in each(
        {"controller.kubernetes.io/pod-deletion-cost": "-5"}, {"controller.kubernetes.io/pod-deletion-cost": "0"},
        {"seccomp.security.alpha.kubernetes.io/pod": "docker/default"}, {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
        {"container.seccomp.security.alpha.kubernetes.io/absent": "localhost/a/b"},
        {"kubernetes.io/config.hash": "x", "kubernetes.io/config.seen": "x"},
    ):  # fmt: skip
        yield _created({}, annotations=written)
    armor = "container.apparmor.security.beta.kubernetes.io/i"
    init = {"initContainers": [{"name": "i", "image": "i"}]}
    yield _created(init, annotations={armor: "runtime/default"})


# --- pods that exist ---


def changed_pods() -> Iterator[Step]:
    yield Step("POST", PODS, pod("p", {"nodeName": "n", "terminationGracePeriodSeconds": -1}))
    yield Step(
        "PATCH", f"{PODS}/p?dryRun=All", {"spec": {"terminationGracePeriodSeconds": 1}}, MERGE
    )
    yield Step(
        "PATCH", f"{PODS}/p?dryRun=All", {"spec": {"terminationGracePeriodSeconds": 5}}, MERGE
    )
    yield Step("PATCH", f"{PODS}/p?dryRun=All", {"spec": {"activeDeadlineSeconds": 5}}, MERGE)
    path = f"{PODS}/p/ephemeralcontainers?dryRun=All"
    for change in each(
        {"lifecycle": {}},
        {"lifecycle": {"stopSignal": "SIGTERM"}}, {"env": []}, {"volumeMounts": []},
    ):  # fmt: skip
        body = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"} | change]}}
        yield Step("PATCH", path, body, STRATEGIC)
    for metadata in each(
        {"finalizers": ["x"]}, {"finalizers": ["kubernetes"]}, {"finalizers": []},
        {"annotations": {"kubernetes.io/config.mirror": "x"}}, {"labels": {"a": "b"}},
    ):  # fmt: skip
        yield Step("PATCH", f"{PODS}/p/status?dryRun=All", {"metadata": metadata}, MERGE)
        yield Step("PATCH", f"{PODS}/p?dryRun=All", {"metadata": metadata}, MERGE)
    yield from _resizes()


def _resizes() -> Iterator[Step]:
    amounts = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    exact = {"limits": {"cpu": "1", "memory": "1Gi"}}
    side = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": amounts}
    whole = {"resources": {"limits": {"cpu": "4", "memory": "4Gi"}}, "initContainers": [side]}
    yield Step("POST", PODS, pod("whole", whole))
    yield Step("POST", PODS, pod("burst", {"containers": [CONTAINER | {"resources": amounts}]}))
    yield Step("POST", PODS, pod("exact", {"containers": [CONTAINER | {"resources": exact}]}))
    yield Step("POST", PODS, pod("best"))
    for name in ("whole", "burst", "exact", "best"):
        path = f"{PODS}/{name}/resize?dryRun=All"
        for resources in each(
            {"requests": {"cpu": "500m"}}, {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "2", "memory": "2Gi"}}, {},
        ):  # fmt: skip
            containers = [CONTAINER | {"resources": resources}]
            yield Step("PATCH", path, {"spec": {"containers": containers}}, STRATEGIC)
            yield Step("PUT", path, pod(name, {"containers": containers}))
        for resources in each(
            {"limits": {"cpu": "5", "memory": "5Gi"}}, {"requests": {"memory": "1Gi"}}, None
        ):
            yield Step("PATCH", path, {"spec": {"resources": resources}}, STRATEGIC)
            yield Step("PATCH", path, {"spec": {"resources": resources}}, MERGE)
    for resources in each(
        {"requests": {"cpu": "500m"}}, {"limits": {"memory": "3Gi"}}, {"limits": {"memory": "5Gi"}}
    ):
        body = {"spec": {"initContainers": [{"name": "side", "resources": resources}]}}
        yield Step("PATCH", f"{PODS}/whole/resize?dryRun=All", body, STRATEGIC)


# --- other kinds ---


def nodes() -> Iterator[Step]:
    yield Step("POST", NODES, {"metadata": {"name": "node"}})
    for status in each(
        {"addresses": [{}]}, {"images": [{}]}, {"images": [{"names": []}]}, {"images": [{"names": ["a"], "sizeBytes": 5}]},
        {"volumesAttached": [{}]}, {"volumesAttached": [{"name": "v"}]}, {"volumesInUse": ["v"]}, {"conditions": [{}]},
        {"addresses": [{"type": "InternalIP"}]}, {"addresses": [{"address": "1.1.1.1"}]}, {"addresses": []}, {"images": []},
        {"volumesAttached": []}, {"runtimeHandlers": [{}]}, {"features": {}}, {"config": {}}, {"capacity": {}},
        {"conditions": [{"type": "Ready", "status": "True"}]}, {"conditions": []}, {"images": [{"sizeBytes": 0}]},
    ):  # fmt: skip
        yield Step("PATCH", f"{NODES}/node/status?dryRun=All", {"status": status}, MERGE)
        yield Step("POST", f"{NODES}?dryRun=All", {"metadata": {"name": "new"}, "status": status})
    for spec in each(
        {"taints": []},
        {"taints": [{}]},
        {"podCIDRs": []},
        {"podCIDRs": [""]},
    ):
        yield Step("POST", f"{NODES}?dryRun=All", {"metadata": {"name": "new"}, "spec": spec})


def dra() -> Iterator[Step]:
    objects: tuple[tuple[str, Document], ...] = (
        (CLAIMS, {"metadata": {"name": "claim"}, "spec": ALL_DEVICES}),
        (TEMPLATES, {"metadata": {"name": "template"}, "spec": {"spec": ALL_DEVICES}}),
        (CLASSES, {"metadata": {"name": "class"}, "spec": {}}),
        (SLICES, SLICE),
    )
    for path, body in objects:
        yield Step("POST", path, body)
        named = f"{path}/{body['metadata']['name']}?dryRun=All"
        for patch in each(
            {"spec": None}, {"spec": {}}, {"apiVersion": "resource.k8s.io/v1beta1"}, {"apiVersion": "resource.k8s.io/v1beta2"},
            {"apiVersion": "resource.k8s.io/v1"}, {"apiVersion": "resource.k8s.io/v1beta1", "metadata": {"labels": {"a": "b"}}},
            {"apiVersion": "resource.k8s.io/v1beta1", "spec": None}, {"spec": {"devices": None}}, {"spec": {"spec": None}},
        ):  # fmt: skip
            yield Step("PATCH", named, patch, MERGE)
            yield Step("PATCH", named, patch, STRATEGIC)
        for spec in each(None, {}):
            yield Step("PUT", named, body | {"spec": spec})
            yield Step("POST", f"{path}?dryRun=All", {"metadata": {"name": "new"}, "spec": spec})
        yield Step("POST", f"{path}?dryRun=All", {"metadata": {"name": "new"}})
        yield Step("PATCH", named, [{"op": "remove", "path": "/spec"}], JSON_PATCH)
        operation = {"op": "replace", "path": "/apiVersion", "value": "resource.k8s.io/v1beta1"}
        yield Step("PATCH", named, [operation], JSON_PATCH)
    template = {"metadata": {"name": "new"}}
    for spec in each(
        {"spec": {}}, {"spec": {"devices": {}}}, {"metadata": None, "spec": ALL_DEVICES}
    ):
        yield Step("POST", f"{TEMPLATES}?dryRun=All", template | {"spec": spec})


def scales() -> Iterator[Step]:
    yield Step("POST", DEPLOYMENTS, workload("sc"))
    path = f"{DEPLOYMENTS}/sc/scale?dryRun=All"
    for patch in each(
        {"spec": {"replicas": "x"}}, {"spec": {"replicas": 1.5}}, {"spec": []}, {"spec": "x"}, {"spec": {"replicas": True}},
        {"spec": {"replicas": {}}}, {"metadata": []}, {"metadata": {"labels": "x"}}, {"status": "x"},
        {"metadata": {"name": 5}}, {"spec": 5},
    ):  # fmt: skip
        yield Step("PATCH", path, patch, STRATEGIC)
        yield Step("PATCH", path, patch, MERGE)


def all_steps() -> list[Step]:
    parts = (good_pods, bad_pods, combined, changed_pods, nodes, dra, scales)
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
