"""Metrics that pages and alerts name exist, and alerts in pages are those of `deploy/alerts.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from allot.controllers.binding.metrics import BindingMetrics
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from tests.docs.pages import blocks
from tests.docs.terminal import PROJECT

PAGES: Final = sorted(path.relative_to(PROJECT) for path in (PROJECT / "docs").glob("*.md"))
FEATURES: Final = (
    "binding-conditions",
    "consumable-capacity",
    "derived-attributes",
    "pool-status",
    "prioritized-list",
)
QUESTIONS: Final = (
    "## Monitoring",
    "### Is it in use?",
    "### Does it work for my ",
    "### Objectives and indicators",
    "### What it depends on",
    "## Troubleshooting",
    "### What if the API server or etcd is unavailable?",
    "### Known failure modes",
    "### Switching the gate off and on",
)
"""What every KEP's production readiness questionnaire asks."""
STORIES: Final = (
    "4816-prioritized-list/story-1.yaml",
    "5075-consumable-capacity/story-3.yaml",
    "5007-binding-conditions/story-2.yaml",
    "5677-pool-status/story-1.yaml",
)

_PREFIXES: Final = (
    "allot_apiserver_",
    "allot_binding_",
    "apiserver_",
    "device_taint_eviction_controller_",
    "dynamic_resource_allocation_",
    "kubelet_",
    "node_collector_",
    "pod_gc_collector_",
    "resourceclaim_controller_",
    "resourcepoolstatus_",
    "resourcepoolstatusrequest_controller_",
    "scheduler_",
    "taint_eviction_controller_",
    "workqueue_",
)
_NAME: Final = re.compile(rf"(?<![\w./-])(?:{'|'.join(_PREFIXES)})[a-z0-9_]*[a-z0-9](?![\w(=])")
_SERIES: Final = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<matchers>[^}]*)\})?")
_FUNCTIONS: Final = frozenset(
    {"by", "histogram_quantile", "increase", "le", "driver", "rate", "sum", "unless"}
)


class Known:
    """Metrics that the components serve: names of samples, and labels of those that have some."""

    def __init__(self, *expositions: str) -> None:
        self.names: set[str] = set()
        self.labels: dict[str, set[str]] = {}
        for exposition in expositions:
            for family in text_string_to_metric_families(exposition):
                self.names |= {family.name, *_sample_names(family.name, family.type)}
                for sample in family.samples:
                    self.labels.setdefault(sample.name, set()).update(sample.labels)


def _sample_names(name: str, kind: str) -> tuple[str, ...]:
    match kind:
        case "counter":
            return (f"{name}_total",)
        case "histogram":
            return (f"{name}_bucket", f"{name}_sum", f"{name}_count")
        case _:
            return (name,)


@pytest.fixture(scope="module")
def known() -> Known:
    """After something has happened in a cluster, so that there are labels to compare with."""
    with VirtualTimeCluster(ClusterSettings(["gpu-server", "shared-nic", "fabric"])) as cluster:
        for path in STORIES:
            cluster.apply(PROJECT / "examples" / path)
        cluster.advance(700)  # longer than it is waited for binding conditions
        served = [
            cluster.run(cluster.client.request("GET", path)).body.decode()
            for path in ("/metrics", "/metrics/scheduler", "/metrics/controllers", "/metrics/nodes")
        ]
    return Known(*served, generate_latest(BindingMetrics().registry).decode())


def alerts() -> Iterator[dict[str, Any]]:
    document = yaml.safe_load((PROJECT / "deploy" / "alerts.yaml").read_text(encoding="utf-8"))
    for group in document["spec"]["groups"]:
        yield from group["rules"]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_metrics_of_pages_exist(page: Any, known: Known) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")

    assert set(_NAME.findall(text)) - known.names == set()


@pytest.mark.parametrize("rule", list(alerts()), ids=lambda rule: str(rule["alert"]))
def test_alerts_use_metrics_and_labels_that_exist(rule: dict[str, Any], known: Known) -> None:
    seen = []
    for series in _SERIES.finditer(rule["expr"]):
        name = series["name"]
        if name in _FUNCTIONS or not name.startswith(_PREFIXES):
            continue
        seen.append(name)
        assert name in known.names
        used = set(re.findall(r"(\w+)\s*=", series["matchers"] or ""))
        if name in known.labels:
            assert used <= known.labels[name]

    assert seen
    assert (PROJECT / rule["annotations"]["runbook"]).exists()
    assert rule["labels"]["severity"] in ("warning", "critical")


def test_alerts_in_pages_are_those_of_the_file() -> None:
    shown: dict[str, set[str]] = {}
    for name in FEATURES:
        text = (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for block in blocks(text):
            if block.language == "promql":
                for alert in re.split(r"^# ", "\n".join(block.lines), flags=re.MULTILINE)[1:]:
                    title, _, expression = alert.partition("\n")
                    shown.setdefault(title, set()).add(_normal(expression))

    assert shown == {rule["alert"]: {_normal(rule["expr"])} for rule in alerts()}


def _normal(expression: str) -> str:
    return re.sub(r"\s+", " ", expression).strip()


@pytest.mark.parametrize("name", FEATURES)
def test_page_answers_the_questionnaire(name: str) -> None:
    lines = (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8").splitlines()

    for question in QUESTIONS:
        assert any(line.startswith(question) for line in lines), question
