"""Refusals and defaults of common kinds, as recorded from Kubernetes v1.38 with kubectl."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from allot import features
from allot.rules import RuleSet
from allot.testing.servers import LocalServer

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot"},
}
SELECTOR = {"matchLabels": {"a": "b"}}


def answer(path: str, body: dict[str, Any], method: str = "POST", **options: Any) -> Any:
    async def run() -> Any:
        async with LocalServer() as server:
            return await server.ask(method, path, {"metadata": {"name": "x"}} | body, **options)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        pytest.param(
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 80}], "clusterIP": "bad"}},
            'spec.clusterIPs[0]: Invalid value: "bad": must be a valid IP address,'
            " (e.g. 10.9.8.7 or 2001:db8::ffff)",
            id="cluster-ip",
        ),
        pytest.param(
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 80, "protocol": "BAD"}]}},
            'spec.ports[0].protocol: Unsupported value: "BAD": supported values: "SCTP", "TCP", "UDP"',
            id="protocol",
        ),
        pytest.param(
            f"{CORE}/resourcequotas",
            {"spec": {"hard": {"pods": "5"}, "scopes": ["Bad"]}},
            'spec.scopes: Invalid value: ["Bad"]: unsupported scope',
            id="quota-scope",
        ),
        pytest.param(
            f"{CORE}/resourcequotas",
            {"spec": {"hard": {"pods": "5"}, "scopes": ["Terminating", "NotTerminating"]}},
            'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
            id="conflicting-scopes",
        ),
        pytest.param(
            f"{CORE}/secrets",
            {
                "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": base64.b64encode(b"hello").decode()},
            },
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>":'
            " invalid character 'h' looking for beginning of value",
            id="docker-config",
        ),
        pytest.param(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"preemptionPolicy": "Bad", "value": 1},
            'preemptionPolicy: Unsupported value: "Bad": supported values: "PreemptLowerPriority", "Never"',
            id="preemption-policy",
        ),
        pytest.param(
            f"{APPS}/deployments",
            {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "Bad"}}},
            'spec.strategy: Unsupported value: {"Type":"Bad","RollingUpdate":null}:'
            ' supported values: "Recreate", "RollingUpdate"',
            id="strategy",
        ),
    ],
)
def test_refusals(path: str, body: dict[str, Any], message: str) -> None:
    refused = answer(path, body)

    assert refused.code == 422
    assert message in refused.json["message"]


def test_services_warn_about_external_addresses() -> None:
    created = answer(
        f"{CORE}/services", {"spec": {"ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]}}
    )

    assert created.header("warning") == [
        '299 - "spec.externalIPs is deprecated and may no longer be implemented in some clusters"'
    ]


def test_templates_have_both_names_of_the_service_account() -> None:
    created = answer(f"{APPS}/deployments", {"spec": {"selector": SELECTOR, "template": TEMPLATE}})

    assert created.json["spec"]["template"]["spec"]["serviceAccount"] == "robot"


def test_jobs_have_the_labels_of_their_template() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = answer("/apis/batch/v1/namespaces/default/jobs", {"spec": {"template": template}}).json

    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


def test_daemon_sets_count_the_versions_of_their_template() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            path = f"{APPS}/daemonsets"
            spec = {"selector": SELECTOR, "template": TEMPLATE}
            await server.post(path, {"metadata": {"name": "d"}, "spec": spec})
            seen = []
            for patch in (
                {"metadata": {"labels": {"x": "y"}}},
                {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}},
            ):
                changed = await server.ask(
                    "PATCH", f"{path}/d", patch, content_type="application/merge-patch+json"
                )
                seen.append(changed.json["metadata"]["annotations"])

        assert seen == [{"deprecated.daemonset.template.generation": count} for count in ("1", "2")]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RuleSet.SEEDS, "of type string (data[a]: 1)"),
        (RuleSet.V1_38, "into Go struct field ConfigMap.data of type string"),
    ],
)
def test_errors_are_located_by_a_rule(rules: RuleSet, message: str) -> None:
    async def run() -> None:
        gates = features.with_overrides({}, rules)
        async with LocalServer(gates=gates) as server:
            path = f"{CORE}/configmaps"
            refused = await server.ask("POST", path, {"metadata": {"name": "x"}, "data": {"a": 1}})
            assert refused.json["message"].endswith(message)
            await server.post(path, {"metadata": {"name": "x"}})
            failed = await server.ask(
                "PATCH",
                f"{path}/x",
                [{"op": "remove", "path": "/data/k"}],
                content_type="application/json-patch+json",
            )
            is_short = failed.json["message"].endswith("due to an error in our request")
            assert is_short == (rules is RuleSet.V1_38)

    asyncio.run(run())
