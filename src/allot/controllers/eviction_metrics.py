"""Metrics of controllers that evict pods, under Kubernetes' names."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class EvictionMetrics:
    """Deleted pods, and the delay between the due time and the deletion."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        self._deletions = Counter(
            f"{prefix}_pod_deletions", "Pods that were deleted.", registry=registry
        )
        self._delays = Histogram(
            f"{prefix}_pod_deletion_duration_seconds",
            "From the time at which a pod was to be deleted until that was done.",
            buckets=_SECONDS,
            registry=registry,
        )

    def deleted(self, late_seconds: float) -> None:
        self._deletions.inc()
        self._delays.observe(max(late_seconds, 0.0))
