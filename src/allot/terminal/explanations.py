"""What a pod or claim is doing and why, as `allot explain` says it; and what is known about a device."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from rich.text import Text

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.api.slices import Device, DeviceAttribute
from allot.client import resources
from allot.client.resources import Resource
from allot.questions.devices import DeviceRow
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pending import PendingPods, pending_pods
from allot.scheduler.explain.effort import Effort, within
from allot.scheduler.explain.explanation_text import BLANK, Line, claim_lines, pod_lines
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import StaticScheduler

_EFFORT: Final = Effort(5_000, 2, within(1.5, time.monotonic), 10.0)
_PENDING_EFFORT: Final = Effort(50, 1, within(0.5, time.monotonic), 10.0)
_PENDING_SECONDS: Final = 4.0
"""After so long kinds of pods are explained by the scheduler's message alone."""


class ExplainedObject(NamedTuple):
    """A pod or a claim."""

    resource: Resource[Any]
    key: ObjectKey

    def __str__(self) -> str:
        word = "pod" if self.resource is resources.PODS else "claim"
        return f"{word} {self.key}"


def explain(
    cluster: ObservedCluster, target: ExplainedObject, *, everything: bool
) -> list[Line] | None:
    """The explanation; None if the object does not exist. Takes up to some seconds."""
    model = StaticScheduler(
        cluster.objects, cluster.configuration, cluster.gates, lambda: cluster.now
    )
    explainer = ObjectExplainer(model, _EFFORT)
    if target.resource is resources.PODS:
        pod = model.pods.get(target.key)
        if pod is None:
            return None
        found = explainer.of_pod(pod)
        found = replace(found, notes=(*found.notes, *cluster.notes))
        return list(pod_lines(found, cluster.now, everything=everything))
    claim = model.claim(target.key)
    if claim is None:
        return None
    answer = explainer.of_claim(claim)
    answer = replace(answer, notes=(*answer.notes, *cluster.notes))
    return list(claim_lines(answer, cluster.now, everything=everything))


def find_causes(cluster: ObservedCluster) -> PendingPods:
    """Pending pods by cause. Takes up to some seconds."""
    is_over = within(_PENDING_SECONDS, time.monotonic)()
    return pending_pods(cluster, effort=_PENDING_EFFORT, is_over=is_over)


# --- a device ---


def device_lines(row: DeviceRow, device: Device | None) -> Iterator[Line]:
    """All that is known about a device."""
    yield from _fields(
        (
            ("Driver", row.driver),
            ("Pool", row.pool),
            ("Node", row.node or "not on one node"),
            ("State", row.state),
            ("Reason", row.reason),
            ("Taints", ", ".join(row.taints)),
        )
    )
    for holder in row.held_by:
        yield BLANK
        yield Line(0, Text("Held by", "bold"))
        share = ", ".join(f"{name} {amount}" for name, amount in holder.consumed.items())
        yield from _fields(
            (
                ("Claim", holder.claim),
                ("Pods", ", ".join(holder.pods)),
                ("Share", share),
                ("Waits for", ", ".join(holder.waits_for)),
                ("Failed", holder.failure),
            )
        )
    if device is None:
        return
    if device.capacity:
        yield BLANK
        yield Line(0, Text("Capacity", "bold"))
        yield from _fields(
            (name, _capacity(str(capacity.value), row.remaining.get(name)))
            for name, capacity in sorted(device.capacity.items())
        )
    if device.attributes:
        yield BLANK
        yield Line(0, Text("Attributes", "bold"))
        yield from _fields(
            (name, attribute_text(value)) for name, value in sorted(device.attributes.items())
        )
    if device.consumes_counters:
        yield BLANK
        yield Line(0, Text("Counters that it uses", "bold"))
        yield from _fields(
            (f"{use.counter_set}/{name}", str(counter.value))
            for use in device.consumes_counters
            for name, counter in sorted(use.counters.items())
        )
    if device.binding_conditions:
        yield BLANK
        yield Line(0, Text("Binding conditions", "bold"))
        yield Line(2, Text(", ".join(device.binding_conditions)))


def _capacity(total: str, left: str | None) -> str:
    return total if left is None else f"{total}, {left} left"


def attribute_text(attribute: DeviceAttribute) -> str:
    """The value of an attribute."""
    values = (
        attribute.string,
        attribute.version,
        attribute.int_,
        attribute.bool_,
        attribute.strings,
        attribute.versions,
        attribute.ints,
        attribute.bools,
    )
    value = next((each for each in values if each is not None), "")
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fields(pairs: Iterable[tuple[str, str]]) -> Iterator[Line]:
    shown = [(name, value) for name, value in pairs if value]
    width = min(max((len(name) for name, _ in shown), default=0), 40)
    for name, value in shown:
        yield Line(2, Text.assemble((f"{name:<{width}}", "dim"), "  ", value))
