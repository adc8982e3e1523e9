"""`allot plan`: manifests before they are applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from allot.cli.main import allot

TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
            }
        }
    },
}


def a_deployment(replicas: int, name: str = "web", **spec: Any) -> dict[str, Any]:
    pod = {
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
    } | spec
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(directory: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
    (directory / "deploy.yaml").write_text(yaml.safe_dump_all(objects))
    arguments = ["plan", "-f", "deploy.yaml", "--hardware", "gpu-server=1", *options]
    result = CliRunner().invoke(allot, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result


def test_everything_runs(directory: Path) -> None:
    result = run(directory, TEMPLATE, a_deployment(8))

    assert result.return_value == 0
    assert "deployment/web" in result.output
    assert "0 errors, 0 warnings." in result.output


def test_a_pod_stays_pending(directory: Path) -> None:
    result = run(directory, TEMPLATE, a_deployment(9), options=("-o", "json"))

    assert result.return_value == 1
    answer = json.loads(result.output)
    (finding,) = answer["findings"]
    assert finding["rule"] == "plan-pod-pending"
    assert finding["source"] == "deploy.yaml"
    assert finding["line"] > 1
    assert finding["message"].startswith("1 of 9 pods would not run: 1 cannot allocate all claims")
    (workload,) = answer["plan"]["workloads"]
    assert (workload["wanted"], workload["running"], workload["waiting"]) == (9, 8, 1)


def test_a_quota(directory: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "3"}},
    }
    (directory / "cluster.yaml").write_text(yaml.safe_dump(quota))

    result = run(
        directory, TEMPLATE, a_deployment(5), options=("-o", "json", "--cluster", "cluster.yaml")
    )

    (finding,) = json.loads(result.output)["findings"]
    assert finding["rule"] == "plan-quota-exceeded"
    assert "exceeded quota: few" in finding["message"]


def test_what_it_costs_others(directory: Path) -> None:
    big = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "90"}}}]
    weak = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "weak", "namespace": "default", "uid": "weak"},
        "spec": {"containers": big, "nodeName": "gpu-server-0"},
        "status": {"phase": "Running"},
    }
    (directory / "cluster.yaml").write_text(yaml.safe_dump(weak))
    strong = a_deployment(
        1, containers=big, resourceClaims=[], priorityClassName="system-cluster-critical"
    )

    result = run(directory, strong, options=("-o", "json", "--cluster", "cluster.yaml"))

    assert result.return_value == 0
    answer = json.loads(result.output)
    assert [(each["pod"], each["effect"]) for each in answer["plan"]["others"]] == [
        ("default/weak", "evicted")
    ]
    assert answer["findings"][0]["rule"] == "plan-disrupts-others"
    assert (
        run(
            directory, strong, options=("--fail-on", "warning", "--cluster", "cluster.yaml")
        ).return_value
        == 1
    )


def test_lint_comes_first(directory: Path) -> None:
    wrong = {**TEMPLATE, "spec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}

    result = run(directory, wrong, options=("-o", "json"))

    assert result.return_value == 1
    assert json.loads(result.output)["findings"][0]["severity"] == "error"


def test_sarif(directory: Path) -> None:
    result = run(directory, TEMPLATE, a_deployment(9), options=("-o", "sarif"))

    (found,) = json.loads(result.output)["runs"]
    (finding,) = found["results"]
    rules = found["tool"]["driver"]["rules"]
    assert found["tool"]["driver"]["name"] == "allot plan"
    assert rules[finding["ruleIndex"]]["id"] == finding["ruleId"] == "plan-pod-pending"
    place = finding["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "deploy.yaml"


def test_markdown(directory: Path) -> None:
    result = run(directory, TEMPLATE, a_deployment(9), options=("-o", "markdown"))

    assert result.output.startswith("## allot plan\n\n**Some of it would not work.**\n")
    assert "| deployment/web | 9 | 8 | 1 cannot allocate all claims" in result.output
    assert "Devices held: 0 of 12 before, 8 of 12 after" in result.output
