"""Everything discovery advertises is really there: each verb of each resource in each version."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import CertificateSigningRequestBuilder, Name

from allot.apiserver.kinds.resources import RESOURCES, Resource
from tests.clients.in_process import Answer, InProcessServer

_PODS: Final[dict[str, Any]] = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
}
_JOB: Final = {
    "template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
_REQUEST: Final = b64encode(
    b"-----BEGIN CERTIFICATE REQUEST-----\nZm9v\n-----END CERTIFICATE REQUEST-----\n"
).decode()
_STUB: Final = b64encode(
    CertificateSigningRequestBuilder()
    .subject_name(Name([]))
    .sign(generate_private_key(SECP256R1()), SHA256())
    .public_bytes(Encoding.DER)
).decode()
_MATCHED: Final = {
    "resourceRules": [
        {
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["samples"],
        }
    ]
}
_CONTENT: Final[dict[str, dict[str, Any]]] = {
    "MutatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": _MATCHED,
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{}"},
                }
            ],
        }
    },
    "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "p"}},
    "ValidatingAdmissionPolicy": {
        "spec": {"matchConstraints": _MATCHED, "validations": [{"expression": "true"}]}
    },
    "ValidatingAdmissionPolicyBinding": {
        "spec": {"policyName": "p", "validationActions": ["Deny"]}
    },
    "CustomResourceDefinition": {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        }
    },
    "PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    },
    "PersistentVolume": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/x"},
        }
    },
    "Pod": {"spec": _PODS["template"]["spec"]},
    "PodTemplate": {"template": _PODS["template"]},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": _PODS["template"]}},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "ControllerRevision": {"data": {"x": 1}, "revision": 1},
    "DaemonSet": {"spec": _PODS},
    "Deployment": {"spec": _PODS},
    "ReplicaSet": {"spec": _PODS},
    "StatefulSet": {"spec": {**_PODS, "serviceName": "s"}},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}},
    "Job": {"spec": _JOB},
    "ClusterRoleBinding": {"roleRef": _ROLE},
    "RoleBinding": {"roleRef": _ROLE},
    "StorageClass": {"provisioner": "p.example.com"},
    "VolumeAttachment": {
        "spec": {
            "attacher": "a.example.com",
            "nodeName": "n",
            "source": {"persistentVolumeName": "v"},
        }
    },
    "RuntimeClass": {"handler": "h"},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 3,
        }
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "example.com/c"}},
    "IPAddress": {"spec": {"parentRef": {"resource": "services", "name": "s"}}},
    "ServiceCIDR": {"spec": {"cidrs": ["198.51.100.0/24"]}},
    "CertificateSigningRequest": {
        "spec": {"request": _REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}
    },
    "ClusterTrustBundle": {
        "spec": {"trustBundle": "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n"}
    },
    "PodCertificateRequest": {
        "spec": {
            "signerName": "example.com/s",
            "podName": "p",
            "podUID": "1",
            "serviceAccountName": "default",
            "serviceAccountUID": "2",
            "nodeName": "n",
            "nodeUID": "3",
            "stubPKCS10Request": _STUB,
        }
    },
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "global-default"}}},
    "PriorityLevelConfiguration": {
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    },
    "APIService": {
        "spec": {"group": "example.com", "groupPriorityMinimum": 100, "versionPriority": 15}
    },
    "StorageVersionMigration": {"spec": {"resource": {"group": "", "resource": "pods"}}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": []},
    "ResourceSlice": {
        "spec": {
            "driver": "a.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        }
    },
    "DeviceTaintRule": {
        "spec": {
            "deviceSelector": {"driver": "a.example.com"},
            "taint": {"key": "a.example.com/k", "effect": "NoSchedule"},
        }
    },
    "ResourcePoolStatusRequest": {"spec": {"driver": "a.example.com"}},
}
"""What an object of a kind needs besides a name."""


_NEW_EVENT: Final = {
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "type": "Normal",
    "reason": "Tested",
    "action": "Testing",
    "reportingController": "example.com/c",
    "reportingInstance": "c-1",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
}
"""Events of the old API need none of these."""


SETTLED: Final[dict[str, str]] = {
    "APIService": "conditions",
    "CustomResourceDefinition": "conditions",
    "ValidatingAdmissionPolicy": "observedGeneration",
}
"""Kinds whose status the server itself writes, and the field that shows that it has."""


class Served(NamedTuple):
    """A resource in one version, and where it is."""

    resource: Resource
    version: str

    @property
    def api_version(self) -> str:
        group = self.resource.group
        return f"{group}/{self.version}" if group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.resource.group else f"/api/{self.api_version}"

    @property
    def path(self) -> str:
        place = "/namespaces/default" if self.resource.namespaced else ""
        return f"{self.root}{place}/{self.resource.plural}"

    def name(self, short: str) -> str:
        """A name of the kind's own form."""
        number = sum(map(ord, short))
        match self.resource.kind:
            case "IPAddress":
                return f"192.0.2.{number % 256}"
            case "APIService":
                return f"v{number}.example.com"
            case "CustomResourceDefinition":
                return f"{short}.example.com"
            case _:
                return short

    def document(self, name: str) -> dict[str, Any]:
        content = _CONTENT.get(self.resource.kind, {})
        first = self.name(name).partition(".")[0]
        match self.resource.kind:
            case "APIService":
                content = {"spec": {**content["spec"], "version": first}}
            case "Event" if self.resource.group:
                content = _NEW_EVENT
            case "CustomResourceDefinition":
                names = {"plural": first, "kind": first.capitalize()}
                content = {"spec": {**content["spec"], "names": names}}
        return {
            "kind": self.resource.kind,
            "apiVersion": self.api_version,
            "metadata": {"name": self.name(name), "labels": {"test": "yes"}},
            **content,
        }

    def create(self, server: InProcessServer, short: str) -> Answer:
        """The answer to a create, when the server has written what it writes into the status."""
        created = server.request("POST", self.path, self.document(short))
        assert created.code == 201, created
        field = SETTLED.get(self.resource.kind)
        place = f"{self.path}/{self.name(short)}"
        return wait_for(
            lambda: created if field is None else server.request("GET", place),
            lambda answer: field is None or answer.json.get("status", {}).get(field),
        )


