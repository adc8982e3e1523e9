"""Metrics of a cluster, and that the dashboard and the alerts in `deploy/` use what there is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from allot.allocation.pools import PoolId
from allot.api.base import replace
from allot.api.core import Pod
from allot.client import resources
from allot.driver.loading import load_hardware
from allot.questions.cluster_metrics import (
    ClusterMetrics,
    MetricsDetail,
    Waits,
    compute_figures,
)
from allot.questions.devices import DeviceUse, PoolDevices
from allot.questions.hardware_objects import hardware_objects
from allot.questions.observed_cluster import ObservedCluster
from allot.testing.builders import a_claim, a_pod
from allot.testing.observed_clusters import observed

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
ALERTS: Final = yaml.safe_load((DEPLOY / "device-alerts.yaml").read_text(encoding="utf-8"))
RULES: Final = [rule for group in ALERTS["spec"]["groups"] for rule in group["rules"]]
DASHBOARD: Final = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def queued_pod(name: str, **more: Any) -> Pod:
    created = {"creationTimestamp": "2025-12-31T23:00:00Z"}
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c"}],
        **more,
    }
    return a_pod(name, uid=name, metadata=created, **spec)


def a_cluster(*more: Any) -> ObservedCluster:
    """Two servers with eight GPUs and four NICs, and a NIC that is shared."""
    described = [*load_objects("gpu-server=2"), *load_objects("shared-nic")]
    return observed(*described, *more)


def load_objects(reference: str) -> list[Any]:
    return [obj for _, obj in hardware_objects(load_hardware(reference))]


def exposed(cluster: ObservedCluster, detail: MetricsDetail = MetricsDetail()) -> str:  # noqa: B008
    registry = CollectorRegistry()
    ClusterMetrics(registry).update(cluster, compute_figures(cluster, detail), 0.5)
    return generate_latest(registry).decode()


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    if "class_" in labels:
        labels["class"] = labels.pop("class_")
    return found.get((name, frozenset(labels.items())))


# --- the metrics ---


def test_devices_by_state_class_node_and_pool() -> None:
    found = samples(exposed(a_cluster()))
    assert value(found, "allot_devices", driver="gpu.example.com", state="free") == 16
    assert value(found, "allot_devices", driver="gpu.example.com", state="held") == 0
    assert value(found, "allot_class_devices", class_="gpu.example.com", state="free") == 16
    gpu = {"driver": "gpu.example.com", "state": "free"}
    assert value(found, "allot_node_devices", node="gpu-server-0", **gpu) == 8
    assert value(found, "allot_pool_devices", pool="gpu-server-1", **gpu) == 8
    states = {dict(labels).get("state") for name, labels in found if name == "allot_devices"}
    assert states == set(DeviceUse)


def test_devices_are_counted_once_for_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[PoolId] = []

    class Noting(PoolDevices):
        def __init__(self, pool: PoolId, *arguments: Any) -> None:
            counted.append(pool)
            super().__init__(pool, *arguments)

    monkeypatch.setattr("allot.questions.devices.PoolDevices", Noting)
    cluster = a_cluster()
    assert len(cluster.objects.of(resources.DEVICE_CLASSES)) > 1
    compute_figures(cluster)
    assert len(counted) == len(set(counted))


def test_what_is_left_and_what_fits() -> None:
    found = samples(exposed(a_cluster()))
    assert value(found, "allot_class_largest_request", class_="gpu.example.com") == 8
    nic = {"driver": "shared-nic.example.com", "capacity": "virtualFunctions"}
    assert value(found, "allot_capacity_total", **nic) == 32
    assert value(found, "allot_capacity_remaining", **nic) == 32
    assert value(found, "allot_capacity_largest_remaining", **nic) == 16


def test_pending_pods_by_cause() -> None:
    claim = {"name": "gpu", "resourceClaimName": "missing"}
    pods = (
        queued_pod("gated", schedulingGates=[{"name": "g"}]),
        queued_pod("fits"),
        queued_pod("unclaimed", resourceClaims=[claim]),
        *(queued_pod(f"picky-{n}", nodeSelector={"no": "where"}) for n in range(3)),
        queued_pod("bound", nodeName="gpu-server-0"),
    )
    cluster = a_cluster(*pods)
    found = samples(exposed(cluster))
    causes = {
        dict(labels)["cause"]: number
        for (name, labels), number in found.items()
        if name == "allot_pending_pods"
    }
    assert causes == {
        "SchedulingGates": 1,
        "Fits": 1,
        "ResourceClaimMissing": 1,
        "NodeAffinity": 3,
    }
    assert value(found, "allot_pending_pods_oldest_seconds", cause="NodeAffinity") == 3600


def test_a_pod_that_devices_are_missing_for() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "many"}]
    claim = a_claim(name="many")
    request = claim.spec.devices.requests[0]
    assert request.exactly is not None
    exactly = replace(request.exactly, device_class_name="gpu.example.com", count=9)
    devices = replace(claim.spec.devices, requests=(replace(request, exactly=exactly),))
    claim = replace(claim, spec=replace(claim.spec, devices=devices))
    pod = queued_pod("p", resourceClaims=claims)
    found = samples(exposed(a_cluster(claim, pod)))
    assert value(found, "allot_pending_pods", cause="DynamicResources") == 1


def test_too_many_series_are_left_out() -> None:
    text = exposed(a_cluster(), MetricsDetail(max_series=7))
    found = samples(text)
    assert value(found, "allot_metrics_left_out", by="node") == 1
    assert "allot_node_devices{" not in text
    assert "allot_pool_devices{" not in text
    assert "allot_devices{" in text


def test_series_by_node_and_pool_are_optional() -> None:
    text = exposed(a_cluster(), MetricsDetail(per_node=False, per_pool=False))
    assert "allot_node_devices{" not in text
    assert "allot_pool_devices{" not in text
    assert value(samples(text), "allot_metrics_left_out", by="node") == 0


def test_waits_are_counted_once() -> None:
    waits = Waits()
    old = a_bound_pod("old", 5)
    waits.update([old])
    for _ in range(2):
        waits.update(
            [old, a_bound_pod("quick", 1), a_bound_pod("slow", 100), queued_pod("waiting")]
        )
    (total,) = [s.value for s in waits.family().samples if s.name.endswith("_count")]
    (seconds,) = [s.value for s in waits.family().samples if s.name.endswith("_sum")]
    assert (total, seconds) == (2, 101)


def test_waits_of_pods_that_end_between_updates_are_counted() -> None:
    waits = Waits()
    waits.change(resources.PODS, None, a_bound_pod("old", 5))
    waits.update([a_bound_pod("old", 5)])
    short = a_bound_pod("short", 2)
    waits.change(resources.PODS, None, a_pod("short"))
    waits.change(resources.PODS, a_pod("short"), short)
    waits.update([a_bound_pod("old", 5)])  # from before it was bound
    waits.change(resources.PODS, short, short)
    waits.change(resources.PODS, short, None)
    (total,) = [s.value for s in waits.family().samples if s.name.endswith("_count")]
    assert total == 1


def a_bound_pod(name: str, seconds: float) -> Pod:
    pod = queued_pod(name, nodeName="n")
    created = pod.metadata.creation_timestamp
    assert created is not None
    then = (created + timedelta(seconds=seconds)).isoformat()
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": then}
    return pod.with_value([condition], "status", "conditions")


# --- the dashboard and the alerts ---


_STRING: Final = re.compile(r'"[^"]*"')
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR: Final = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_RANGE: Final = re.compile(r"\[[^\]]*\]")
_WORD: Final = re.compile(r"[a-zA-Z_:][\w:]*(?!\w|\s*\()")
_KEYWORDS: Final = frozenset({"and", "or", "unless", "bool", "offset", "inf"})


def names_in(expression: str) -> tuple[set[str], dict[str, set[str]], set[str]]:
    """The metrics of a PromQL expression, the labels of their matchers, and the labels of groupings."""
    text = _RANGE.sub("", _STRING.sub('""', expression))
    groups = {label.strip() for found in _GROUPING.finditer(text) for label in found[1].split(",")}
    text = _GROUPING.sub(" ", text)
    matchers: dict[str, set[str]] = {}
    for found in _SELECTOR.finditer(text):
        labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", found[2]))
        matchers.setdefault(found[1], set()).update(labels)
    text = re.sub(r"\{[^}]*\}", " ", text)
    metrics = {word for word in _WORD.findall(text) if word not in _KEYWORDS}
    return metrics, matchers, groups - {""}


def dashboard_expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The labels of each metric."""
    found: dict[str, set[str]] = {}
    for name, labels in samples(exposed(a_cluster(queued_pod("waits")))):
        found.setdefault(name, set()).update(dict(labels))
    return found


