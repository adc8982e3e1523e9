"""What Helm, k9s, Headlamp and kueue ask when they start is answered.

Each request names the public source that it is taken from.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

import pytest

from allot.testing.servers import LocalServer

AGGREGATED: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OPENAPI_V2: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_AUTHORIZATION: Final = "/apis/authorization.k8s.io/v1"
_AUTHENTICATION: Final = "/apis/authentication.k8s.io/v1"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"


class Request(NamedTuple):
    """A request and what its answer must have."""

    source: str
    path: str
    accept: str = "application/json"
    body: Any = None
    expected: str = ""
    """A word of the answer."""
    code: int = 200


def access(group: str, resource: str, verb: str) -> dict[str, Any]:
    attributes = {"group": group, "resource": resource, "verb": verb}
    return {"spec": {"resourceAttributes": attributes}}


HELM: Final = [
    Request("helm/helm pkg/kube/client.go IsReachable", "/version", expected='"gitVersion"'),
    Request("helm/helm pkg/action/action.go GetVersionSet", "/api", AGGREGATED, expected="pods"),
    Request("helm/helm pkg/action/action.go GetVersionSet", "/apis", AGGREGATED, expected="deviceclasses"),
    Request("helm/helm pkg/action/action.go GetVersionSet", "/api", expected='"v1"'),
    Request("helm/helm pkg/action/action.go GetVersionSet", "/apis/resource.k8s.io/v1", expected="ResourceClaim"),
    Request(
        "helm/helm pkg/storage/driver/secrets.go Query",
        "/api/v1/namespaces/default/secrets?labelSelector=name%3Dx%2Cowner%3Dhelm",
        expected="SecretList",
    ),
    Request("helm/helm pkg/kube/client.go Build, kubectl's validator", "/openapi/v3", expected="apis/apps/v1"),
    Request("helm/helm pkg/kube/client.go Build, kubectl's validator", "/openapi/v3/api/v1", expected="fieldValidation"),
    Request("helm/helm pkg/kube/client.go Build, kubectl's validator", "/openapi/v2", OPENAPI_V2, expected="core.v1.Pod"),
    Request("helm/helm pkg/action/install.go installCRDs", f"{_CRDS}/x.example.com", code=404),
]  # fmt: skip
K9S: Final = [
    Request("derailed/k9s internal/client/client.go CheckConnectivity", "/version", expected='"minor"'),
    Request("derailed/k9s internal/client/client.go supportsMetricsResources", "/apis", expected="APIGroupList"),
    Request(
        "derailed/k9s internal/client/client.go CanI",
        f"{_AUTHORIZATION}/selfsubjectaccessreviews",
        body=access("", "namespaces", "list"),
        expected='"allowed":true',
        code=201,
    ),
    Request("derailed/k9s internal/client/client.go ValidNamespaceNames", "/api/v1/namespaces", expected="NamespaceList"),
    Request("derailed/k9s internal/dao/registry.go loadPreferred", "/apis", AGGREGATED, expected="shortNames"),
    Request("derailed/k9s internal/dao/registry.go loadCRDs", _CRDS, expected="CustomResourceDefinitionList"),
    Request("derailed/k9s internal/dao/table.go List", "/api/v1/pods", TABLE, expected="columnDefinitions"),
    Request("derailed/k9s internal/dao/table.go List", "/api/v1/nodes", TABLE, expected="columnDefinitions"),
    Request("derailed/k9s internal/model/cluster_info.go Refresh", "/api/v1/nodes?limit=100", expected="NodeList"),
]  # fmt: skip
HEADLAMP: Final = [
    Request("headlamp-k8s/headlamp frontend/src/lib/k8s/api/v1/clusterApi.ts getVersion", "/version", expected="gitVersion"),
    Request(
        "headlamp-k8s/headlamp frontend/src/lib/k8s/api/v1/clusterApi.ts testAuth",
        f"{_AUTHORIZATION}/selfsubjectrulesreviews",
        body={"spec": {"namespace": "default"}},
        expected='"resourceRules"',
        code=201,
    ),
    Request("headlamp-k8s/headlamp frontend/src/lib/k8s/api/v1/clusterApi.ts testClusterHealth", "/healthz", expected="ok"),
    Request(
        "headlamp-k8s/headlamp frontend/src/lib/k8s/KubeObject.ts fetchAuthorization",
        f"{_AUTHORIZATION}/selfsubjectaccessreviews",
        body=access("", "nodes", "list"),
        expected='"allowed":true',
        code=201,
    ),
    Request("headlamp-k8s/headlamp frontend/src/lib/k8s/crd.ts", _CRDS, expected="CustomResourceDefinitionList"),
    Request("headlamp-k8s/headlamp frontend/src/lib/docs", "/openapi/v2", expected="definitions"),
    Request("headlamp-k8s/headlamp frontend/src/lib/k8s/api/v1/metricsApi.ts", "/apis/metrics.k8s.io/v1beta1/nodes", code=404),
    Request("headlamp-k8s/headlamp frontend/src/lib/k8s/event.ts", "/api/v1/events?limit=2000", expected="EventList"),
]  # fmt: skip
KUEUE: Final = [
    Request("kubernetes-sigs/kueue cmd/kueue/main.go NewManager, its RESTMapper", "/apis", AGGREGATED, expected="batch"),
    Request("kubernetes-sigs/kueue pkg/util/kubeversion/kubeversion.go FetchServerVersion", "/version", expected='"major"'),
    Request("kubernetes-sigs/kueue cmd/kueue/main.go, leader election", f"{_LEASES}/c1f6bfd2.kueue.x-k8s.io", code=404),
    Request("kubernetes-sigs/kueue pkg/util/cert/cert.go ManageCerts", "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert", code=404),
    Request("kubernetes-sigs/kueue pkg/util/cert/cert.go ManageCerts", f"{_WEBHOOKS}/validatingwebhookconfigurations", expected="List"),
    Request("kubernetes-sigs/kueue pkg/util/cert/cert.go ManageCerts", f"{_WEBHOOKS}/mutatingwebhookconfigurations", expected="List"),
    Request("kubernetes-sigs/kueue pkg/util/cert/cert.go ManageCerts", _CRDS, expected="CustomResourceDefinitionList"),
    Request("kubernetes-sigs/kueue cmd/kueue/main.go, metrics filter", f"{_AUTHENTICATION}/tokenreviews", body={"spec": {"token": "x"}}, expected="status", code=201),
    Request(
        "kubernetes-sigs/kueue cmd/kueue/main.go, metrics filter",
        f"{_AUTHORIZATION}/subjectaccessreviews",
        body={"spec": {"user": "u", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}},
        expected='"allowed"',
        code=201,
    ),
    Request("kubernetes-sigs/kueue pkg/controller/core", "/apis/node.k8s.io/v1/runtimeclasses", expected="RuntimeClassList"),
    Request("kubernetes-sigs/kueue pkg/controller/core", "/api/v1/limitranges", expected="LimitRangeList"),
    Request("kubernetes-sigs/kueue pkg/util/priority", "/apis/scheduling.k8s.io/v1/priorityclasses", expected="PriorityClassList"),
    Request("kubernetes-sigs/kueue pkg/controller/jobs/job", "/apis/batch/v1/jobs", expected="JobList"),
    Request("kubernetes-sigs/kueue pkg/util/dra", "/apis/resource.k8s.io/v1/resourceclaimtemplates", expected="List"),
]  # fmt: skip


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(HELM, id="helm"),
        pytest.param(K9S, id="k9s"),
        pytest.param(HEADLAMP, id="headlamp"),
        pytest.param(KUEUE, id="kueue"),
    ],
)
def test_requests_at_start_are_answered(requests: list[Request]) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            for request in requests:
                method = "GET" if request.body is None else "POST"
                headers = {"accept": request.accept}
                answer = await server.ask(method, request.path, request.body, headers=headers)
                assert answer.code == request.code, (request, answer)
                assert request.expected.encode() in answer.content, (request, answer.content[:500])

    asyncio.run(run())
