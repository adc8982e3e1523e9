"""Requests about what is between a client and an object: kinds without objects, media types, patches, quantities.

    python -m tests.conformance.wire_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/wire-recorded.json.gz`.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlparse

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

IN_DEFAULT = "/api/v1/namespaces/default"
STATUSES = "/api/v1/componentstatuses"
BINDINGS = f"{IN_DEFAULT}/bindings"
CONFIG_MAPS = f"{IN_DEFAULT}/configmaps"
SERVICES = f"{IN_DEFAULT}/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
QUOTAS = f"{IN_DEFAULT}/resourcequotas"


class Step(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON


class Seen(NamedTuple):
    """As much of an answer as is compared."""

    code: int
    content_type: str
    body: Any
    warnings: list[str]


def each(*bodies: Any) -> tuple[Any, ...]:
    """Bodies of any types."""
    return bodies


# --- kinds without stored objects ---


def component_statuses() -> Iterator[Step]:
    yield Step("GET", "/api/v1")
    selected = (
        "labelSelector=a%3Db",
        "fieldSelector=metadata.name%3Detcd-0",
        "fieldSelector=foo%3Dx",
    )
    read = (
        "limit=1",
        "limit=abc",
        "watch=1",
        "resourceVersion=5",
        "resourceVersion=x",
        "continue=abc",
    )
    for query in ("", *selected, *read, "resourceVersionMatch=Exact"):
        yield Step("GET", f"{STATUSES}?{query}")
    for name in ("etcd-0", "scheduler", "controller-manager", "absent", "etcd-0/status"):
        yield Step("GET", f"{STATUSES}/{name}")
    yield Step("GET", f"{STATUSES}/scheduler?resourceVersion=x")
    for accept in (TABLE, METADATA_LIST):
        yield Step("GET", STATUSES, accept=accept)
    for accept in (TABLE, METADATA):
        yield Step("GET", f"{STATUSES}/etcd-0", accept=accept)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        yield Step(method, STATUSES, {})
        yield Step(method, f"{STATUSES}/scheduler", {})


def bindings() -> Iterator[Step]:
    target = {"target": {"name": "n"}}
    named = {"metadata": {"name": "p"}}
    yield Step("POST", f"{IN_DEFAULT}/pods", pod("p"))
    yield Step("GET", BINDINGS)
    yield Step("GET", "/api/v1/bindings")
    yield Step("POST", "/api/v1/bindings", {**named, **target})
    yield Step("DELETE", BINDINGS)
    for method in ("GET", "PUT", "PATCH", "DELETE", "POST"):
        yield Step(method, f"{BINDINGS}/p", None if method == "GET" else {})
    for body in (
        {**named, "target": {"name": "n", "kind": "Foo"}},
        {**named, "target": {"kind": "Foo"}},
        {"metadata": {"name": "p", "namespace": "other"}, **target},
        {"metadata": {"name": "absent"}, **target},
        {"metadata": {}, **target},
        target,
        named,
        {**named, "target": {}},
        {"kind": "Pod", "apiVersion": "v1", **named},
    ):
        yield Step("POST", BINDINGS, body)
    part = f"{IN_DEFAULT}/pods/p/binding"
    for body in (
        {**named, "target": {"name": "n", "kind": "Foo"}},
        {"metadata": {"name": "q"}, **target},
        {"metadata": {"name": "p", "namespace": "other"}, **target},
        named,
    ):
        yield Step("POST", part, body)
    yield Step("POST", f"{IN_DEFAULT}/pods/absent/binding", {**named, **target})
    yield Step("POST", f"{IN_DEFAULT}/pods/absent/binding", target)
    yield Step("POST", f"{BINDINGS}?dryRun=All", {**named, **target})
    yield Step("POST", f"{BINDINGS}?fieldValidation=Strict", {**named, **target, "foo": 1})
    yield Step("POST", "/api/v1/namespaces/absent/bindings", {**named, **target})
    yield Step("POST", BINDINGS, {**named, **target})
    yield Step("POST", BINDINGS, {**named, **target})
    yield Step("GET", f"{IN_DEFAULT}/pods/p")


# --- media types ---

CONTENT_TYPES = (
    "text/plain", "application/foo", "", "application/json; charset=utf-8", "application/json;charset=latin-1",
    "application/cbor", YAML, "*/*", "nonsense", "application/json, text/plain", "application/json;stream=watch",
    "Application/JSON", STRATEGIC, "application/merge-patch+json", "application/json-patch+json",
    "application/apply-patch+yaml", "application/apply-patch+cbor", "application/merge-patch+json; charset=utf-8",
)  # fmt: skip
ACCEPTED = (
    "text/plain", "application/xml", "image/png, text/html", "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=Foo;v=v1;g=meta.k8s.io", "*/*", "text/plain, application/json",
)  # fmt: skip


def media_types() -> Iterator[Step]:
    for kind in CONTENT_TYPES:
        yield Step("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "x"}}, kind)
        yield Step("PUT", f"{CONFIG_MAPS}/absent", {"metadata": {"name": "absent"}}, kind)
        yield Step("DELETE", f"{CONFIG_MAPS}/absent", {}, kind)
        if "json-patch" not in kind:
            yield Step("PATCH", f"{CONFIG_MAPS}/absent", {"data": {"a": "b"}}, kind)
    for path in (
        f"{IN_DEFAULT}/pods/p/eviction",
        f"{IN_DEFAULT}/serviceaccounts/absent/token",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        BINDINGS,
    ):
        yield Step("POST", path, {"metadata": {"name": "p"}}, "text/plain")
    yield Step("PATCH", f"{DEPLOYMENTS}/absent/scale", {}, "text/plain")
    for accept in ACCEPTED:
        yield Step("GET", f"{CONFIG_MAPS}?labelSelector=none", accept=accept)
        yield Step("GET", f"{CONFIG_MAPS}/absent", accept=accept)


# --- strategic merge patches of lists whose key is not unique ---


def pod(name: str, **container: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **container}]
    return {"metadata": {"name": name}, "spec": {"containers": containers}}


def template(**container: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": pod("", **container)["spec"]}


def workload(name: str, **container: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template(**container)}
    return {"metadata": {"name": name}, "spec": spec}


def ports() -> Iterator[Step]:
    several = [
        {"name": "a", "port": 53, "protocol": "UDP"},
        {"name": "b", "port": 53, "protocol": "TCP"},
        {"name": "c", "port": 80},
    ]
    yield Step("POST", SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": several}})
    for patch in (
        [{"port": 53, "protocol": "TCP", "name": "bb"}],
        [{"port": 53, "protocol": "UDP", "name": "aa"}],
        [{"port": 81, "name": "d"}],
        [
            {"port": 82, "name": "e", "protocol": "TCP"},
            {"port": 82, "name": "f", "protocol": "UDP"},
        ],
        [{"port": 53, "$patch": "delete"}],
    ):
        yield Step("PATCH", f"{SERVICES}/s", {"spec": {"ports": patch}}, STRATEGIC)
    several = [
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 53, "protocol": "TCP", "name": "dns"},
        {"containerPort": 80},
    ]
    yield Step("POST", DEPLOYMENTS, workload("d", ports=several))
    for changed in (
        {"ports": [{"containerPort": 53, "protocol": "UDP", "name": "y"}]},
        {"ports": [{"containerPort": 90}]},
        {
            "ports": [
                {"containerPort": 90, "protocol": "UDP"},
                {"containerPort": 90, "protocol": "TCP"},
            ]
        },
        {"image": "k"},
        {"ports": [{"containerPort": 53, "$patch": "delete"}]},
        {"ports": [{"$setElementOrder/ports": 1}]},
        {
            "$setElementOrder/ports": [{"containerPort": 80}, {"containerPort": 90}],
            "ports": [{"containerPort": 90, "name": "z"}],
        },
    ):
        containers = [{"name": "c", **changed}]
        patch_ = {"spec": {"template": {"spec": {"containers": containers}}}}
        yield Step("PATCH", f"{DEPLOYMENTS}/d", patch_, STRATEGIC)


# --- quantities ---

QUANTITIES = (
    "1", "0", "-1", "1.5", "1000", "1e3", "1E3", "1Ki", "1024", "1024Ki", "0.1Ki", "100m", "1000u", "1n",
    "0.0000000001", "12345678901234567890", "1.23456789123", "1e-3", "5e0", "0.5Mi", "+1", "01", "1.0", "1.50", "1k",
    "1000k", "1Ei", "8Ei", "1e30", "0Ki", "-0.5", "1000000000000", "1e3k", "", "x", ".5", "5.", "+5m", "1e2", "1E",
    "100000u", "2000m", "1000000000", "1073741824", "1536Mi",
)  # fmt: skip


def quantities() -> Iterator[Step]:
    for quantity in (*QUANTITIES, 5, 1000, 1.5, True, None):
        hard = {"cpu": quantity, "example.com/x": quantity}
        if str(quantity).startswith("-"):
            del hard["example.com/x"]  # errors come in any order
        body = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        yield Step("POST", f"{QUOTAS}?dryRun=All", body)
    asked = {"requests": {"cpu": "1000m", "memory": "1024Mi"}}
    limits = {"limits": {"memory": "1073741824", "cpu": "1.50", "ephemeral-storage": "5000m"}}
    field = {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}
    container = {"resources": {**asked, **limits}, "env": [{"name": "E", "valueFrom": field}]}
    volume = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    whole = pod("pq", **container)
    whole["spec"]["volumes"] = [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}]
    limit = {"type": "Container", "default": {"cpu": "1500m", "memory": "1024Ki"}}
    limit |= {
        "max": {"cpu": "2000m", "memory": "1048576Ki"},
        "maxLimitRequestRatio": {"cpu": "1000m"},
    }
    node_status = {
        "capacity": {"cpu": "4000m", "memory": "8192Mi", "example.com/z": "1e3"},
        "allocatable": {"cpu": "4.0"},
    }
    set_ = workload("st", resources=asked)
    set_["spec"] |= {
        "serviceName": "s",
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": volume}],
    }
    target = {"type": "AverageValue", "averageValue": "1000m"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": target}}
    scaled = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    template_ = template(resources=asked)
    bodies: tuple[tuple[str, dict[str, Any]], ...] = (
        (QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"requests.storage": "0.5Gi", "count/x": "+5"}}}),
        ("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"providerID": "x"}, "status": node_status}),
        ("/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": {
            "capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
        (f"{IN_DEFAULT}/persistentvolumeclaims", {"metadata": {"name": "pvc"}, "spec": volume}),
        (f"{IN_DEFAULT}/pods", whole),
        ("/apis/node.k8s.io/v1/runtimeclasses", {
            "metadata": {"name": "rc"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1000m", "memory": "1024Ki"}}}),
        ("/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities", {
            "metadata": {"name": "csc"}, "storageClassName": "s", "capacity": "1024Mi", "maximumVolumeSize": "1000m"}),
        ("/apis/apps/v1/namespaces/default/statefulsets", set_),
        ("/apis/apps/v1/namespaces/default/daemonsets", workload("ds", resources=asked)),
        ("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": {
            "template": {"spec": template_["spec"] | {"restartPolicy": "Never"}}}}),
        ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {
            "metadata": {"name": "hpa"}, "spec": {"scaleTargetRef": scaled, "maxReplicas": 3, "metrics": [metric]}}),
        (f"{IN_DEFAULT}/replicationcontrollers", {
            "metadata": {"name": "rc"}, "spec": {"selector": {"a": "b"}, "template": template_}}),
        (f"{IN_DEFAULT}/podtemplates", {"metadata": {"name": "pt"}, "template": template_}),
        (f"{IN_DEFAULT}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}),
    )  # fmt: skip
    for path, body in bodies:
        yield Step("POST", path, body)
    patch: dict[str, Any] = {"spec": {"hard": {"cpu": "2000m"}}}
    yield Step("PATCH", f"{QUOTAS}/q", patch, "application/merge-patch+json")
    status = {"status": {"hard": {"cpu": "2000m"}, "used": {"cpu": "1.0"}}}
    yield Step("PATCH", f"{QUOTAS}/q/status", status, "application/merge-patch+json")
    containers = [{"name": "c", "resources": {"limits": {"cpu": "0.5", "memory": "2048Ki"}}}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    yield Step("PATCH", f"{DEPLOYMENTS}/d", patch, STRATEGIC)


def all_steps() -> list[Step]:
    parts = (component_statuses, bindings, media_types, ports, quantities)
    return [step for part in parts for step in part()]


# --- recording ---

_DYNAMIC = frozenset(
    {
        "uid", "resourceVersion", "creationTimestamp", "managedFields", "storageVersionHash", "lastTransitionTime",
        "description", "clusterIP", "clusterIPs", "controller-uid", "batch.kubernetes.io/controller-uid", "startTime",
        # What other tests are about.
        "finalizers", "labels", "annotations", "generation", "taints", "nodeInfo", "daemonEndpoints", "lastProbeTime",
        "lastPhaseTransitionTime",
    }
)  # fmt: skip
_place = re.compile(r" \([\w.\[\]-]+: [^()]*\)$")
"""Ours also says where in a document a value of the wrong type is."""
_uid = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_time = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_version = re.compile(r"(ResourceVersion in (object meta: |record \())\d+")
_shown_object = re.compile(r'Invalid value: "\{\\".*\}":', re.DOTALL)
"""The whole object after a patch, with its managedFields."""
_health = re.compile(r'Get "https://127\.0\.0\.1:\d+/healthz": .*')


def comparable(value: Any) -> Any:
    """A document without what differs from run to run, and without proxies: simulated pods serve nothing."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items() if name not in _DYNAMIC}
    if isinstance(value, list):
        shown = [comparable(item) for item in value if "/proxy'" not in str(item)]
        is_unordered = all(isinstance(each, dict) and "metadata" in str(each) for each in shown)
        return sorted(shown, key=json.dumps) if is_unordered else shown
    return _comparable_text(value) if isinstance(value, str) else value


