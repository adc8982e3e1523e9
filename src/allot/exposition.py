"""Metrics in the formats of Prometheus."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from allot.features import GATES, FeatureGates, Stage


class Exposition(NamedTuple):
    """An encoded set of metrics."""

    body: bytes
    content_type: str


def is_open_metrics(accept: str) -> bool:
    """Whether a client accepts OpenMetrics, and not only the older text format."""
    return "application/openmetrics-text" in accept


def exposition(registry: CollectorRegistry, accept: str) -> Exposition:
    """The metrics of a registry, in the format that the client accepts."""
    if is_open_metrics(accept):
        from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

        body: bytes = open_metrics(registry)  # type: ignore[no-untyped-call]
        return Exposition(body, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    return Exposition(generate_latest(registry), "text/plain; version=0.0.4; charset=utf-8")


def show_gates(gates: FeatureGates, registry: CollectorRegistry) -> None:
    """Add metrics for the feature gates and rules in force, under Kubernetes' name where it has one."""
    enabled = Gauge(
        "kubernetes_feature_enabled",
        "Whether a feature gate is on.",
        ("name", "stage"),
        registry=registry,
    )
    for gate in GATES.values():
        stage = "" if gate.stage is Stage.GA else gate.stage.value  # as Kubernetes has it
        enabled.labels(gate.name, stage).set(gate.name in gates)
    rules = Gauge(
        "allot_rules",
        "Whose answers are given where the KEPs (seeds) and Kubernetes v1.38 differ.",
        ("rules",),
        registry=registry,
    )
    rules.labels(gates.rule_set.value).set(1)
