"""Requests to subresources of pods, nodes, workloads and DRA kinds, most of them with a mistake.

    python -m tests.conformance.subresource_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/subresources-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.wire_steps import (
    DEPLOYMENTS,
    IN_DEFAULT,
    STRATEGIC,
    Step,
    each,
    print_answers,
    workload,
)

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = f"{IN_DEFAULT}/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ABSENT_UID = "00000000-0000-0000-0000-000000000000"
Document = dict[str, Any]


def pod(name: str, spec: Document | None = None, **metadata: Any) -> Document:
    containers = [{"name": "c", "image": "i"}]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


# --- binding ---

HELD: Document = {"finalizers": ["example.com/held"]}
"""A pod with it stays when it is deleted."""


def bindings() -> Iterator[Step]:
    yield Step("POST", PODS, pod("a"))
    yield Step("POST", PODS, pod("other"))
    yield Step("POST", PODS, pod("placed", {"nodeName": "n1"}))
    yield Step("POST", PODS, pod("gated", {"schedulingGates": [{"name": "g"}]}))
    yield Step("POST", PODS, pod("leaving", **HELD))
    yield Step("DELETE", f"{PODS}/leaving")
    yield from _bad_targets()
    yield from _bad_bindings()
    for name in ("placed", "gated", "leaving", "absent", "Bad_Name"):
        body = {"metadata": {"name": name}, "target": {"name": "n2"}}
        yield Step("POST", f"{PODS}/{name}/binding", body)
        yield Step("POST", f"{PODS}/{name}/binding?dryRun=All", body)
    refused = {"metadata": {"name": "leaving", "uid": ABSENT_UID}, "target": {"name": "n2"}}
    yield Step("POST", f"{PODS}/leaving/binding", refused)
    elsewhere = "/api/v1/namespaces/absent/pods/a/binding"
    yield Step("POST", elsewhere, {"metadata": {"name": "a"}, "target": {"name": "n"}})
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        sent: Document | None = None if method in ("GET", "DELETE") else {}
        yield Step(
            method, f"{PODS}/a/binding", sent, MERGE if method == "PATCH" else "application/json"
        )
    bound = {
        "metadata": {
            "name": "a",
            "uid": "<uid a>",
            "annotations": {"x": "y"},
            "labels": {"l": "m"},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "missing-node"},
    }
    yield Step("POST", f"{PODS}/a/binding", bound)
    yield Step("POST", f"{PODS}/a/binding", bound)
    yield Step("POST", f"{PODS}/a/binding", bound | {"target": {"name": "n3"}})
    yield Step("GET", f"{PODS}/a")


def _bad_targets() -> Iterator[Step]:
    targets: tuple[Any, ...] = (
        None, {}, {"name": ""}, {"kind": "Node"}, {"kind": "Node", "name": ""}, {"kind": "Foo"},
        {"kind": "Foo", "name": "n"}, {"kind": "node", "name": "n"}, {"kind": "Pod", "name": "n"},
        {"kind": "Minion", "name": "n"}, {"kind": "", "name": "n"}, {"name": "n", "apiVersion": "v2"},
        {"name": "n", "apiVersion": "apps/v1", "kind": "Node"}, {"name": "Bad_Name!"}, {"name": "a/b"}, {"name": ".."},
        {"name": "n", "namespace": "other"}, {"name": "n", "uid": ABSENT_UID}, {"name": "n", "resourceVersion": "1"},
        {"name": "n", "fieldPath": "spec"}, {"name": "n", "foo": 1}, {"name": 5}, {"kind": 5, "name": "n"}, "n", [], 5,
        {"name": "x" * 300}, {"name": " "}, {"kind": "Node ", "name": "n"},
    )  # fmt: skip
    for target in targets:
        body = {"metadata": {"name": "a"}, "target": target}
        yield Step("POST", f"{PODS}/a/binding?dryRun=All", body)


def _bad_bindings() -> Iterator[Step]:
    good = {"metadata": {"name": "a"}, "target": {"name": "n"}}
    path = f"{PODS}/a/binding?dryRun=All"
    for metadata in each(
        None, {}, {"name": ""}, {"name": "other"}, {"name": "absent"}, {"name": "a", "namespace": "kube-system"},
        {"name": "a", "namespace": ""}, {"name": "a", "uid": ABSENT_UID}, {"name": "a", "uid": "x"},
        {"name": "a", "resourceVersion": "1"}, {"name": "a", "resourceVersion": "x"},
        {"name": "a", "resourceVersion": "0"}, {"name": "a", "resourceVersion": "<version a>"},
        {"name": "a", "uid": "<uid a>", "resourceVersion": "1"}, {"name": "a", "uid": "<uid other>"},
        {"name": "a", "annotations": {"bad key!": "v"}}, {"name": "a", "labels": {"bad key!": "v"}},
        {"name": "a", "labels": {"k": "bad value!"}}, {"name": "a", "annotations": {"k": 5}},
        {"name": "a", "labels": []}, {"name": "a", "finalizers": ["x"]}, {"name": "a", "generateName": "b"},
        {"name": "a", "ownerReferences": [{"name": "x"}]}, {"generateName": "a"}, {"name": 5}, "a", [],
        {"name": "a", "deletionTimestamp": "x"}, {"name": "a", "managedFields": [{"manager": "m"}]},
    ):  # fmt: skip
        yield Step("POST", path, good | {"metadata": metadata})
    for kind in each(
        {"apiVersion": "v2"}, {"apiVersion": "apps/v1"}, {"apiVersion": "v1", "kind": "Pod"}, {"kind": "Pod"},
        {"kind": "Foo"}, {"apiVersion": "v1", "kind": "Binding"}, {"apiVersion": "a/b/c", "kind": "Binding"},
        {"apiVersion": "policy/v1", "kind": "Eviction"}, {"kind": 5}, {"apiVersion": []}, {"kind": "binding"},
        {"apiVersion": "v1", "kind": "BindingList"}, {"foo": "bar"},
    ):  # fmt: skip
        yield Step("POST", path, good | kind)
    for body in each({}, [], "x", 5, {"target": {"name": "n"}}, {"metadata": {"name": "a"}}):
        yield Step("POST", path, body)
    yield Step("POST", path)
    for query in each(
        "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore", "fieldValidation=foo", "dryRun=foo",
        "fieldManager=x%00y", "pretty=true",
    ):  # fmt: skip
        unknown = good | {"foo": 1, "target": {"name": "n", "bar": 2}}
        dry = "" if "dryRun" in query else "dryRun=All&"
        yield Step("POST", f"{PODS}/a/binding?{dry}{query}", unknown)
    yield Step("POST", path, good, "text/plain")
    yield Step("POST", path, good, MERGE)


# --- ephemeral containers ---


def ephemeral_containers() -> Iterator[Step]:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "initContainers": [{"name": "i", "image": "i"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    yield Step("POST", PODS, pod("e", spec))
    path = f"{PODS}/e/ephemeralcontainers"
    for container in _bad_containers():
        yield _ephemeral(path, container, query="?dryRun=All")
    for query in ("fieldValidation=Strict", "fieldValidation=Warn"):
        yield _ephemeral(path, {"name": "d", "image": "i", "foo": 1}, query=f"?dryRun=All&{query}")
    yield _ephemeral(
        path, {"name": "d", "image": "i"}, {"name": "d", "image": "i"}, query="?dryRun=All"
    )
    yield _ephemeral(
        path, {"name": "d", "image": "i"}, {"name": "d", "image": "j"}, query="?dryRun=All"
    )
    added = {
        "name": "d",
        "image": "i",
        "targetContainerName": "c",
        "env": [{"name": "A", "value": "b"}],
    }
    yield _ephemeral(path, added)
    yield _ephemeral(
        path, {"name": "second", "image": "i", "command": ["sh"], "stdin": True, "tty": True}
    )
    yield from _changed_containers(path)
    yield from _bad_documents(path)
    yield Step("GET", path)
    for method in ("POST", "DELETE"):
        yield Step(method, path, {})
    static = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    yield Step("POST", PODS, pod("mirror", {"nodeName": "n1"}, **static))
    for name in ("mirror", "leaving", "placed", "gated", "absent"):
        yield _ephemeral(f"{PODS}/{name}/ephemeralcontainers", {"name": "d", "image": "i"})
    created = {"ephemeralContainers": [{"name": "d", "image": "i"}]}
    yield Step("POST", PODS, pod("late", created))
    patch = {"spec": {"ephemeralContainers": [{"name": "third", "image": "i"}]}}
    yield Step("PATCH", f"{PODS}/e", patch, STRATEGIC)
    patch = {"spec": {"ephemeralContainers": [{"name": "d", "$patch": "delete"}]}}
    yield Step("PATCH", f"{PODS}/e", patch, STRATEGIC)


def _ephemeral(path: str, *containers: Document, query: str = "") -> Step:
    return Step("PATCH", path + query, {"spec": {"ephemeralContainers": containers}}, STRATEGIC)


def _bad_containers() -> Iterator[Document]:
    good = {"name": "d", "image": "i"}
    yield good
    for name in ("", "c", "i", "Bad_Name", "a.b", "x" * 64, "-x"):
        yield {"name": name, "image": "i"}
    for image in ("", " ", " i", "i "):
        yield good | {"image": image}
    yield {"name": "d"}
    for target in ("absent", "i", "d", "Bad_Name"):
        yield good | {"targetContainerName": target}
    for change in container_changes():
        yield good | change


def container_changes() -> tuple[Document, ...]:
    """What containers can have beside a name and an image, most of it wrong for one kind of them or another."""
    probe = {"exec": {"command": ["x"]}}
    return (
        {"ports": [{"containerPort": 80}]}, {"livenessProbe": probe}, {"readinessProbe": probe},
        {"startupProbe": probe}, {"lifecycle": {"preStop": probe}}, {"resources": {"requests": {"cpu": "1"}}},
        {"resources": {"limits": {"cpu": "1"}}}, {"resources": {}}, {"resources": {"claims": [{"name": "x"}]}},
        {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}, {"restartPolicy": "Always"},
        {"restartPolicy": "Foo"},
        {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
        {"ports": [{"containerPort": 0}], "livenessProbe": probe, "resources": {"limits": {"cpu": "1"}}},
        {"imagePullPolicy": "Foo"}, {"imagePullPolicy": ""}, {"imagePullPolicy": "Never"},
        {"terminationMessagePolicy": "Foo"}, {"terminationMessagePath": "x"},
        {"volumeMounts": [{"name": "absent", "mountPath": "/x"}]}, {"volumeMounts": [{"name": "v"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "s"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPathExpr": "$(A)"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/x", "mountPropagation": "Foo"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/x", "recursiveReadOnly": "Foo"}]},
        {"volumeMounts": [{"mountPath": "/x"}]}, {"volumeDevices": [{"name": "v", "devicePath": "/x"}]},
        {"volumeDevices": [{"name": "absent"}]}, {"env": [{"name": ""}]}, {"env": [{"name": "a=b"}]},
        {"env": [{"name": "A", "valueFrom": {}}]},
        {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.foo"}}}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "Bad_Name", "key": "k"}}}]},
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.foo"}}}]},
        {"envFrom": [{}]}, {"envFrom": [{"configMapRef": {"name": ""}}]},
        {"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]},
        {"envFrom": [{"prefix": "a=b", "configMapRef": {"name": "a"}}]},
        {"securityContext": {"runAsUser": -1}}, {"securityContext": {"runAsGroup": -1}},
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        {"securityContext": {"procMount": "Foo"}}, {"securityContext": {"seccompProfile": {"type": "Foo"}}},
        {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
        {"securityContext": {"appArmorProfile": {"type": "Foo"}}},
        {"securityContext": {"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": False}},
        {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "Bad_Name"}}},
        {"stdin": True, "stdinOnce": True, "tty": True}, {"command": "sh"}, {"tty": "yes"}, {"workingDir": 5},
    )  # fmt: skip


def _changed_containers(path: str) -> Iterator[Step]:
    """The stored ones are `d` and `second`."""
    for change in each(
        {"image": "j"}, {"image": ""}, {"tty": True}, {"command": ["sh"]}, {"args": ["a"]}, {"workingDir": "/x"},
        {"env": [{"name": "A", "value": "c"}]}, {"env": [{"name": "B", "value": "c"}]}, {"targetContainerName": "i"},
        {"targetContainerName": None}, {"imagePullPolicy": "Never"}, {"securityContext": {"privileged": True}},
        {"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, {"terminationMessagePath": "/x"},
        {"ports": [{"containerPort": 80}]}, {"image": "j", "stdin": True, "args": ["a", "b"]},
    ):  # fmt: skip
        yield _ephemeral(path, {"name": "d", **change}, query="?dryRun=All")
    yield _ephemeral(
        path, {"name": "d", "image": "j"}, {"name": "second", "image": "j"}, query="?dryRun=All"
    )
    yield _ephemeral(path, {"name": "d", "$patch": "delete"})
    yield _ephemeral(
        path, {"name": "d", "$patch": "delete"}, {"name": "second", "$patch": "delete"}
    )
    for containers in each(
        None,
        [],
        [{"name": "second", "image": "i"}],
        [{"name": "new", "image": "i"}],
    ):
        spec = {"spec": {"ephemeralContainers": containers}}
        yield Step("PATCH", f"{path}?dryRun=All", spec, MERGE)
    for operation in each(
        {"op": "remove", "path": "/spec/ephemeralContainers/0"},
        {"op": "remove", "path": "/spec/ephemeralContainers"},
        {"op": "remove", "path": "/spec/ephemeralContainers/7"},
        {"op": "replace", "path": "/spec/ephemeralContainers/0/name", "value": "renamed"},
        {"op": "replace", "path": "/spec/ephemeralContainers/1/command/0", "value": "bash"},
        {"op": "add", "path": "/spec/ephemeralContainers/-", "value": {"name": "d", "image": "i"}},
        {"op": "add", "path": "/spec/ephemeralContainers/-", "value": {"name": "second", "image": "j"}},
        {"op": "copy", "from": "/spec/ephemeralContainers/0", "path": "/spec/ephemeralContainers/-"},
        {"op": "move", "from": "/spec/ephemeralContainers/0", "path": "/spec/ephemeralContainers/1"},
        {"op": "test", "path": "/spec/ephemeralContainers/0/name", "value": "x"},
        {"op": "foo", "path": "/spec"},
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", [operation], JSON_PATCH)


def _bad_documents(path: str) -> Iterator[Step]:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "ephemeralContainers": [{"name": "new", "image": "i"}],
    }
    for body in each(
        {}, {"metadata": {"name": "e"}}, {"metadata": {"name": "x"}, "spec": spec}, {"spec": spec},
        {"metadata": {"name": "e", "resourceVersion": "1"}, "spec": spec},
        {"metadata": {"name": "e", "resourceVersion": "x"}, "spec": spec},
        {"metadata": {"name": "e", "uid": ABSENT_UID}, "spec": spec},
        {"metadata": {"name": "e", "namespace": "other"}, "spec": spec}, {"kind": "Foo"},
        {"apiVersion": "v1", "kind": "EphemeralContainers", "metadata": {"name": "e"}, "ephemeralContainers": []},
        {"metadata": {"name": "e"}, "spec": {"ephemeralContainers": []}}, {"metadata": {"name": "e"}, "spec": {}},
        [], "x", {"metadata": {"name": "e"}, "spec": {"ephemeralContainers": {}}},
        {"metadata": {"name": "e", "labels": {"bad key!": "x"}}, "spec": spec},
    ):  # fmt: skip
        yield Step("PUT", f"{path}?dryRun=All", body)
    for body in each(
        {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": ABSENT_UID}}, {"metadata": {"name": "x"}},
        {"spec": {"nodeName": "n"}}, {"spec": {"containers": [{"name": "c", "image": "changed"}]}}, [], "x", {"kind": "Foo"},
        {"metadata": {"labels": {"bad key!": "x"}}}, {"status": {"phase": "Running"}}, {"spec": {"foo": 1}},
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", body, STRATEGIC)
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e"}}
    containers = [{"name": "d", "image": "other"}]
    yield Step("PATCH", f"{path}?dryRun=All", applied, APPLY)
    for query in ("", "&force=true"):
        body = applied | {"spec": {"ephemeralContainers": containers}}
        yield Step("PATCH", f"{path}?dryRun=All&fieldManager=m{query}", body, APPLY)


# --- eviction ---


def evictions() -> Iterator[Step]:
    labels = {"labels": {"app": "x"}}
    yield Step("POST", PODS, pod("v", {"nodeName": "n1"}, **labels))
    good = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "v"}}
    path = f"{PODS}/v/eviction?dryRun=All"
    for body in each(
        {}, good, good | {"metadata": {}}, good | {"metadata": {"name": "x"}}, good | {"metadata": None},
        good | {"metadata": {"name": "v", "namespace": "other"}}, good | {"apiVersion": "policy/v1beta1"},
        good | {"apiVersion": "v1"}, good | {"kind": "Pod"}, good | {"kind": "Foo"}, good | {"apiVersion": "policy/v2"},
        {"metadata": {"name": "v"}}, {"kind": "Eviction", "metadata": {"name": "v"}}, [], "x", good | {"foo": 1},
        good | {"metadata": {"name": 5}}, good | {"metadata": {"name": "v", "uid": ABSENT_UID}},
        good | {"metadata": {"name": "v", "resourceVersion": "1"}},
    ):  # fmt: skip
        yield Step("POST", path, body)
    yield Step("POST", f"{path}&fieldValidation=Strict", good | {"foo": 1})
    for options in each(
        {"gracePeriodSeconds": -5}, {"gracePeriodSeconds": "x"}, {"propagationPolicy": "Foo"}, {"dryRun": ["Foo"]},
        {"dryRun": ["All"]}, {"dryRun": "All"}, {"orphanDependents": True, "propagationPolicy": "Orphan"},
        {"preconditions": {"uid": ABSENT_UID}}, {"preconditions": {"resourceVersion": "1"}},
        {"preconditions": {"resourceVersion": "x"}}, {"preconditions": {"uid": "<uid v>"}}, {"foo": 1}, [], "x",
        {"preconditions": {"uid": ABSENT_UID, "resourceVersion": "1"}}, {"kind": "Foo"},
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
        {"ignoreStoreReadErrorWithClusterBreakingPotential": True}, {"gracePeriodSeconds": -1},
    ):  # fmt: skip
        yield Step("POST", path, good | {"deleteOptions": options})
    yield Step("POST", f"{PODS}/v/eviction?dryRun=foo", good)
    for name in ("absent", "Bad_Name"):
        yield Step("POST", f"{PODS}/{name}/eviction", good | {"metadata": {"name": name}})
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        body = None if method in ("GET", "DELETE") else {}
        yield Step(
            method, f"{PODS}/v/eviction", body, MERGE if method == "PATCH" else "application/json"
        )
    yield from _budgets(good)


def _budgets(good: Document) -> Iterator[Step]:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    path = f"{PODS}/v/eviction"
    budget = {
        "metadata": {"name": "one"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    yield Step("PATCH", f"{PODS}/v/status", running, MERGE)
    yield Step("POST", budgets, budget)
    yield Step("POST", path, good)
    counts = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    for status in each(
        {"disruptionsAllowed": 0}, {"disruptionsAllowed": -1},
        {"disruptionsAllowed": 0, "conditions": [
            {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "why",
             "lastTransitionTime": "2024-01-01T00:00:00Z"}]},
    ):  # fmt: skip
        yield Step("PATCH", f"{budgets}/one/status", {"status": counts | status}, MERGE)
        yield Step("POST", path, good)
        yield Step("POST", f"{path}?dryRun=All", good)
    yield Step("POST", budgets, budget | {"metadata": {"name": "two"}})
    yield Step("POST", path, good)
    yield Step("POST", f"{PODS}/leaving/eviction", good | {"metadata": {"name": "leaving"}})


# --- resize ---


def resizes() -> Iterator[Step]:
    amounts = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    windows = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    init = [
        {"name": "i", "image": "i"},
        {"name": "side", "image": "i", "restartPolicy": "Always", "resources": amounts},
    ]
    containers = [
        {"name": "c", "image": "i", "resources": amounts},
        {"name": "plain", "image": "i"},
    ]
    yield Step("POST", PODS, pod("r", {"containers": containers, "initContainers": init}))
    guaranteed = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    yield Step("POST", PODS, pod("g", {"containers": [guaranteed]}))
    yield Step(
        "POST",
        PODS,
        pod(
            "w",
            {
                "os": {"name": "windows"},
                "containers": [{"name": "c", "image": "i", "resources": windows}],
            },
        ),
    )
    path = f"{PODS}/r/resize?dryRun=All"
    for container in _resized():
        yield Step("PATCH", path, {"spec": {"containers": [container]}}, STRATEGIC)
    for container in each(
        {"name": "i", "resources": {"requests": {"cpu": "1"}}}, {"name": "side", "resources": {"requests": {"cpu": "2"}}},
        {"name": "side", "resources": {"requests": {"cpu": "3"}}}, {"name": "side", "restartPolicy": None},
    ):  # fmt: skip
        yield Step("PATCH", path, {"spec": {"initContainers": [container]}}, STRATEGIC)
    for body in each(
        {"spec": {"nodeName": "n"}}, {"spec": {"restartPolicy": "Never"}}, {"metadata": {"resourceVersion": "1"}},
        {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"bad key!": "b"}}}, {"spec": {"containers": []}},
        {"spec": {"containers": None}}, {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
        {"status": {"phase": "Running"}}, {},
    ):  # fmt: skip
        yield Step("PATCH", path, body, STRATEGIC)
    for body in each(
        {}, {"metadata": {"name": "x"}}, {"kind": "Foo"},
        {"metadata": {"name": "r", "uid": ABSENT_UID}, "spec": pod("r")["spec"]},
        {"metadata": {"name": "r"}, "spec": {"containers": [{"name": "other", "image": "i", "resources": amounts}]}},
    ):  # fmt: skip
        yield Step("PUT", path, body)
    changed = {"limits": {"cpu": "2", "memory": "1Gi"}}
    both = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    lower = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    for resources in (changed, both, lower):
        body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        yield Step("PATCH", f"{PODS}/g/resize?dryRun=All", body, STRATEGIC)
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}}
    for name in ("w", "mirror", "leaving", "placed", "absent"):
        yield Step("PATCH", f"{PODS}/{name}/resize?dryRun=All", body, STRATEGIC)
    yield Step("GET", f"{PODS}/r/resize")
    for method in ("POST", "DELETE"):
        yield Step(method, f"{PODS}/r/resize", {})
    yield Step("PATCH", f"{PODS}/r?dryRun=All", body, STRATEGIC)


def _resized() -> Iterator[Document]:
    for requests in each(
        {"cpu": "500m"}, {"cpu": "3"}, {"cpu": "-1"}, {"cpu": "x"}, {"cpu": None}, {"memory": None}, {"memory": "3Gi"},
        {"ephemeral-storage": "1Gi"}, {"example.com/x": "1"}, {"hugepages-2Mi": "2Mi"}, {"foo": "1"}, {"cpu": "0"},
        {"memory": "0.5"}, {"cpu": "0.0001"},
    ):  # fmt: skip
        yield {"name": "c", "resources": {"requests": requests}}
    for limits in each(
        {"cpu": "1500m"}, {"cpu": "500m"}, {"memory": "1536Mi"}, {"memory": "512Mi"}, {"cpu": None}, {"memory": None},
        {"ephemeral-storage": "1Gi"}, {"example.com/x": "1"},
    ):  # fmt: skip
        yield {"name": "c", "resources": {"limits": limits}}
    yield {"name": "c", "resources": None}
    yield {"name": "c", "resources": {"requests": None}}
    yield {"name": "c", "resources": {"limits": None}}
    yield {"name": "c", "resources": {"claims": [{"name": "x"}]}}
    yield {"name": "c", "image": "other"}
    yield {"name": "c", "image": "other", "resources": {"requests": {"cpu": "500m"}}}
    yield {
        "name": "c",
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
    }
    yield {"name": "c", "env": [{"name": "A", "value": "b"}]}
    yield {"name": "new", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    yield {"name": "plain", "resources": {"requests": {"cpu": "1"}}}
    yield {"name": "plain", "resources": {"limits": {"cpu": "1"}}}


# --- status ---


def pod_statuses() -> Iterator[Step]:
    yield Step(
        "POST", PODS, pod("s", {"nodeName": "n1", "initContainers": [{"name": "i", "image": "i"}]})
    )
    path = f"{PODS}/s/status?dryRun=All"
    ready = {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": "x"}
    started = "2024-01-01T00:00:00Z"
    ended = {"terminated": {"exitCode": 1, "startedAt": started, "finishedAt": started}}
    for status in each(
        {"phase": "Foo"}, {"phase": 5}, {"conditions": [{"type": "Foo"}]}, {"conditions": [{"type": "", "status": "True"}]},
        {"conditions": [{"type": "Ready", "status": "Foo"}]}, {"conditions": [{"status": "True"}]}, {"conditions": {}},
        {"conditions": [{"type": "bad type!", "status": "True"}]},
        {"conditions": [{"type": "a", "status": "True"}, {"type": "a", "status": "False"}]},
        {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]}, {"observedGeneration": -1},
        {"podIP": "x"}, {"podIP": "1.2.3"}, {"podIP": "10.0.0.1"}, {"podIPs": [{"ip": "x"}]},
        {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}, {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
        {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}, {"ip": "fd00::2"}]},
        {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.1"}]}, {"podIPs": [{"ip": "10.0.0.01"}]},
        {"hostIP": "x"}, {"hostIP": "10.0.0.1"}, {"hostIPs": [{"ip": "10.0.0.1"}]}, {"hostIPs": [{"ip": "x"}]},
        {"hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.1"}]}, {"hostIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
        {"nominatedNodeName": "Bad_Name"}, {"nominatedNodeName": "n"}, {"qosClass": "Foo"}, {"qosClass": "Guaranteed"},
        {"qosClass": ""}, {"containerStatuses": [{"name": "absent"}]}, {"containerStatuses": [ready, ready]},
        {"containerStatuses": [ready | {"restartCount": -1}]}, {"containerStatuses": [ready | {"foo": 1}]},
        {"containerStatuses": [ready | {"state": {"running": {}, "waiting": {}}}]},
        {"containerStatuses": [ready | {"state": ended}]}, {"containerStatuses": [ready | {"state": {}}]},
        {"containerStatuses": [ready | {"state": {"running": {"startedAt": "x"}}}]},
        {"containerStatuses": [ready | {"user": {"linux": {"uid": -1, "gid": 0}}}]},
        {"containerStatuses": [ready | {"stopSignal": "FOO"}]},
        {"containerStatuses": [ready | {"volumeMounts": [{"name": "v", "mountPath": "/x"}]}]},
        {"initContainerStatuses": [ready]}, {"initContainerStatuses": [ready | {"name": "i", "state": ended}]},
        {"ephemeralContainerStatuses": [ready]}, {"resize": "Foo"}, {"startTime": "x"}, {"foo": 1}, [], "x", None, {},
        {"resourceClaimStatuses": [{"name": "x"}]}, {"extendedResourceClaimStatus": {}}, {"message": 5},
        {"reason": "Bad reason!"},
    ):  # fmt: skip
        yield Step("PATCH", path, {"status": status}, MERGE)
    yield Step("PATCH", f"{path}&fieldValidation=Strict", {"status": {"foo": 1}}, MERGE)
    yield from _bad_wholes("PUT", path, pod("s"))
    for body in each(
        {"spec": {"nodeName": "other"}}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"bad key!": "b"}}},
        {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": ABSENT_UID}}, {"metadata": {"name": "x"}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"metadata": {"annotations": {"bad key!": "b"}}}, {"metadata": {"deletionGracePeriodSeconds": 5}},
        {"metadata": {"generation": 7}}, {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}},
    ):  # fmt: skip
        yield Step("PATCH", path, body, MERGE)
    ended_pod = {"phase": "Failed", "containerStatuses": [ready | {"state": ended, "ready": False}]}
    yield Step("PATCH", f"{PODS}/s/status", {"status": ended_pod}, MERGE)
    running = {"containerStatuses": [ready | {"state": {"running": {"startedAt": started}}}]}
    for status in each({"phase": "Running"}, running, {"phase": "Succeeded"}, {"phase": "Pending"}):
        yield Step("PATCH", path, {"status": status}, MERGE)
    yield Step("POST", PODS, pod("never", {"nodeName": "n1", "restartPolicy": "Never"}))
    yield Step("PATCH", f"{PODS}/never/status", {"status": ended_pod}, MERGE)
    yield Step("PATCH", f"{PODS}/never/status", {"status": running}, MERGE)
    yield Step("PATCH", f"{PODS}/never/status", {"status": {"containerStatuses": []}}, MERGE)
    for name in ("absent", "Bad_Name"):
        yield Step("PATCH", f"{PODS}/{name}/status", {}, MERGE)
        yield Step("PUT", f"{PODS}/{name}/status", pod(name))
        yield Step("GET", f"{PODS}/{name}/status")
    for method in ("POST", "DELETE"):
        yield Step(method, f"{PODS}/s/status", {})


def _bad_wholes(method: str, path: str, whole: Document) -> Iterator[Step]:
    """Documents that say something wrong about themselves."""
    name = whole["metadata"]["name"]
    for change in each(
        {"metadata": {"name": "x"}}, {"metadata": {}}, {"kind": "Foo"}, {"apiVersion": "v2"}, {"apiVersion": "apps/v1"},
        {"metadata": {"name": name, "resourceVersion": "1"}}, {"metadata": {"name": name, "resourceVersion": "x"}},
        {"metadata": {"name": name, "uid": ABSENT_UID}}, {"metadata": {"name": name, "namespace": "other"}},
        {"metadata": {"name": name, "labels": {"bad key!": "x"}}}, {"metadata": {"name": name}},
    ):  # fmt: skip
        yield Step(method, path, whole | change)
    for body in each({}, [], "x"):
        yield Step(method, path, body)


# --- logs ---


def logs() -> Iterator[Step]:
    yield Step(
        "POST",
        PODS,
        pod("l", {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}),
    )
    queries = (
        "", "container=c", "container=absent", "container=Bad_Name", "tailLines=-1", "tailLines=x", "limitBytes=0",
        "limitBytes=-1", "limitBytes=x", "sinceSeconds=0", "sinceSeconds=-1", "sinceSeconds=x", "sinceTime=x",
        "sinceSeconds=5&sinceTime=2024-01-01T00:00:00Z", "sinceTime=2024-01-01T00:00:00Z", "follow=x", "follow=true",
        "previous=x", "previous=true", "timestamps=x", "stream=Foo", "stream=Stdout", "stream=Stdout&tailLines=5",
        "stream=", "insecureSkipTLSVerifyBackend=x", "foo=bar", "tailLines=0", "tailLines=99999999999999999999",
        "tailLines=-1&limitBytes=0&sinceSeconds=0", "tailLines=1.5", "tailLines=",
    )  # fmt: skip
    for query in queries:
        yield Step("GET", f"{PODS}/l/log?{query}")
        named = "" if "container" in query else "&container=c"
        if named and query:
            yield Step("GET", f"{PODS}/l/log?{query}{named}")
    for name in ("absent", "Bad_Name"):
        yield Step("GET", f"{PODS}/{name}/log")
        yield Step("GET", f"{PODS}/{name}/log?tailLines=-1")
    for method in ("POST", "PUT", "DELETE"):
        yield Step(method, f"{PODS}/l/log", {})
    yield Step("PATCH", f"{PODS}/l/log", {}, MERGE)


# --- nodes ---


def nodes() -> Iterator[Step]:
    yield Step("POST", NODES, {"metadata": {"name": "node"}})
    path = f"{NODES}/node/status?dryRun=All"
    for status in each(
        {"capacity": {"cpu": "-1"}}, {"capacity": {"cpu": "x"}}, {"capacity": {"foo": "1"}}, {"capacity": {"bad name!": "1"}},
        {"capacity": {"example.com/x": "1.5"}}, {"allocatable": {"cpu": "-1"}}, {"allocatable": {"pods": "1.5"}},
        {"conditions": [{"type": "Ready"}]}, {"conditions": [{"status": "True"}]}, {"phase": "Foo"},
        {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]},
        {"addresses": [{"type": "Foo", "address": "x"}]}, {"addresses": [{"type": "InternalIP", "address": "x"}]},
        {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.1"}]},
        {"nodeInfo": "x"}, {"daemonEndpoints": {"kubeletEndpoint": {"Port": 99999}}}, {"foo": 1}, [], "x", None,
        {"config": {"active": {}}}, {"config": {"assigned": {"configMap": {"name": "x"}}}},
        {"runtimeHandlers": [{"name": "Bad_Name"}]}, {"features": {"supplementalGroupsPolicy": "x"}},
        {"declaredFeatures": ["Bad feature!"]}, {"declaredFeatures": ["B", "A"]}, {"declaredFeatures": ["A", "A"]},
        {"declaredFeatures": ["GuaranteedQoSPodCPUResize"]},
    ):  # fmt: skip
        yield Step("PATCH", path, {"status": status}, MERGE)
    for body in each(
        {"spec": {"unschedulable": True}}, {"spec": {"taints": [{"key": "Bad key!"}]}}, {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"labels": {"bad key!": "b"}}}, {"metadata": {"resourceVersion": "1"}}, {"metadata": {"name": "x"}},
        {"spec": {"podCIDR": "x"}}, {"metadata": {"uid": ABSENT_UID}},
    ):  # fmt: skip
        yield Step("PATCH", path, body, MERGE)
    yield from _bad_wholes("PUT", path, {"metadata": {"name": "node"}, "status": {}})
    for spec in each(
        {"podCIDR": "x"}, {"podCIDR": "10.0.0.0/24"}, {"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]}, {"providerID": "x"},
        {"taints": [{"key": "a"}]}, {"taints": [{"key": "a", "effect": "Foo"}]}, {"taints": [{"effect": "NoSchedule"}]},
        {"taints": [{"key": "a", "effect": "NoSchedule", "value": "bad value!"}]}, {"taints": [{"key": "a b", "effect": "NoExecute"}]},
        {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]},
        {"configSource": {}}, {"configSource": {"configMap": {"name": "x"}}}, {"unschedulable": "x"}, {"externalID": "x"},
        {"foo": 1}, {"podCIDRs": ["x"]}, {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
    ):  # fmt: skip
        yield Step("PATCH", f"{NODES}/node?dryRun=All", {"spec": spec}, MERGE)
        yield Step("POST", f"{NODES}?dryRun=All", {"metadata": {"name": "new"}, "spec": spec})
    yield from _bad_wholes("PUT", f"{NODES}/node?dryRun=All", {"metadata": {"name": "node"}})
    for name in ("absent", "Bad_Name"):
        yield Step("PATCH", f"{NODES}/{name}/status", {}, MERGE)
        yield Step("PUT", f"{NODES}/{name}/status", {"metadata": {"name": name}})
    for method in ("POST", "DELETE"):
        yield Step(method, f"{NODES}/node/status", {})
    for part in ("foo", "scale", "binding", "eviction", "finalize"):
        yield Step("GET", f"{NODES}/node/{part}")
        yield Step("PUT", f"{NODES}/node/{part}", {})


# --- scale ---


def scales() -> Iterator[Step]:
    yield Step("POST", DEPLOYMENTS, workload("sc"))
    path = f"{DEPLOYMENTS}/sc/scale?dryRun=All"
    good = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "sc", "namespace": "default"},
    }
    for change in each(
        {"spec": {"replicas": -1}}, {"spec": {"replicas": "x"}}, {"spec": {"replicas": 1.5}}, {"spec": {"replicas": 2**31}},
        {"spec": {"replicas": None}}, {"spec": {}}, {"spec": None}, {}, {"spec": "x"}, {"spec": []}, {"foo": 1},
        {"spec": {"replicas": 3, "foo": 1}}, {"spec": {"replicas": 3}, "status": {"replicas": 7}}, {"apiVersion": "apps/v1"},
        {"apiVersion": "v1"}, {"apiVersion": "apps/v1beta1"}, {"apiVersion": "extensions/v1beta1"}, {"kind": "Deployment"},
        {"kind": "Foo"}, {"metadata": {"name": "x"}}, {"metadata": {}}, {"metadata": None},
        {"metadata": {"name": "sc", "namespace": "other"}}, {"metadata": {"name": "sc"}},
        {"metadata": {"name": "sc", "namespace": "default", "resourceVersion": "1"}, "spec": {"replicas": 2}},
        {"metadata": {"name": "sc", "namespace": "default", "resourceVersion": "x"}, "spec": {"replicas": 2}},
        {"metadata": {"name": "sc", "namespace": "default", "uid": ABSENT_UID}, "spec": {"replicas": 2}},
        {"metadata": {"name": "sc", "namespace": "default", "labels": {"bad key!": "x"}}, "spec": {"replicas": 2}},
        {"metadata": {"name": "sc", "namespace": "default", "generateName": "x"}, "spec": {"replicas": -2}},
    ):  # fmt: skip
        yield Step("PUT", path, good | change)
    for query in each(
        "fieldValidation=Strict",
        "fieldValidation=Warn",
        "fieldValidation=foo",
        "fieldManager=" + "x" * 200,
    ):
        yield Step("PUT", f"{path}&{query}", good | {"spec": {"replicas": 3, "foo": 1}})
    for body in each(
        {},
        [],
        "x",
        {"spec": {"replicas": 2}},
        {"kind": "Scale"},
        {"apiVersion": "autoscaling/v1"},
    ):
        yield Step("PUT", path, body)
    for body in each(
        {"spec": {"replicas": -1}}, {"spec": {"replicas": "x"}}, {"spec": {"replicas": None}}, {"spec": None}, {"foo": 1},
        {"metadata": {"name": "x"}}, {"metadata": {"resourceVersion": "1"}}, {"kind": "Foo"}, {"apiVersion": "v1"}, [], "x",
        {"metadata": {"uid": ABSENT_UID}}, {"metadata": {"namespace": "other"}}, {"spec": {"replicas": 1.5}}, {"spec": []},
    ):  # fmt: skip
        yield Step("PATCH", path, body, MERGE)
        if isinstance(body, dict) and body.get("spec") in (
            None,
            {"replicas": None},
            {"replicas": -1},
        ):
            yield Step("PATCH", path, body, STRATEGIC)
    for operation in each(
        {"op": "replace", "path": "/spec/replicas", "value": -1}, {"op": "remove", "path": "/spec/foo"},
        {"op": "replace", "path": "/spec/replicas", "value": "x"}, {"op": "test", "path": "/spec/replicas", "value": 9},
        {"op": "remove", "path": "/spec"}, {"op": "remove", "path": "/metadata/name"},
    ):  # fmt: skip
        yield Step("PATCH", path, [operation], JSON_PATCH)
    for query in ("", "&fieldManager=m", "&fieldManager=m&force=true"):
        yield Step("PATCH", path + query, good | {"spec": {"replicas": 5}}, APPLY)
    yield Step("PATCH", f"{path}&fieldManager=m", {"spec": {"replicas": 5}}, APPLY)
    yield Step("PATCH", f"{path}&force=true", {"spec": {"replicas": 5}}, MERGE)
    for name in ("absent", "Bad_Name"):
        yield Step("GET", f"{DEPLOYMENTS}/{name}/scale")
        yield Step(
            "PUT",
            f"{DEPLOYMENTS}/{name}/scale",
            good | {"metadata": {"name": name, "namespace": "default"}},
        )
        yield Step("PATCH", f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": 5}}, MERGE)
    for method in ("POST", "DELETE"):
        yield Step(method, f"{DEPLOYMENTS}/sc/scale", {})
    yield Step("GET", "/apis/apps/v1/namespaces/default/daemonsets/x/scale")


# --- DRA kinds ---

DRA = "/apis/resource.k8s.io/v1"
CLASSES = f"{DRA}/deviceclasses"
SLICES = f"{DRA}/resourceslices"
TEMPLATES = f"{DRA}/namespaces/default/resourceclaimtemplates"
ALL_DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}
SLICE = {
    "metadata": {"name": "slice"},
    "spec": {"driver": "d.example.com", "nodeName": "n", "devices": [{"name": "x"}],
             "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}},
}  # fmt: skip


def dra() -> Iterator[Step]:
    claim = {"metadata": {"name": "claim"}, "spec": ALL_DEVICES}
    template = {"metadata": {"name": "template"}, "spec": {"spec": ALL_DEVICES}}
    class_ = {"metadata": {"name": "class"}, "spec": {}}
    objects: tuple[tuple[str, Document], ...] = (
        (CLAIMS, claim),
        (TEMPLATES, template),
        (CLASSES, class_),
        (SLICES, SLICE),
    )
    for path, body in objects:
        yield Step("POST", path, body)
        named = f"{path}/{body['metadata']['name']}"
        yield from _bad_wholes("PUT", f"{named}?dryRun=All", body)
        for part in ("status", "scale", "binding", "foo"):
            yield Step("GET", f"{named}/{part}")
            yield Step("PUT", f"{named}/{part}?dryRun=All", {})
            yield Step("PATCH", f"{named}/{part}?dryRun=All", {}, MERGE)
            yield Step("POST", f"{named}/{part}", {})
            yield Step("DELETE", f"{named}/{part}")
        for patch in each(
            {"spec": "x"}, {"spec": []}, {"spec": {"foo": 1}}, {"metadata": {"name": "x"}},
            {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": ABSENT_UID}}, {"kind": "Foo"},
            {"apiVersion": "v2"}, [], "x",
            {"metadata": {"labels": {"bad key!": "x"}}}, {"spec": {"devices": 5}}, {"metadata": {"namespace": "other"}},
        ):  # fmt: skip
            yield Step("PATCH", f"{named}?dryRun=All", patch, MERGE)
            yield Step("PATCH", f"{named}?dryRun=All", patch, STRATEGIC)
        yield Step(
            "PATCH", f"{named}?dryRun=All&fieldValidation=Strict", {"spec": {"foo": 1}}, MERGE
        )
        yield Step("PATCH", f"{named}?dryRun=All", {}, APPLY)
        yield Step("PATCH", f"{named}?dryRun=All&fieldManager=m", {}, APPLY)
        for absent in (f"{path}/absent", f"{path}/Bad_Name"):
            yield Step("PUT", absent, body)
            yield Step("PATCH", absent, {}, MERGE)
    yield from _claim_statuses(claim)


def _claim_statuses(claim: Document) -> Iterator[Step]:
    path = f"{CLAIMS}/claim/status?dryRun=All"
    yield from _bad_wholes("PUT", path, claim)
    consumer = {"resource": "pods", "name": "a", "uid": "u"}
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}
    for status in each(
        {"reservedFor": [consumer]}, {"reservedFor": [{}]}, {"reservedFor": "x"}, {"allocation": {}}, {"allocation": "x"},
        {"allocation": {"devices": {"results": [{}]}}}, {"allocation": {"devices": {"results": [result]}}},
        {"allocation": {"devices": {"results": [result | {"request": "absent"}]}}},
        {"devices": [{"driver": "d.example.com", "pool": "p", "device": "x"}]}, {"devices": [{}]}, {"foo": 1}, [], "x", None,
        {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer, consumer]},
    ):  # fmt: skip
        yield Step("PATCH", path, {"status": status}, MERGE)
        yield Step("PATCH", path, {"status": status}, STRATEGIC)
    for patch in each(
        {"spec": {"devices": {"requests": []}}}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"resourceVersion": "1"}},
        {"metadata": {"labels": {"bad key!": "b"}}}, {"metadata": {"finalizers": ["bad finalizer!"]}},
    ):  # fmt: skip
        yield Step("PATCH", path, patch, MERGE)


# --- paths ---


def paths() -> Iterator[Step]:
    csi_nodes = "/apis/storage.k8s.io/v1/csinodes"
    yield Step(
        "POST",
        csi_nodes,
        {
            "metadata": {"name": "csi"},
            "spec": {"drivers": [{"name": "d.example.com", "nodeID": "x", "topologyKeys": ["a"]}]},
        },
    )
    named = f"{csi_nodes}/csi/status"
    yield Step("GET", named)
    for method in ("PUT", "PATCH", "POST", "DELETE"):
        yield Step(method, named, {}, MERGE if method == "PATCH" else "application/json")
    for part in each(
        "foo",
        "status/foo",
        "binding/foo",
        "log/foo",
        "ephemeralcontainers/foo",
        "scale",
        "finalize",
        "token",
    ):
        for method in ("GET", "POST", "PUT"):
            yield Step(method, f"{PODS}/a/{part}", None if method == "GET" else {})


def all_steps() -> list[Step]:
    parts = (
        bindings, ephemeral_containers, evictions, resizes, pod_statuses, logs, nodes, scales, dra, paths,
    )  # fmt: skip
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