@pytest.mark.parametrize(
    "expression", [*(rule["expr"] for rule in RULES), *dashboard_expressions()]
)
def test_expressions_use_metrics_and_labels_that_exist(
    expression: str, known: dict[str, set[str]]
) -> None:
    metrics, matchers, groups = names_in(expression)
    assert metrics
    assert metrics <= set(known)
    for name, labels in matchers.items():
        assert labels <= known[name]
    assert groups <= set().union(*(known[name] for name in metrics))


def test_legends_and_summaries_use_labels_that_exist(known: dict[str, set[str]]) -> None:
    labels = set().union(*known.values())
    for rule in RULES:
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert used <= labels
        assert (DEPLOY.parent / rule["annotations"]["runbook"]).exists()
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    (variable,) = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
    assert label in known[name]


def test_every_metric_is_documented(known: dict[str, set[str]]) -> None:
    page = (DEPLOY.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in known}
    assert {name for name in families if f"`{name}`" not in page} == set()
    listed = set(re.findall(r"^\| `(allot_\w+)`", page, re.MULTILINE))
    assert listed == families


@pytest.mark.skipif(
    not (os.environ.get("ALLOT_PROMTOOL") or shutil.which("promtool")),
    reason="needs promtool, from the package prometheus; ALLOT_PROMTOOL names it",
)
def test_prometheus_evaluates_the_rules(tmp_path: Path) -> None:
    """Each alert fires on series that it is meant for, and on none of a cluster at rest."""
    program = os.environ.get("ALLOT_PROMTOOL") or "promtool"
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(ALERTS["spec"]))
    tests = tmp_path / "tests.yaml"
    fires = {
        "AllotClassHasNoFreeDevice": [
            'allot_class_devices{class="gpu",state="free"}=0',
            'allot_class_devices{class="gpu",state="held"}=8',
        ],
        "AllotDevicesFragmented": [
            'allot_class_devices{class="gpu",state="free"}=16',
            'allot_class_largest_request{class="gpu"}=2',
        ],
        "AllotPodsWaitForDevicesLong": [
            'allot_pending_pods_oldest_seconds{cause="DynamicResources"}=4000'
        ],
        "AllotPodsWithoutClaim": ['allot_pending_pods{cause="ResourceClaimMissing"}=1'],
        "AllotDevicesUnusable": ['allot_devices{driver="gpu",state="unusable"}=1'],
        "AllotDevicesTainted": [
            'allot_devices{driver="gpu",state="tainted"}=2',
            'allot_devices{driver="gpu",state="free"}=8',
        ],
        "AllotCapacityLow": [
            'allot_capacity_remaining{driver="nic",capacity="bandwidth"}=1',
            'allot_capacity_total{driver="nic",capacity="bandwidth"}=100',
        ],
        "AllotExporterStale": ["allot_exporter_last_update_timestamp_seconds=0"],
    }
    assert set(fires) == {rule["alert"] for rule in RULES}
    lines = [line for line in exposed(a_cluster()).splitlines() if line and line[0] != "#"]
    rest = [line.rsplit(" ", 1) for line in lines if "last_update" not in line]
    groups = []
    for alert, series in fires.items():
        pairs = [each.rsplit("=", 1) for each in series]
        groups.append(_group(alert, pairs, [alert]))
        groups.append(_group(alert, rest, []))
    tests.write_text(
        yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": groups})
    )
    for command in (["check", "rules", str(rules)], ["test", "rules", str(tests)]):
        done = subprocess.run([program, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _group(alert: str, series: Any, firing: list[str]) -> dict[str, Any]:
    """A test of promtool: whether the alert fires after three hours of these series."""
    given = [{"series": name, "values": f"{number}+0x200"} for name, number in series]
    by_name = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    samples = [{"labels": "{}", "value": len(firing)}]
    check = {"expr": by_name, "eval_time": "3h", "exp_samples": samples}
    return {"interval": "1m", "input_series": given, "promql_expr_test": [check]}
