"""New objects with empty lists and maps, nulls and zeros in every field, and with the same entry twice.

    python -m tests.conformance.empty_value_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/empty-values-recorded.json.gz`.

The fields are those of the server's own schemas: a new field needs a new recording.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.types import Field, Type, type_named, type_of
from tests.conformance.pod_field_steps import CONTAINER
from tests.conformance.subresource_steps import (
    ALL_DEVICES,
    CLAIMS,
    CLASSES,
    MERGE,
    NODES,
    PODS,
    SLICE,
    SLICES,
    TEMPLATES,
    pod,
)
from tests.conformance.template_steps import APPS, both
from tests.conformance.wire_steps import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    IN_DEFAULT,
    SERVICES,
    STRATEGIC,
    Step,
    each,
    print_answers,
    workload,
)

Document = dict[str, Any]
DRA = "resource.k8s.io"
KINDS: tuple[tuple[str, GroupVersionKind, Document, int], ...] = (
    (SERVICES, GroupVersionKind("", "v1", "Service"), {"spec": {"ports": [{"port": 80}]}}, 4),
    (NODES, GroupVersionKind("", "v1", "Node"), {}, 4),
    (PODS, GroupVersionKind("", "v1", "Pod"), {"spec": pod("x")["spec"]}, 3),
    (DEPLOYMENTS, GroupVersionKind("apps", "v1", "Deployment"), {"spec": workload("x")["spec"]}, 3),
    (CLASSES, GroupVersionKind(DRA, "v1", "DeviceClass"), {"spec": {}}, 4),
    (CLAIMS, GroupVersionKind(DRA, "v1", "ResourceClaim"), {"spec": ALL_DEVICES}, 4),
    (TEMPLATES, GroupVersionKind(DRA, "v1", "ResourceClaimTemplate"), {"spec": {"spec": ALL_DEVICES}}, 4),
    (SLICES, GroupVersionKind(DRA, "v1", "ResourceSlice"), {"spec": SLICE["spec"]}, 4),
)  # fmt: skip
"""Path, kind, a good object without metadata, and how deep its fields are looked for."""
SKIPPED = frozenset(
    {
        "apiVersion", "kind", "managedFields", "creationTimestamp", "deletionTimestamp",
        # Their feature gates are on by default in one of the servers only.
        "compatibilityGroups", "partitionTypeAttribute", "skipNodeOperations",
    }
)  # fmt: skip
UNEQUAL = ('"nodeSelectorTerms": []',)
"""Answers that are known to be others: an empty list that typed objects do not keep."""
ZEROS: dict[str, tuple[Any, ...]] = {
    "string": ("",), "integer": (0,), "boolean": (False,), "bytes": ("",), "quantity": ("0", ""), "number": (0,),
    "int-or-string": (0, ""),
}  # fmt: skip


def every_field() -> Iterator[Step]:
    for path, kind, good, depth in KINDS:
        schema = type_of(kind)
        assert schema is not None
        for body in _changed(schema, good, depth, ()):
            metadata = {"metadata": (body.get("metadata") or {}) | {"name": "x"}}
            yield Step("POST", f"{path}?dryRun=All", body | metadata)


def _changed(
    schema: Type, good: Document, depth: int, above: tuple[str, ...]
) -> Iterator[Document]:
    """The object with one of its fields changed, or a field further below."""
    for name, field in schema.fields.items():
        if name in SKIPPED or (not above and name == "status"):
            continue
        for value in _values(field):
            yield good | {name: value}
        if not field.is_type or depth == 1 or field.type in above:
            continue
        found = good.get(name) or ([] if field.container == "list" else {})
        base: Any = (found or [{}])[0] if field.container == "list" else found
        further = _changed(type_named(field.type), base, depth - 1, (*above, field.type))
        for inner in further:
            shapes: dict[str, Any] = (
                {"list": [inner, *found[1:]]} if field.container == "list" else {}
            )
            shapes["map"] = {"k": inner}
            yield good | {name: shapes.get(field.container, inner)}


def _values(field: Field) -> tuple[Any, ...]:
    match field.container, field.is_type, field.type:
        case "list", True, _:
            # Equal entries come in another order: errors of the list before those of its items.
            return ([], None, [None], [{}])
        case "list", False, "string":
            return ([], None, [None], [""], ["a", "a"])
        case "list", _, _:
            return ([], None, [None])
        case "map", True, _:
            return ({}, None, {"k": None}, {"k": {}})
        case "map", _, "string":
            return ({}, None, {"k": None}, {"k": ""})
        case "map", _, _:
            return ({}, None, {"k": None})
        case _, True, _:
            return ({}, None)
    return (*ZEROS.get(field.type, ()), None)


# --- containers ---

EMPTY_LISTS = (
    "command", "args", "ports", "envFrom", "env", "resizePolicy", "restartPolicyRules", "volumeMounts", "volumeDevices",
)  # fmt: skip


def containers() -> Iterator[Step]:
    yield Step("POST", PODS, pod("debugged"))
    for change in _container_changes():
        debugging = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"} | change]}}
        path = f"{PODS}/debugged/ephemeralcontainers?dryRun=All"
        yield Step("PATCH", path, debugging, STRATEGIC)
        yield Step("PATCH", path, debugging, MERGE)
        yield Step("PUT", path, pod("debugged", debugging["spec"]))
        yield from both({"containers": [CONTAINER | change]})
        yield from both({"initContainers": [CONTAINER | {"name": "i"} | change]})


def _container_changes() -> Iterator[Document]:
    for field in EMPTY_LISTS:
        yield from ({field: []}, {field: None}, {field: [None]})
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
    many = rule | {"exitCodes": {"operator": "In", "values": [*range(256)]}}
    yield from each(
        {"resources": {}}, {"resources": {"claims": []}}, {"resources": {"limits": {}}}, {"resources": {"requests": {}}},
        {"lifecycle": {}}, {"lifecycle": {"preStop": {}}}, {"livenessProbe": {}}, {"livenessProbe": None},
        {"securityContext": {}}, {"securityContext": {"capabilities": {"add": [], "drop": []}}},
        {"securityContext": {"seccompProfile": {}}}, {"securityContext": {"appArmorProfile": {}}}, {"restartPolicy": ""},
        {"image": None}, {"name": None}, {"workingDir": ""}, {"terminationMessagePath": ""}, {"imagePullPolicy": None},
        {"env": [{}]}, {"env": [{"name": "A", "value": None}]}, {"env": [{"name": "A", "valueFrom": None}]},
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {}}}]}, {"envFrom": [{"configMapRef": {}}]}, {"command": [""]},
        {"ports": [{"containerPort": 80}] * 2}, {"ports": [{"containerPort": 80, "hostPort": 0}]}, {"tty": False},
        {"stdin": None}, {"targetContainerName": ""}, {"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": []}}},
        {"livenessProbe": {"exec": {"command": ["x"]}, "initialDelaySeconds": 0, "timeoutSeconds": 0, "periodSeconds": 0}},
        {"resizePolicy": [{}, {}]}, {"resizePolicy": [{"resourceName": "cpu"}] * 2}, {"restartPolicyRules": [{}]},
        {"restartPolicyRules": [rule] * 21, "restartPolicy": "Never"}, {"restartPolicyRules": [many], "restartPolicy": "Always"},
        {"restartPolicyRules": [], "restartPolicy": "Always"},
    )  # fmt: skip


# --- volumes, selectors, metadata ---


def volumes() -> Iterator[Step]:
    for source in _sources():
        spec = {"volumes": [{"name": "v"} | source], "serviceAccountName": "default"}
        yield from both(spec)


def _items(*paths: str) -> list[Document]:
    return [{"key": f"k{index}", "path": path} for index, path in enumerate(paths)]


def _sources() -> Iterator[Document]:
    yield from each(
        {}, {"emptyDir": {"medium": "", "sizeLimit": None}}, {"secret": {"secretName": "s", "items": [], "defaultMode": 0}},
        {"hostPath": {"path": "/x", "type": ""}}, {"persistentVolumeClaim": {"claimName": "p", "readOnly": False}},
        {"downwardAPI": {"items": []}}, {"csi": {"driver": "d", "volumeAttributes": {}, "readOnly": False, "fsType": ""}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}, "limits": {}}, "volumeName": ""}}}},
        {"image": {"reference": "r", "pullPolicy": ""}}, {"gitRepo": {"repository": "r", "revision": ""}},
        {"gcePersistentDisk": {"pdName": "p", "partition": 0, "fsType": "", "readOnly": False}},
        {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {}, "storageMode": "", "fsType": ""}},
    )  # fmt: skip
    for field in ("cachingMode", "kind", "fsType"):
        for value in ("", "None", "Managed", "Foo"):
            yield {"azureDisk": {"diskName": "d", "diskURI": "https://blob/x", field: value}}
    for paths in each(
        ("a", "a", "a"), ("a", "a/b", "a/b/c"), ("a/b", "a"), ("a/", "a"), ("ab", "a")
    ):
        yield {"configMap": {"name": "c", "items": _items(*paths)}}
        yield {"secret": {"secretName": "s", "items": _items(*paths)}}
    secret = {"secret": {"name": "s", "items": _items("a")}}
    token: Document = {"serviceAccountToken": {"path": "a"}}
    bundle = {"clusterTrustBundle": {"name": "t", "path": "a"}}
    below = {"configMap": {"name": "c", "items": _items("a/b")}}
    for sources in each(
        [{}], [None], [{}, {}], [secret, secret], [secret, token], [token, secret], [token, bundle], [bundle, bundle],
        [bundle, secret], [secret, below], [below, {}, token],
    ):  # fmt: skip
        yield {"projected": {"sources": sources}}


def selectors() -> Iterator[Step]:
    template = workload("x")["spec"]["template"]
    for selector in each(
        None, {}, {"matchLabels": {}}, {"matchLabels": {"a": None}}, {"matchLabels": {"a": "bad value!"}}, {"matchExpressions": [{}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]}, {"matchExpressions": []}, {"matchLabels": {"c": "d"}},
    ):  # fmt: skip
        for changed in each(template, template | {"metadata": {}}, {}, None):
            spec = {"selector": selector, "template": changed}
            for kind in ("deployments", "replicasets", "daemonsets", "statefulsets"):
                body = {"metadata": {"name": "x"}, "spec": spec}
                yield Step("POST", f"{APPS}/{kind}?dryRun=All", body)


def metadata() -> Iterator[Step]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    for change in each(
        {"ownerReferences": [owner, owner]}, {"ownerReferences": [owner, owner | {"name": "m"}]}, {"resourceVersion": "0"},
        {"resourceVersion": "5"}, {"resourceVersion": "x"}, {"uid": "u"}, {"resourceVersion": "9" * 30}, {"resourceVersion": ""},
    ):  # fmt: skip
        for path, rest in ((CONFIG_MAPS, {"data": {"a": None}}), (CLAIMS, {"spec": ALL_DEVICES})):
            body = rest | {"metadata": {"name": "x"} | change}
            yield Step("POST", f"{path}?dryRun=All", body)
            yield Step("POST", path, body)
            yield Step("PUT", f"{path}/x?dryRun=All", body)
            yield Step("DELETE", f"{path}/x")
    for body in each(
        {"data": {"a": None}}, {"binaryData": {"a": None}}, {"data": {}, "immutable": False}
    ):
        yield Step("POST", f"{CONFIG_MAPS}?dryRun=All", body | {"metadata": {"name": "x"}})
    for body in each(
        {"stringData": {"a": None}}, {"data": {"a": None}}, {"data": {"a": ""}, "type": ""}
    ):
        path = f"{IN_DEFAULT}/secrets?dryRun=All"
        yield Step("POST", path, body | {"metadata": {"name": "x"}})
    for spec in each(
        {"overhead": {}}, {"runtimeClassName": ""}, {"overhead": {}, "runtimeClassName": "absent"}
    ):
        yield from both(spec)


def node_networks() -> Iterator[Step]:
    for cidrs in each(
        ["a"], ["a", "10.0.0.0/24"], ["10.0.0.0/24", "a"], ["10.0.0.0/24", "10.0.1.0/24"], ["10.0.0.0/24", "fd00::/64"],
        ["10.0.0.0/24", "fd00::/64", "a"], ["10.0.0.1/24", "fd00::/64"], ["10.0.0.0/24", "fd00::/64", "10.0.2.0/24"], ["", ""],
        ["a", "b"], ["010.0.0.0/24", "fd00::/64"], ["10.0.0.0/33", "fd00::/64"],
    ):  # fmt: skip
        body = {"metadata": {"name": "x"}, "spec": {"podCIDRs": cidrs}}
        yield Step("POST", f"{NODES}?dryRun=All", body)


def template_metadata() -> Iterator[Step]:
    """Lists without items that the metadata of claims may not name."""
    named = f"{TEMPLATES}/named"
    yield Step("POST", TEMPLATES, {"metadata": {"name": "named"}, "spec": {"spec": ALL_DEVICES}})
    for lists in each(
        {"finalizers": []}, {"ownerReferences": []}, {"managedFields": []}, {"finalizers": None}, {"managedFields": [{}]},
        {"finalizers": [], "ownerReferences": [], "managedFields": [], "labels": {}}, {"labels": {"a!": "b"}, "finalizers": []},
        {"name": "", "uid": "", "generation": 0, "deletionGracePeriodSeconds": 0}, {"creationTimestamp": None},
    ):  # fmt: skip
        spec = {"metadata": lists, "spec": ALL_DEVICES}
        body = {"metadata": {"name": "named"}, "spec": spec}
        for path in (TEMPLATES, TEMPLATES.replace("/v1/", "/v1beta2/")):
            yield Step("POST", f"{path}?dryRun=All", body | {"metadata": {"name": "x"}})
        yield Step("PUT", f"{named}?dryRun=All", body)
        for kind in (MERGE, STRATEGIC):
            yield Step("PATCH", f"{named}?dryRun=All", {"spec": {"metadata": lists}}, kind)
    flat = {"devices": {"requests": [{"name": "r", "deviceClassName": "d"}]}}
    for lists in each({}, {"finalizers": []}, {"ownerReferences": [], "managedFields": []}):
        path = TEMPLATES.replace("/v1/", "/v1beta1/")
        body = {"metadata": {"name": "x"}, "spec": {"metadata": lists, "spec": flat}}
        yield Step("POST", f"{path}?dryRun=All", body)
    yield Step("DELETE", named)


def pod_claims() -> Iterator[Step]:
    """Claims that pods may not name for all of their containers."""
    for resources in each(
        {}, {"claims": []}, {"claims": None}, {"claims": [], "limits": {}}, {"limits": {}, "requests": {}}, {"claims": [{}]},
        {"claims": [{"name": "x"}]}, {"claims": [], "limits": {"cpu": "1"}}, {"claims": [], "limits": {"foo": "1"}},
    ):  # fmt: skip
        yield from both({"resources": resources})
        template = workload("x")["spec"]["template"]
        spec = template["spec"] | {"resources": resources}
        for kind in ("replicasets", "daemonsets"):
            body = {"metadata": {"name": "x"}, "spec": workload("x")["spec"]}
            body["spec"] = body["spec"] | {"template": template | {"spec": spec}}
            yield Step("POST", f"{APPS}/{kind}?dryRun=All", body)
    yield Step("POST", PODS, pod("claimless"))
    for patch in each({"claims": []}, {"claims": None}, {}):
        for kind in (MERGE, STRATEGIC):
            body = {"spec": {"resources": patch}}
            yield Step("PATCH", f"{PODS}/claimless?dryRun=All", body, kind)


def all_steps() -> list[Step]:
    parts = (
        every_field, containers, volumes, selectors, metadata, node_networks, template_metadata, pod_claims,
    )  # fmt: skip
    steps = [step for part in parts for step in part()]
    return [step for step in steps if not any(text in _json(step) for text in UNEQUAL)]


def _json(step: Step) -> str:
    return str(step.body).replace("'", '"')


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
