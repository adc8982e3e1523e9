"""Sequences of requests about managedFields and server-side apply, each in a namespace of its own.

`recording.py` has sent them to kube-apiserver v1.38; tests send the same to ours. `NS` in a path is the namespace.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from tests.apply.random_scenarios import COUNT, Sequence
from tests.apply.samples import SAMPLES

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json"


class Step(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any = None
    type: str = JSON
    agent: str = "tester/1.0 (linux)"


Scenario = tuple[Step, ...]

MAPS = "/api/v1/namespaces/NS/configmaps"
PODS = "/api/v1/namespaces/NS/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/NS/deployments"
SERVICES = "/api/v1/namespaces/NS/services"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/NS/resourceclaims"
BETA_CLAIMS = "/apis/resource.k8s.io/v1beta1/namespaces/NS/resourceclaims"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"


def apply(
    path: str, body: Any, manager: str = "a", *, force: bool | None = None, more: str = ""
) -> Step:
    query = f"?fieldManager={manager}" + (
        f"&force={str(force).lower()}" if force is not None else ""
    )
    return Step("PATCH", f"{path}{query}{more}", body, APPLY)


def a_map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", **metadata},
    }
    return found if data is None else {**found, "data": data}


def pod_configuration(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def a_container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", **fields}


def a_deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
            **spec,
        },
    }


def claim_configuration(version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "x"},
        **fields,
    }


CLAIM_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
FLAT_SPEC = {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}
ALLOCATION = {
    "devices": {
        "results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "d0"}]
    }
}


def device_status(name: str = "d0", **fields: Any) -> dict[str, Any]:
    return {"driver": "d.example.com", "pool": "p", "device": name, **fields}


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
OTHER_CONDITION = {**CONDITION, "type": "Other"}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u1"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _of_kinds() -> dict[str, Scenario]:
    """Every kind: created, patched in three ways, written over, its status written, applied, and applied anew."""
    found: dict[str, Scenario] = {}
    for path, sample in SAMPLES:
        where = path.replace("namespaces/default/", "namespaces/NS/")
        document = copy.deepcopy(sample)
        name = f"{document['apiVersion']} {document['kind']}"
        base = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
        labelled = {**base, "metadata": {"name": "x", "labels": {"l": "1"}}}
        found[f"{name}: update"] = (
            Step("POST", where, document),
            Step("PATCH", f"{where}/x", {"metadata": {"labels": {"m": "1"}}}, MERGE, "merger/2"),
            Step(
                "PATCH",
                f"{where}/x?fieldManager=jp",
                [{"op": "add", "path": "/metadata/annotations", "value": {"n": "1"}}],
                JSON_PATCH,
            ),
            Step(
                "PATCH",
                f"{where}/x?fieldManager=sp",
                {"metadata": {"annotations": {"sp": "1"}}},
                STRATEGIC,
            ),
            apply(f"{where}/x", labelled, "applier"),
            apply(f"{where}/x", {**base, "metadata": {"name": "x"}}, "applier"),
            Step("DELETE", f"{where}/x?gracePeriodSeconds=0"),
        )
        another = {**document, "metadata": {**document["metadata"], "name": "y"}}
        labelled = {**base, "metadata": {"name": "y", "labels": {"l": "1"}}}
        found[f"{name}: apply"] = (
            apply(f"{where}/y", another, "one"),
            apply(f"{where}/y", another, "one"),
            apply(f"{where}/y", another, "two"),
            apply(f"{where}/y", labelled, "two"),
            apply(f"{where}/y", labelled, "one", more="&dryRun=All"),
            Step("DELETE", f"{where}/y?gracePeriodSeconds=0"),
        )
    return found


STATUSES: tuple[tuple[str, str, Any, Any], ...] = (
    (PODS, "Pod", {"phase": "Running"}, {"conditions": [{"type": "A", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
    ("/api/v1/nodes", "Node", {"capacity": {"cpu": "4"}}, {"addresses": [{"type": "Hostname", "address": "h"}]}),
    (DEPLOYMENTS, "Deployment", {"replicas": 1}, {"conditions": [{"type": "A", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
    (CLAIMS, "ResourceClaim", {"allocation": ALLOCATION, "reservedFor": [CONSUMER]}, {"devices": [device_status(conditions=[CONDITION])]}),
    (RULES, "DeviceTaintRule", {"conditions": [CONDITION]}, {"conditions": [OTHER_CONDITION]}),
    *(
        (f"{path}/namespaces/NS/{plural}" if namespaced else f"{path}/{plural}", kind, first, second)
        for path, plural, kind, namespaced, first, second in (
            ("/apis/apps/v1", "replicasets", "ReplicaSet", True, {"replicas": 1}, {"readyReplicas": 1}),
            ("/apis/apps/v1", "statefulsets", "StatefulSet", True, {"replicas": 1}, {"readyReplicas": 1}),
            ("/apis/batch/v1", "cronjobs", "CronJob", True, {"lastScheduleTime": "2026-01-01T00:00:00Z"}, {"lastSuccessfulTime": "2026-01-01T00:00:00Z"}),
            ("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", True, {"expectedPods": 1}, {"disruptionsAllowed": 1}),
            ("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, {"phase": "Bound"}, {"accessModes": ["ReadWriteOnce"]}),
            ("/api/v1", "replicationcontrollers", "ReplicationController", True, {"replicas": 1}, {"readyReplicas": 1}),
            ("/api/v1", "resourcequotas", "ResourceQuota", True, {"hard": {"pods": "1"}}, {"used": {"pods": "1"}}),
            ("/api/v1", "services", "Service", True, {"loadBalancer": {}}, {"conditions": [CONDITION]}),
            ("/api/v1", "persistentvolumes", "PersistentVolume", False, {"phase": "Bound"}, {"reason": "r"}),
            ("/apis/storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", False, {"attached": True}, {"attachmentMetadata": {"a": "b"}}),
        )
    ),
    ("/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests", "ResourcePoolStatusRequest", {"poolCount": 0}, {"poolCount": 0}),
)  # fmt: skip


def _of_statuses() -> dict[str, Scenario]:
    found: dict[str, Scenario] = {}
    samples = {document["kind"]: document for _, document in reversed(SAMPLES)}
    for path, kind, first, second in STATUSES:
        document = copy.deepcopy(samples[kind])
        base = {"apiVersion": document["apiVersion"], "kind": kind}
        if kind == "ResourceClaim":
            document["apiVersion"] = base["apiVersion"] = "resource.k8s.io/v1"
            document["spec"] = CLAIM_SPEC
        found[f"status of {kind}"] = (
            Step("POST", path, document),
            Step("PATCH", f"{path}/x/status", {"metadata": {"labels": {"s": "1"}, "annotations": {"s": "1"}}, "status": first}, MERGE, "kubelet/1"),
            apply(f"{path}/x/status", {**base, "metadata": {"name": "x", "labels": {"t": "1"}}, "status": second}, "st"),
            apply(f"{path}/x", {**base, "metadata": {"name": "x", "labels": {"t": "1"}}, "status": second}, "st"),
            apply(f"{path}/x/status", {**base, "metadata": {"name": "x"}, "status": first}, "st"),
            apply(f"{path}/x/status", {**base, "metadata": {"name": "x"}}, "st"),
            Step("PUT", f"{path}/x/status", {**document, "metadata": {"name": "x", "labels": {"u": "1"}}, "status": second}, JSON, "putter"),
            Step("DELETE", f"{path}/x?gracePeriodSeconds=0"),
        )  # fmt: skip
    return found


def _conflicts() -> dict[str, Scenario]:
    start = Step("POST", MAPS, a_map({"a": "1", "b": "1"}))
    return {
        "one conflict": (start, apply(f"{MAPS}/x", a_map({"a": "2"}))),
        "two conflicts": (start, apply(f"{MAPS}/x", a_map({"a": "2", "b": "2"}))),
        "forced": (start, apply(f"{MAPS}/x", a_map({"a": "2"}), force=True)),
        "the last owner is gone": (start, apply(f"{MAPS}/x", a_map({"a": "2", "b": "2"}), force=True)),
        "shared": (start, apply(f"{MAPS}/x", a_map({"a": "1"})), apply(f"{MAPS}/x", a_map({"a": "1"}), "b")),
        "conflicts of three managers": (
            apply(f"{MAPS}/x", a_map({"a": "1", "b": "1"}), "one"),
            apply(f"{MAPS}/x", a_map({"a": "1", "c": "1"}), "two"),
            Step("PATCH", f"{MAPS}/x", {"data": {"d": "1"}}, MERGE, "three/3"),
            apply(f"{MAPS}/x", a_map({"b": "2", "c": "2", "d": "2"}), "four"),
            apply(f"{MAPS}/x", a_map({"b": "2", "c": "2", "d": "2"}), "four", force=True),
            Step("PUT", f"{MAPS}/x", a_map({"a": "3"}), JSON, "five/5"),
            apply(f"{MAPS}/x", a_map({"a": "1", "b": "1"}), "one"),
        ),
        "removal": (
            apply(f"{MAPS}/x", a_map({"a": "1", "b": "1"}, labels={"l": "1"}), "one"),
            apply(f"{MAPS}/x", a_map({"b": "1"}), "two"),
            apply(f"{MAPS}/x", a_map({}), "one"),
            apply(f"{MAPS}/x", a_map(), "one"),
            apply(f"{MAPS}/x", a_map({"c": "1"}), "one"),
            apply(f"{MAPS}/x", a_map(), "two"),
        ),
        "removal of what others added below": (
            apply(f"{MAPS}/x", a_map({"a": "1"}, labels={"l": "1"}, annotations={"n": "1"}), "one"),
            Step("PATCH", f"{MAPS}/x", {"data": {"b": "1"}, "metadata": {"labels": {"m": "1"}}}, MERGE),
            apply(f"{MAPS}/x", a_map(), "one"),
        ),
        "null": (
            apply(f"{MAPS}/x", a_map({"a": "1", "b": None}), "one"),
            apply(f"{MAPS}/x", a_map({"a": None}), "one"),
            apply(f"{MAPS}/x", {**a_map(), "data": None}, "one"),
        ),
        "conflict with a subresource": (
            Step("POST", DEPLOYMENTS, a_deployment(replicas=1)),
            Step("PATCH", f"{DEPLOYMENTS}/x/status", {"status": {"replicas": 3}}, MERGE, "kcm/1"),
            apply(f"{DEPLOYMENTS}/x/status", {**a_deployment(), "spec": {}, "status": {"replicas": 4}}),
        ),
        "same name in both operations": (
            Step("POST", f"{MAPS}?fieldManager=m", a_map({"a": "1"})),
            apply(f"{MAPS}/x", a_map({"a": "1", "b": "1"}), "m"),
            apply(f"{MAPS}/x", a_map({"a": "2"}), "m"),
            Step("PATCH", f"{MAPS}/x?fieldManager=m", {"data": {"b": "3"}}, MERGE),
            apply(f"{MAPS}/x", a_map({"b": "1"}), "m"),
        ),
    }  # fmt: skip


def _lists() -> dict[str, Scenario]:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    pod_of_one = pod_configuration(
        containers=[a_container(image="i", ports=ports, env=[{"name": "E", "value": "1"}])]
    )
    return {
        "keys with defaults": (
            apply(f"{PODS}/x", pod_of_one, "one"),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="j", env=[{"name": "E", "value": "2"}])]), "two"),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="j")]), "two", force=True),
            Step("PATCH", f"{PODS}/x", {"spec": {"containers": [{"name": "c", "image": "k"}]}}, STRATEGIC),
        ),
        "order of items": (
            apply(f"{SERVICES}/x", {**service, "spec": {"ports": [{"name": n, "port": p} for n, p in (("a", 1), ("b", 2), ("c", 3))]}}, "one"),
            apply(f"{SERVICES}/x", {**service, "spec": {"ports": [{"name": n, "port": p} for n, p in (("c", 3), ("d", 4), ("a", 1))]}}, "two"),
            apply(f"{SERVICES}/x", {**service, "spec": {"ports": [{"name": n, "port": p} for n, p in (("b", 2), ("a", 1))]}}, "one"),
            apply(f"{SERVICES}/x", {**service, "spec": {"ports": [{"name": "e", "port": 5}]}}, "two"),
        ),
        "service ports with protocols": (
            apply(f"{SERVICES}/x", {**service, "spec": {"selector": {"a": "b"}, "ports": [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]}}),
            apply(f"{SERVICES}/x", {**service, "spec": {"selector": {"a": "c"}, "ports": [{"name": "t", "port": 53, "targetPort": 5353}]}}),
        ),
        "sets": (
            apply(f"{MAPS}/x", a_map(finalizers=["a.b/c", "d.e/f"]), "one"),
            apply(f"{MAPS}/x", a_map(finalizers=["g.h/i", "a.b/c"]), "two"),
            apply(f"{MAPS}/x", a_map(finalizers=["d.e/f"]), "one"),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"finalizers": None}}, MERGE),
        ),
        "owners": (
            apply(f"{MAPS}/x", a_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]), "one"),
            apply(f"{MAPS}/x", a_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u"}]), "two"),
            apply(f"{MAPS}/x", a_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u2"}]), "two"),
            apply(f"{MAPS}/x", a_map(), "one"),
        ),
        "duplicates": (
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="i"), a_container(image="j")])),
            apply(f"{MAPS}/x", a_map(finalizers=["a.b/c", "a.b/c"])),
            Step("POST", PODS, pod_configuration(containers=[a_container(image="i", env=[{"name": "E", "value": "1"}, {"name": "E", "value": "2"}])])),
            apply(f"{PODS}/x", {**pod_configuration(containers=[a_container(image="i")]), "metadata": {"name": "x", "labels": {"a": "b"}}}),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="i", env=[{"name": "E", "value": "3"}])])),
        ),
        "atomic": (
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="i", command=["a", "b"])], nodeSelector={"a": "b"}), "one"),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(image="i", command=["a"])], nodeSelector={"a": "c"}), "two"),
            apply(f"{DEPLOYMENTS}/x", a_deployment(replicas=1), "one"),
            apply(f"{DEPLOYMENTS}/x", {**a_deployment(), "spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}, "two"),
            apply(f"{DEPLOYMENTS}/x", {**a_deployment(), "spec": {"template": {"spec": {"nodeSelector": {"c": "d"}, "tolerations": []}}}}, "three"),
        ),
        "quantities are compared as they are written": (
            apply(f"{DEPLOYMENTS}/x", {**a_deployment(), "spec": {**a_deployment()["spec"], "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [a_container(image="i", resources={"limits": {"cpu": "500m", "memory": "1Gi"}})]}}}}, "one"),
            apply(f"{DEPLOYMENTS}/x", {**a_deployment(), "spec": {"template": {"spec": {"containers": [a_container(resources={"limits": {"cpu": 0.5, "memory": "1024Mi"}})]}}}}, "two"),
            apply(f"{DEPLOYMENTS}/x", {**a_deployment(), "spec": {"template": {"spec": {"containers": [a_container(resources={"limits": {"cpu": "500m", "memory": "1Gi"}})]}}}}, "two"),
        ),
    }  # fmt: skip


def _claims() -> dict[str, Scenario]:
    allocated = (
        Step("POST", CLAIMS, claim_configuration(spec=CLAIM_SPEC)),
        Step("PATCH", f"{CLAIMS}/x/status", {"status": {"allocation": ALLOCATION, "reservedFor": [CONSUMER]}}, MERGE, "kube-scheduler/1"),
    )  # fmt: skip
    status = f"{CLAIMS}/x/status"

    def by(*devices: Any, **more: Any) -> dict[str, Any]:
        return claim_configuration(status={"devices": list(devices), **more})

    return {
        "devices of a claim": (
            *allocated,
            apply(status, by(device_status(data={"a": {"b": 1}, "c": [1], "<x>&": "y"}, conditions=[CONDITION])), "driver"),
            apply(status, by(device_status(data={"a": {"b": 2}})), "other"),
            apply(status, by(device_status(networkData={"ips": ["10.0.0.1/8"], "interfaceName": "e"})), "other"),
            apply(status, by(device_status(conditions=[{**CONDITION, "status": "False"}])), "other"),
            apply(status, by(device_status(conditions=[OTHER_CONDITION])), "other"),
            apply(status, by(device_status(data={"z": 1})), "driver"),
            apply(status, by(), "driver"),
            apply(status, claim_configuration(status={}), "other"),
            apply(status, claim_configuration(status={"reservedFor": [{**CONSUMER, "uid": "u2"}]}), "other"),
            apply(status, claim_configuration(status={"reservedFor": [{**CONSUMER, "name": "q"}]}), "other"),
            apply(status, claim_configuration(status={"allocation": {}}), "other"),
        ),
        "a claim in two versions": (
            apply(f"{CLAIMS}/x", claim_configuration(spec=CLAIM_SPEC), "one"),
            apply(f"{BETA_CLAIMS}/x", claim_configuration("v1beta1", spec=FLAT_SPEC), "one"),
            apply(f"{BETA_CLAIMS}/x", {**claim_configuration("v1beta1"), "metadata": {"name": "x", "labels": {"a": "1"}}}, "two"),
            apply(f"{CLAIMS}/x", {**claim_configuration(), "metadata": {"name": "x", "labels": {"a": "2"}}}, "three"),
            apply(f"{CLAIMS}/x", {**claim_configuration(), "metadata": {"name": "x", "labels": {"b": "2"}}}, "two"),
            Step("PATCH", f"{BETA_CLAIMS}/x", {"metadata": {"labels": {"b": "3"}}}, MERGE),
            Step("PATCH", f"{CLAIMS}/x", {"metadata": {"labels": {"c": "3"}}}, MERGE),
            Step("GET", f"{BETA_CLAIMS}/x"),
        ),
        "status in two versions": (
            *allocated,
            apply(f"{BETA_CLAIMS}/x/status", {**by(device_status(conditions=[CONDITION])), "apiVersion": "resource.k8s.io/v1beta1"}, "driver"),
            apply(status, by(device_status(conditions=[{**CONDITION, "status": "False"}])), "other"),
            apply(status, by(device_status(data={"a": 1})), "driver"),
        ),
    }  # fmt: skip


def _writes() -> dict[str, Scenario]:
    start = Step("POST", MAPS, a_map({"a": "1"}))
    many: list[Step] = [Step("POST", f"{MAPS}?fieldManager=a", a_map({"a": "1"}))]
    for number in range(14):
        body = {"data": {f"k{number}": "v"}}
        many.append(Step("PATCH", f"{MAPS}/x?fieldManager=m{number:02}", body, MERGE))
    entry = {
        "manager": "mine",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:zz": {}}},
    }
    scale = f"{DEPLOYMENTS}/x/scale"
    a_scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}}
    return {
        "many updaters": tuple(many),
        "no user agent": (
            Step("POST", MAPS, a_map({"a": "1"}), agent=""),
            Step("PATCH", f"{MAPS}/x", {"data": {"a": "2"}}, MERGE, "Mozilla/5.0 (X11)"),
            Step("PATCH", f"{MAPS}/x", {"data": {"a": "3"}}, MERGE, "a b\tc/5"),
            Step("PATCH", f"{MAPS}/x", {"data": {"a": "4"}}, MERGE, "x" * 200),
        ),
        "nothing changes": (
            start,
            Step("PATCH", f"{MAPS}/x?fieldManager=other", {"data": {"a": "1"}}, MERGE),
            Step("PUT", f"{MAPS}/x?fieldManager=other", a_map({"a": "1"})),
            apply(f"{MAPS}/x", a_map({"a": "1"}), "first"),
            apply(f"{MAPS}/x", a_map({"a": "1"}), "first"),
        ),
        "reset": (
            start,
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [{}]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"data": {"b": "1"}}, MERGE),
            apply(f"{MAPS}/x", a_map({"c": "1"}), "first"),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": []}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": None}}, MERGE),
        ),
        "edited by hand": (
            start,
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [entry]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"data": {"b": "1"}, "metadata": {"managedFields": [entry]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [{**entry, "operation": "Foo"}]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [{**entry, "fieldsV1": {"x:y": {}}}]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [{**entry, "apiVersion": "v9"}]}}, MERGE),
            Step("PATCH", f"{MAPS}/x", {"data": {"c": "1"}}, MERGE),
            Step("POST", MAPS, {**a_map({"a": "1"}), "metadata": {"name": "y", "managedFields": [entry]}}),
            Step("POST", MAPS, {**a_map({"a": "1"}), "metadata": {"generateName": "y-"}}),
            Step("PATCH", f"{MAPS}/x", {"metadata": {"managedFields": [{**entry, "apiVersion": "v1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:data": {"k:{\"b\":1,\"a\":2}": {}, "v:1": {}, "i:3": {}, "f:a": {}}}}]}}, MERGE),
        ),
        "scale": (
            Step("POST", DEPLOYMENTS, a_deployment(replicas=1)),
            Step("PATCH", scale, {"spec": {"replicas": 2}}, MERGE, "kubectl/1"),
            Step("GET", f"{DEPLOYMENTS}/x"),
            Step("PUT", scale, {**a_scale, "spec": {"replicas": 2}}, JSON, "putter/1"),
            Step("GET", f"{DEPLOYMENTS}/x"),
            apply(scale, {**a_scale, "spec": {"replicas": 3}}, "hpa"),
            apply(scale, {**a_scale, "spec": {"replicas": 3}}, "hpa", force=True),
            Step("GET", f"{DEPLOYMENTS}/x"),
            apply(scale, {**a_scale, "spec": {"replicas": 3}}, "other"),
            Step("GET", f"{DEPLOYMENTS}/x"),
            apply(f"{DEPLOYMENTS}/x", a_deployment(replicas=5), "main"),
            apply(f"{DEPLOYMENTS}/x", a_deployment(), "main"),
            Step("GET", f"{DEPLOYMENTS}/x"),
        ),
        "scale of what was applied": (
            apply(f"{DEPLOYMENTS}/x", a_deployment(replicas=1), "main"),
            Step("PATCH", scale, {"spec": {"replicas": 2}}, MERGE, "kubectl/1"),
            Step("GET", f"{DEPLOYMENTS}/x"),
            apply(scale, {**a_scale, "spec": {"replicas": 2}}, "main"),
            Step("GET", f"{DEPLOYMENTS}/x"),
            apply(f"{DEPLOYMENTS}/x", a_deployment(replicas=3), "main"),
        ),
        "from client-side to server-side apply": (
            Step("POST", f"{MAPS}?fieldManager=kubectl-client-side-apply", a_map({"a": "1", "b": "1"}, annotations={LAST_APPLIED: '{"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"x"}}\n'})),
            apply(f"{MAPS}/x", a_map({"a": "2", "b": "1"}), "else"),
            apply(f"{MAPS}/x", a_map({"a": "2", "c": "1"}, annotations={"n": "1"}), "kubectl"),
            Step("PATCH", f"{MAPS}/x?fieldManager=other", {"data": {"a": "9"}}, MERGE),
            apply(f"{MAPS}/x", a_map({"a": "3"}), "kubectl"),
            apply(f"{MAPS}/x", a_map({"a": "3"}), "kubectl", force=True),
            apply(f"{MAPS}/x", a_map({"a": "3"}), "kubectl", force=True),
        ),
        "dry run": (
            start,
            apply(f"{MAPS}/x", a_map({"a": "2"}), more="&dryRun=All"),
            apply(f"{MAPS}/x", a_map({"a": "2"}), more="&dryRun=All", force=True),
            apply(f"{MAPS}/y", {**a_map({"a": "2"}), "metadata": {"name": "y"}}, more="&dryRun=All"),
            Step("GET", f"{MAPS}/x"),
        ),
        "bind and evict": (
            Step("POST", PODS, pod_configuration(containers=[a_container(image="i")])),
            Step("POST", f"{PODS}/x/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}}),
            Step("PATCH", f"{PODS}/x/status", {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}, STRATEGIC, "kube-scheduler/1"),
            Step("PATCH", f"{PODS}/x/status", {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}, STRATEGIC, "kubelet/1"),
        ),
        "an event in both groups": (
            Step("POST", "/apis/events.k8s.io/v1/namespaces/NS/events", {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "NS"}, "action": "a", "reason": "r", "note": "n", "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i"}),
            Step("PATCH", "/api/v1/namespaces/NS/events/x", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Step("GET", "/api/v1/namespaces/NS/events/x"),
        ),
    }  # fmt: skip


def _errors() -> dict[str, Scenario]:
    start = Step("POST", MAPS, a_map({"a": "1"}))
    pod = Step("POST", PODS, pod_configuration(containers=[a_container(image="i")]))
    one = f"{MAPS}/x"
    twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '1'}\ndata: {a: '1'}\n"
    return {
        "options": (
            start,
            Step("PATCH", one, a_map({"a": "1"}), APPLY),
            Step("PATCH", f"{one}?force=true", {}, MERGE),
            apply(one, a_map(), "m" * 129),
            apply(one, a_map({"a": "2"}), more="&force=maybe"),
        ),
        "bodies": (
            start,
            *(apply(one, body) for body in ("[]", "3", "''", "true", "", "{}", "null")),
            apply(one, twice),
            apply(one, twice, more="&fieldValidation=Strict"),
            apply(one, twice, more="&fieldValidation=Ignore"),
            apply(one, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '1'}\n---\nfoo: bar\n"),
        ),
        "types": (
            start,
            apply(one, {"data": {"a": "2"}}),
            apply(one, {**a_map(), "kind": "Secret"}),
            apply(one, {**a_map(), "apiVersion": "v2"}),
            apply(one, {**a_map(), "apiVersion": "apps/v1"}),
            apply(one, {**a_map(), "kind": 1}),
            apply(one, {**a_map(), "metadata": []}),
            apply(one, {**a_map(), "metadata": {"name": 1}}),
            apply(one, {**a_map(), "foo": 1}),
            apply(one, a_map(x=1)),
            apply(one, a_map({"a": 1})),
            apply(one, a_map({"a": {"b": [1, "x", None, True, 1.5]}})),
            apply(one, a_map([{"b": [1, "x", None, True, 1.5]}])),
            apply(one, a_map("x")),
            apply(one, a_map(managedFields=[{"manager": "x"}])),
            apply(one, a_map(managedFields=[])),
            apply(one, a_map({"a": "1"}, managedFields=None)),
            apply(one, a_map(finalizers=[None])),
            apply(one, a_map(finalizers=[{}])),
            apply(one, a_map(finalizers=[[]])),
            apply(one, a_map(finalizers=["a/b", "a/b"])),
        ),
        "types in a pod": (
            pod,
            apply(f"{PODS}/x", pod_configuration(terminationGracePeriodSeconds="x")),
            apply(f"{PODS}/x", pod_configuration(hostNetwork="x")),
            apply(f"{PODS}/x", pod_configuration(tolerations={})),
            apply(f"{PODS}/x", pod_configuration(containers={})),
            apply(f"{PODS}/x", pod_configuration(containers=[None])),
            apply(f"{PODS}/x", pod_configuration(containers=[1])),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(resources={"limits": {"cpu": {}}})])),
            apply(f"{PODS}/x", pod_configuration(containers=[a_container(), a_container()])),
        ),
        "places": (
            start,
            apply(one, {**a_map(), "metadata": {"name": "z"}}),
            apply(one, {**a_map({"a": "1"}), "metadata": {}}),
            apply(one, a_map(namespace="kube-system")),
            apply(one, a_map({"a": "1"}, resourceVersion="5")),
            apply(f"{MAPS}/new", {**a_map(), "metadata": {"name": "z"}}),
            apply(f"{MAPS}/new", {**a_map(), "metadata": {}}),
            apply(f"{MAPS}/new", {**a_map(), "metadata": {"generateName": "new-"}}),
            apply(f"{MAPS}/new1", {**a_map(), "metadata": {"name": "new1", "resourceVersion": "5"}}),
            apply(f"{MAPS}/new2", {**a_map(), "metadata": {"name": "new2", "uid": "5"}}),
            apply("/api/v1/namespaces/missing/configmaps/x", a_map()),
            apply(f"{PODS}/missing/status", {**pod_configuration(), "metadata": {"name": "missing"}}),
            apply(f"{MAPS}/Bad", {**a_map(), "metadata": {"name": "Bad"}}),
            apply(one, a_map({"a/b": "c"})),
        ),
    }  # fmt: skip


def _random() -> dict[str, Scenario]:
    return {
        f"random {seed}": tuple(Step(*request) for request in Sequence(seed).requests())
        for seed in range(COUNT)
    }


SCENARIOS: dict[str, Scenario] = {
    **_conflicts(),
    **_lists(),
    **_claims(),
    **_writes(),
    **_errors(),
    **_of_statuses(),
    **_of_kinds(),
    **_random(),
}
