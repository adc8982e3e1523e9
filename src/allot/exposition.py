"""Metrics as Prometheus reads them."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest


class Exposition(NamedTuple):
    """A page of metrics."""

    body: bytes
    content_type: str


def exposition(registry: CollectorRegistry, accept: str) -> Exposition:
    """The metrics of a registry, in the format that the client prefers."""
    if "application/openmetrics-text" in accept:
        from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

        body: bytes = open_metrics(registry)  # type: ignore[no-untyped-call]
        return Exposition(body, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    return Exposition(generate_latest(registry), "text/plain; version=0.0.4; charset=utf-8")
