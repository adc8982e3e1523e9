"""What the node of a pod says about its devices: what containers get, or why they are not prepared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from allot.scheduler.explain.pod_events import PodEvent
from allot.scheduler.state.pods import PodInfo

CONTAINER_DEVICES: Final = "allot.dev/container-devices"
"""The annotation in which simulated nodes show what containers get."""
FAILURES: Final = ("FailedPrepareDynamicResources", "FailedUnprepareDynamicResources")
PENDING: Final = "Pending"


def preparation_notes(pod: PodInfo, events: Iterable[PodEvent]) -> Iterator[str]:
    """Sentences about a pod that has a node. Failures count while they hold the pod up."""
    yield from _container_notes(pod.pod.metadata.annotations.get(CONTAINER_DEVICES, ""))
    if pod.pod.phase not in ("", PENDING) and not pod.is_terminating:
        return
    failures = [event for event in events if event.reason in FAILURES]
    if failures:
        latest = failures[-1]
        yield f"Its node {pod.node_name} says ({latest.times} times): {latest.note}"


def _container_notes(text: str) -> Iterator[str]:
    try:
        containers = json.loads(text) if text else {}
        for name, parts in containers.items():
            shown = "; ".join(f"{part} {', '.join(values)}" for part, values in parts.items())
            yield f"Container {name} gets {shown}."
    except (ValueError, AttributeError, TypeError):
        yield f"Annotation {CONTAINER_DEVICES} is not what a node writes: {text!r}."
