"""Defaults that several kinds of workloads share."""

from __future__ import annotations

from typing import Final

from allot.apiserver.defaults.filling import Data, change, fill, make

HISTORY: Final = 10
"""Revisions that are kept."""


def with_counters(workload: Data, counters: Data) -> Data:
    """The status with counters that clients require, also if they are zero."""
    return change(workload, "status", lambda status: fill(status, **counters))


def with_template_labels(owner: Data, labels: dict[str, str]) -> Data:
    """An object without labels of its own takes those of its template."""
    return change(
        owner,
        "metadata",
        lambda metadata: metadata if metadata.get("labels") else metadata | {"labels": labels},
    )


def rolling_update(strategy: Data, **parameters: object) -> Data:
    """An update strategy that rolls unless it says otherwise."""
    strategy = fill(strategy, type="RollingUpdate")
    if strategy["type"] != "RollingUpdate":
        return strategy
    return make(strategy, "rollingUpdate", lambda rolling: fill(rolling, **parameters))
