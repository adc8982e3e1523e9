"""Workloads and pods, as short as tests can say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.testing.builders import a_pod, an_owner

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app": "web"}


def ago(seconds: float) -> str:
    return written_time(NOW - timedelta(seconds=seconds))


def a_replica(
    name: str = "p",
    *,
    phase: str = "Running",
    ready: bool | None = None,
    ready_for: float = 100,
    node: str = "n",
    age: float = 100,
    deleting: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    owner: str = "",
    restarts: int = 0,
    exit_code: int | None = None,
    ended: float | None = None,
) -> Pod:
    """A pod of a workload on a node. Running ones are ready by default."""
    metadata: dict[str, Any] = {
        "creationTimestamp": ago(age),
        "labels": LABELS if labels is None else labels,
        "annotations": annotations or {},
        "finalizers": list(finalizers),
    }
    if deleting:
        metadata["deletionTimestamp"] = ago(0)
    is_ready = phase == "Running" if ready is None else ready
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "lastTransitionTime": ago(ready_for),
    }
    container: dict[str, Any] = {"name": "c", "restartCount": restarts}
    if exit_code is not None or ended is not None:
        container["state"] = {
            "terminated": {"exitCode": exit_code or 0, "finishedAt": ago(ended or 0)}
        }
    return a_pod(
        name,
        node=node,
        phase=phase,
        conditions=[condition],
        owners=[an_owner("w", owner, kind="K")] if owner else [],
        metadata=metadata,
        status={"containerStatuses": [container]},
    )


def a_workload(
    name: str = "w",
    *,
    kind: str = "Deployment",
    age: float = 1000,
    annotations: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    image: str = "i:1",
    labels: dict[str, str] | None = None,
    generation: int = 1,
    **spec: Any,
) -> RawObject:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return RawObject(
        {
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "generation": generation,
                "creationTimestamp": ago(age),
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
            "status": status or {},
        }
    )


def a_set(
    name: str,
    size: int,
    available: int | None = None,
    *,
    max_replicas: int | None = None,
    **rest: Any,
) -> RawObject:
    """A replica set of so many pods."""
    count = size if available is None else available
    key = "deployment.kubernetes.io/max-replicas"
    annotations = {} if max_replicas is None else {key: str(max_replicas)}
    return a_workload(
        name,
        kind="ReplicaSet",
        replicas=size,
        status={"replicas": size, "readyReplicas": count, "availableReplicas": count},
        annotations=annotations,
        **rest,
    )