def _comparable_text(text: str) -> str:
    text = _place.sub("", _health.sub("unhealthy", text))
    text = _shown_object.sub("Invalid value: OBJECT:", _version.sub(r"\1VERSION", text))
    return _time.sub("TIME", _uid.sub("UID", text))


def seen(code: int, headers: Iterable[tuple[str, str]], body: bytes) -> Seen:
    named = [(name.lower(), value) for name, value in headers]
    content_type = next((value for name, value in named if name == "content-type"), "")
    warnings = [
        value for name, value in named if name == "warning" and "without effect" not in value
    ]
    try:
        shown: Any = comparable(json.loads(body))
    except ValueError:
        shown = body.decode(errors="replace")
    return Seen(code, content_type, shown, warnings)


def headers_of(step: Step, token: str) -> Mapping[str, str]:
    kind = {} if step.body is None else {"content-type": step.content_type}
    return {
        "authorization": f"Bearer {token}",
        "accept": step.accept,
        "user-agent": "steps",
        **kind,
    }


def print_answers(url: str, token: str, steps: Iterable[Step]) -> None:
    """Play the steps on a server and print what is seen, as JSON."""
    place, names = urlparse(url), Names()
    context = ssl._create_unverified_context()  # noqa: S323 - a server on this machine
    connection = http.client.HTTPSConnection(place.hostname or "", place.port, context=context)
    answers = []
    for step in steps:
        connection.request(step.method, step.path, names.body(step), dict(headers_of(step, token)))
        response = connection.getresponse()
        content = response.read()
        names.learn(content)
        answers.append(seen(response.status, response.getheaders(), content))
    json.dump(answers, sys.stdout)


class Names:
    """The uids and versions of objects, for steps that mean one as `<uid NAME>` and `<version NAME>`."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def body(self, step: Step) -> bytes | None:
        if step.body is None:
            return None
        text = json.dumps(step.body)
        for name, value in self._values.items():
            text = text.replace(name, value)
        return text.encode()

    def learn(self, answer: bytes) -> None:
        try:
            metadata = json.loads(answer)["metadata"]
            self._values[f"<uid {metadata['name']}>"] = metadata["uid"]
            self._values[f"<version {metadata['name']}>"] = metadata["resourceVersion"]
        except (ValueError, KeyError, TypeError):
            pass  # not an object


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