def wait_for(ask: Callable[[], Answer], is_settled: Callable[[Answer], object]) -> Answer:
    """The first answer that is settled."""
    deadline = time.monotonic() + 30
    while not is_settled(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)
    return answer


SERVED: Final = [
    Served(resource, version)
    for resource in RESOURCES
    for version in resource.versions
    if resource.is_stored
]
each_served: Final = pytest.mark.parametrize(
    "served", SERVED, ids=[f"{served.api_version}-{served.resource.plural}" for served in SERVED]
)
PATCHES: Final = {
    "application/merge-patch+json": {"metadata": {"annotations": {"merge": "1"}}},
    "application/strategic-merge-patch+json": {"metadata": {"annotations": {"strategic": "2"}}},
    "application/json-patch+json": [
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/first"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/second"},
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as running:
        yield running


NOT_STORED: Final = ("bindings", "componentstatuses")
"""Bindings are only created, and component statuses only read: tests/conformance/test_wire.py."""


def test_discovery_advertises_what_is_tested(server: InProcessServer) -> None:
    advertised = set()
    for root in dict.fromkeys(served.root for served in SERVED):
        for resource in server.request("GET", root).json["resources"]:
            if "/" not in resource["name"] and resource["name"] not in NOT_STORED:
                advertised.add((root, resource["name"], tuple(resource["verbs"])))

    assert advertised == {
        (served.root, served.resource.plural, tuple(sorted(served.resource.verbs)))
        for served in SERVED
    }


PATCHED: Final = {"merge": "1", "strategic": "2"}


@each_served
def test_every_verb(server: InProcessServer, served: Served) -> None:
    """create, get, list, watch, update, three patches and delete."""
    place = f"{served.path}/{served.name('x')}"
    created = served.create(server, "x")
    assert (created.json["kind"], created.json["apiVersion"]) == (
        served.resource.kind,
        served.api_version,
    )
    assert server.request("GET", place).json == created.json
    assert server.request("POST", served.path, served.document("x")).code == 409

    listed = server.request(
        "GET", f"{served.root}/{served.resource.plural}?labelSelector=test"
    ).json
    assert listed["kind"] == f"{served.resource.kind}List"
    assert [item["metadata"]["name"] for item in listed["items"]] == [served.name("x")]
    watched = server.request("GET", f"{served.path}?watch=true&labelSelector=test")
    event = json.loads(watched.body.splitlines()[0])
    assert (event["type"], event["object"]) == ("ADDED", created.json)

    updated = server.request("PUT", place, created.json)
    assert updated.code == 200, updated
    assert (
        updated.json["metadata"]["resourceVersion"] == created.json["metadata"]["resourceVersion"]
    )
    for content_type, patch in PATCHES.items():
        patched = server.request("PATCH", place, patch, content_type)
        assert patched.code == 200, (content_type, patched)
    annotations = patched.json["metadata"]["annotations"]
    assert {name: annotations[name] for name in PATCHED} == PATCHED
    assert patched.json["metadata"]["finalizers"] == ["example.com/first", "example.com/second"]
    assert server.request("PUT", place, created.json).code == 409

    assert server.request("DELETE", place).code == 200
    assert server.request("GET", place).json["metadata"]["deletionTimestamp"]
    freed = [{"op": "remove", "path": "/metadata/finalizers"}]
    assert server.request("PATCH", place, freed, "application/json-patch+json").code == 200
    if served.resource.kind == "Namespace":
        finalized = {**served.document("x"), "spec": {"finalizers": []}}
        assert server.request("PUT", f"{place}/finalize", finalized).code == 200
    wait_for(lambda: server.request("GET", place), lambda answer: answer.code == 404)


@each_served
def test_status_is_apart(server: InProcessServer, served: Served) -> None:
    """A write of the object leaves the status alone, and a write of the status the object."""
    if served.resource.subresource("status") is None:
        answer = server.request("GET", f"{served.path}/{served.name('x')}/status")
        assert answer.code == 404
        return
    created = served.create(server, "s").json
    place = f"{served.path}/{served.name('s')}"
    changed = {"metadata": {"name": served.name("s")}, "spec": None}
    patched = server.request(
        "PATCH", f"{place}/status", changed, "application/merge-patch+json"
    ).json

    intruding = {"status": {"zzz": "1"}}
    intruded = server.request("PATCH", place, intruding, "application/merge-patch+json").json

    assert patched.get("spec") == created.get("spec")
    assert intruded.get("status") == patched.get("status")
    assert server.request("GET", f"{place}/status").json == patched
    assert server.request("PUT", f"{place}/status", patched).code == 200
    server.request("DELETE", place)


@each_served
def test_deletecollection(server: InProcessServer, served: Served) -> None:
    for name in ("d1", "d2"):
        served.create(server, name)
    answer = server.request("DELETE", f"{served.path}?labelSelector=test%3Dyes")

    if "deletecollection" not in served.resource.verbs:
        assert answer.code == 405
        return
    assert answer.code == 200
    assert {item["metadata"]["name"] for item in answer.json["items"]} == {
        served.name("d1"),
        served.name("d2"),
    }
    # A definition is gone when its objects are.
    wait_for(
        lambda: server.request("GET", f"{served.path}?labelSelector=test"),
        lambda left: not left.json["items"],
    )


@each_served
def test_methods_that_make_no_sense(server: InProcessServer, served: Served) -> None:
    for method, path in [
        ("PUT", served.path),
        ("PATCH", served.path),
        ("POST", f"{served.path}/{served.name('x')}"),
        ("OPTIONS", served.path),
    ]:
        answer = server.request(method, path, served.document("x"))
        assert (answer.code, answer.json["reason"]) == (405, "MethodNotAllowed"), (method, path)
    for part in ("no-such", "status/status"):
        answer = server.request(
            "PUT", f"{served.path}/{served.name('x')}/{part}", served.document("x")
        )
        assert (answer.code, answer.json["reason"]) == (404, "NotFound")
