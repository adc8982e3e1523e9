"""Replacements of objects that do not exist: some kinds are created, others are not found. And without a version.

    python -m tests.conformance.put_create_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/put-creates-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import ABSENT_UID, APPLY, CLAIMS, JSON_PATCH, MERGE
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
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
ROLE: Document = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
EVENT: Document = {
    "type": "Normal", "reason": "R", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "c", "reportingInstance": "i", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
}  # fmt: skip
CREATED: tuple[tuple[str, Document], ...] = (
    (f"{IN_DEFAULT}/endpoints", {"subsets": []}),
    (f"{IN_DEFAULT}/events", {"involvedObject": {"namespace": "default"}}),
    ("/apis/events.k8s.io/v1/namespaces/default/events", EVENT),
    (f"{IN_DEFAULT}/limitranges", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
    (SERVICES, {"spec": {"ports": [{"port": 80}]}}),
    (LEASES, {"spec": {"holderIdentity": "h"}}),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    (CLUSTER_ROLES, ROLE),
    (f"{RBAC}/clusterrolebindings", {"roleRef": ROLE_REF}),
    (f"{RBAC}/namespaces/default/roles", ROLE),
    (f"{RBAC}/namespaces/default/rolebindings", {"roleRef": ROLE_REF}),
)  # fmt: skip
"""Paths of kinds that a PUT creates, and a good object of each without metadata."""
NOT_FOUND: tuple[tuple[str, Document], ...] = (
    (CONFIG_MAPS, {"data": {"a": "b"}}),
    (CLAIMS, {"spec": {}}),
    (DEPLOYMENTS, {"spec": workload("x")["spec"]}),
    ("/api/v1/nodes", {}),
    ("/api/v1/namespaces", {}),
)


def named(body: Document, **metadata: Any) -> Document:
    return body | {"metadata": metadata}


def every_kind() -> Iterator[Step]:
    for path, body in (*CREATED, *NOT_FOUND):
        yield Step("PUT", f"{path}/p?dryRun=All", named(body, name="p"))
        yield Step("GET", f"{path}/p")
        if path != SERVICES:  # Kubernetes creates one without an address.
            yield Step("PUT", f"{path}/p/status", named(body, name="p"))
        for change in each(
            {}, {"name": ""}, {"name": "other"}, {"generateName": "g"}, {"name": "p", "namespace": "other"},
            {"name": "p", "uid": ABSENT_UID}, {"name": "p", "resourceVersion": "5"}, {"name": "p", "resourceVersion": "x"},
            {"name": "p", "resourceVersion": "0"}, {"name": "p", "labels": {"bad key!": "v"}}, None,
        ):  # fmt: skip
            yield Step("PUT", f"{path}/p?dryRun=All", body | {"metadata": change})
        yield Step("PUT", f"{path}/p?dryRun=All", {})
        yield Step("PUT", f"{path}/Bad_Name?dryRun=All", named(body, name="Bad_Name"))
        unknown = named(body, name="p") | {"foo": 1}
        for validation in ("Strict", "Warn", "Ignore", "foo"):
            yield Step("PUT", f"{path}/p?dryRun=All&fieldValidation={validation}", unknown)
        for kind in (MERGE, STRATEGIC):
            yield Step("PATCH", f"{path}/p", named(body, name="p"), kind)
        yield Step("PATCH", f"{path}/p", [{"op": "add", "path": "/spec", "value": {}}], JSON_PATCH)
        yield Step(
            "PUT", f"{path}/p", named(body, name="p", labels={"a": "b"}, resourceVersion="5")
        )
        yield Step("GET", f"{path}/p")
        yield Step("PUT", f"{path}/p", named(body, name="p", labels={"a": "c"}))
        yield Step("DELETE", f"{path}/p")


def places() -> Iterator[Step]:
    lease = named({"spec": {}}, name="p")
    yield Step("PUT", "/apis/coordination.k8s.io/v1/namespaces/absent/leases/p", lease)
    yield Step("PUT", "/api/v1/namespaces/absent/services/p", named(CREATED[4][1], name="p"))
    yield Step("PUT", "/api/v1/namespaces/absent/configmaps/p", named({}, name="p"))
    yield Step(
        "PUT", f"{LEASES}/p?dryRun=All", named({"spec": {}}, name="p", finalizers=["e.com/x"])
    )
    yield Step("PUT", f"{LEASES}/p?dryRun=All", named({"spec": {}}, name="p", generation=7))
    for spec in each(
        {"leaseDurationSeconds": -1}, {"clusterIP": "None"}, {"holderIdentity": 5}, None, [],
    ):  # fmt: skip
        yield Step("PUT", f"{LEASES}/p?dryRun=All", named({"spec": spec}, name="p"))
    for spec in each({}, {"ports": [{"port": -1}]}, {"type": "Foo"}, {"type": "ExternalName"}):
        yield Step("PUT", f"{SERVICES}/p?dryRun=All", named({"spec": spec}, name="p"))
    address = {"ports": [{"port": 80}], "clusterIP": "10.0.3.3"}
    yield Step("PUT", f"{SERVICES}/p", named({"spec": address}, name="p"))
    yield Step("PUT", f"{SERVICES}/q", named({"spec": address}, name="q"))
    yield Step("DELETE", f"{SERVICES}/p")
    query = "?fieldManager=m&force=true&dryRun=All"
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    yield Step("PATCH", f"{LEASES}/p{query}", kind | {"spec": {}}, APPLY)
    yield Step("PATCH", f"{LEASES}/p{query}", kind | named({}, uid=ABSENT_UID), APPLY)


STORAGE = "/apis/storage.k8s.io/v1"
VERSIONED: tuple[tuple[str, Document], ...] = (
    (f"{STORAGE}/csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["a"]}]}}),
    (f"{STORAGE}/csidrivers", {"spec": {}}),
    (f"{STORAGE}/namespaces/default/csistoragecapacities", {"storageClassName": "s"}),
    (f"{STORAGE}/volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"maxUnavailable": 1, "selector": {}}}),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    (LEASES, {"spec": {}}),
    ("/apis/resource.k8s.io/v1/devicetaintrules", {"spec": {"taint": {"key": "a", "effect": "NoSchedule"}}}),
    ("/apis/resource.k8s.io/v1beta2/devicetaintrules", {"spec": {"taint": {"key": "a", "effect": "NoSchedule"}}}),
    ("/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests", {"spec": {"driver": "d.example.com"}}),
    ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {}),
    ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}),
    (f"{STORAGE}/storageclasses", {"provisioner": "p"}),
    (CONFIG_MAPS, {}),
)  # fmt: skip
"""Kinds of which most are only updated with the version that is replaced."""


def without_version() -> Iterator[Step]:
    for path, body in VERSIONED:
        yield Step("POST", path, named(body, name="v"))
        for version in each({}, {"resourceVersion": "0"}, {"resourceVersion": "<version v>"}):
            yield Step("PUT", f"{path}/v?dryRun=All", named(body, name="v", **version))
            yield Step("PUT", f"{path}/v/status?dryRun=All", named(body, name="v", **version))
        yield Step("DELETE", f"{path}/v")


def all_steps() -> list[Step]:
    parts = (every_kind, places, without_version)
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
