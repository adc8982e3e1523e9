"""Summaries of a pod's claims, and of the device classes that they name and that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.similar_names import did_you_mean, joined_with_or, similar_names
from allot.features import PRIORITIZED_LIST
from allot.scheduler.explain.alternatives import preferred_alternatives
from allot.scheduler.explain.claim_summaries import summary_of
from allot.scheduler.explain.effort import Effort, deadline_of
from allot.scheduler.explain.explanations import ClaimSummary, PodExplanation, PodState
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.dynamic_resources.filter_results import unknown_class_names
from allot.scheduler.plugins.dynamic_resources.pod_claims import Unusable, claim_keys, claim_name
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class ClaimSummarizer:
    """Reads claims of a snapshot."""

    def __init__(self, model: StaticScheduler, effort: Effort) -> None:
        self._model = model
        self._effort = effort

    def of_pod(self, pod: PodInfo) -> Iterator[ClaimSummary]:
        """The claims of a pod, by the entries of its spec."""
        for entry in pod.claims:
            name = claim_name(pod, entry)
            if name is None:
                continue
            if isinstance(name, Unusable):
                template = entry.resource_claim_template_name or ""
                yield ClaimSummary(claim=f"from template {template}", name=entry.name)
                continue
            claim = self._model.claim(ObjectKey(pod.namespace, name))
            if claim is None:
                yield ClaimSummary(claim=f"{pod.namespace}/{name}", name=entry.name)
            else:
                yield self.summary(claim, entry.name)

    def summary(self, claim: ResourceClaim, name: str = "") -> ClaimSummary:
        """The claim as it is, with the preferred alternatives that it did not get."""
        summary = summary_of(claim, name)
        node = self._node_of(claim)
        profile = next(iter(self._model.profiles.values()))
        plugin = profile.plugin(NAME)
        if node is None or not isinstance(plugin, ClaimFilter):
            return summary
        problem = plugin.problem_for((), self._model.devices.target(node))
        deadline = deadline_of(self._effort.stopwatch())
        return replace(summary, preferred=tuple(preferred_alternatives(claim, problem, deadline)))

    def _node_of(self, claim: ResourceClaim) -> NodeInfo | None:
        """The node of an allocated claim: that of its pod, or the one that its devices are for."""
        allocation = claim.status.allocation
        if allocation is None:
            return None
        key = claim.key
        names = [pod.node_name for pod in self._model.pods.values() if key in claim_keys(pod)]
        selector = allocation.node_selector
        for term in selector.node_selector_terms if selector is not None else ():
            names += [name for field in term.match_fields for name in field.values]
        return next(filter(None, map(self._model.cluster.node, filter(None, names))), None)

    def advice_on_claims(self, found: PodExplanation, keys: Iterable[ObjectKey]) -> str:
        """What to do about claims because of which no node is tried, as a sentence; may be empty."""
        if found.state is not PodState.DOES_NOT_FIT or found.nodes:
            return ""
        known = self._model.devices.classes
        claims = [claim for key in keys if (claim := self._model.claim(key)) is not None]
        if PRIORITIZED_LIST not in self._model.gates and any(map(_has_alternatives, claims)):
            return f" Switch on feature gate {PRIORITIZED_LIST}, or ask for one of the alternatives with exactly."
        names = unknown_class_names(claims, known)
        remedies = [
            f"create device class {name}, or ask for {joined_with_or(similar_names(name, known)) or 'another'}"
            for name in names
        ]
        text = "; ".join(remedies)
        return f" {text[0].upper()}{text[1:]}." if text else ""

    def similar_classes(self, claims: Iterable[ObjectKey]) -> Iterator[str]:
        """For each missing device class of the claims: classes with a similar name."""
        known = self._model.devices.classes
        for name in unknown_class_names(filter(None, map(self._model.claim, claims)), known):
            yield from _meant(name, known)


def _has_alternatives(claim: ResourceClaim) -> bool:
    return any(request.first_available for request in claim.spec.devices.requests)


def _meant(name: str, known: Iterable[str]) -> tuple[str, ...]:
    hint = did_you_mean(similar_names(name, known))
    return (f"{name} does not exist{hint}",) if hint else ()
