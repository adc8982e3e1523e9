"""Explanations: the state of a pod or a claim, the reasons, and changes that would help."""

from __future__ import annotations

import time
from datetime import datetime
from html import escape
from typing import Any, Final

import msgspec

from allot.api.claims import ResourceClaim
from allot.api.decoding import to_builtin
from allot.api.identities import ObjectKey
from allot.client.cluster_gates import ClusterGates
from allot.client.snapshot import Snapshot
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import Effort, within
from allot.scheduler.explain.explanation_text import claim_lines, plain_text, pod_lines
from allot.scheduler.explain.explanations import ClaimExplanation, PodExplanation
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import StaticScheduler

EFFORT: Final = Effort(5_000, 2, within(1.5, time.monotonic), 10.0)


class Explanation:
    """The state of a pod or a claim and the reasons. `print` it for the full report."""

    def __init__(self, value: PodExplanation | ClaimExplanation, now: datetime) -> None:
        self._value = value
        self._now = now

    @property
    def object(self) -> str:
        """`pod/namespace/name` or `claim/namespace/name`."""
        value = self._value
        return f"pod/{value.pod}" if isinstance(value, PodExplanation) else f"claim/{value.claim}"

    @property
    def state(self) -> str:
        """Such as `Scheduled`, `Fits`, `DoesNotFit` for pods; `Allocated`, `Pending`, `Unused` for claims."""
        return str(self._value.state.value)

    @property
    def verdict(self) -> str:
        """One or two sentences."""
        return self._value.verdict

    @property
    def node(self) -> str:
        """The node where a pod is, will be, or would be scheduled; empty if no node fits, and for claims."""
        return self._value.node if isinstance(self._value, PodExplanation) else ""

    @property
    def proposals(self) -> tuple[str, ...]:
        """Single changes after which it fits, each verified, with the node where it fits."""
        return tuple(f"on node {each.node}: {each.change}" for each in self._value.proposals)

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """The reason for each node that does not fit, the nearest to fitting first."""
        return {
            each.node: tuple(filter(None, (*each.reasons, each.summary)))
            for each in self._value.nodes
        }

    def to_dict(self) -> dict[str, Any]:
        """The full explanation, as `allot explain -o json` prints it."""
        encoded = msgspec.json.encode(self._value, enc_hook=to_builtin)
        return msgspec.json.decode(encoded, type=dict[str, Any])

    def text(self, *, everything: bool = False) -> str:
        """As `allot explain` prints it; `everything` also shows similar nodes and devices."""
        value = self._value
        if isinstance(value, PodExplanation):
            return plain_text(pod_lines(value, self._now, everything=everything))
        return plain_text(claim_lines(value, self._now, everything=everything))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Explanation of {self.object}: {self.state}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text())}</pre>"


def explain_object(
    objects: Snapshot, known: ClusterGates, kind: str, key: ObjectKey, now: datetime
) -> Explanation | None:
    """The explanation of a pod or a claim; None if no object has this name."""
    configuration = SchedulerConfiguration(rules=known.rules)
    model = StaticScheduler(objects, configuration, known.gates, lambda: now)
    explainer = ObjectExplainer(model, EFFORT)
    found: PodExplanation | ClaimExplanation
    if kind == "pod":
        pod = model.pods.get(key)
        if pod is None:
            return None
        found = explainer.of_pod(pod)
    else:
        claim: ResourceClaim | None = model.claim(key)
        if claim is None:
            return None
        found = explainer.of_claim(claim)
    notes = (*found.notes, *([known.assumption] if known.assumption else ()))
    found = msgspec.structs.replace(
        found, rules=known.rules, feature_gates_of=known.source, notes=notes
    )
    return Explanation(found, now)
