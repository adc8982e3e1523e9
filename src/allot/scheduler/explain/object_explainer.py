"""The state of a pod or a claim and its reasons, from the objects of the API and a scheduling cycle on a snapshot."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from allot.allocation.explain.phrases import sentence
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.times import read_time
from allot.client import resources
from allot.scheduler.explain.admin_access import assumed_admin_access
from allot.scheduler.explain.claim_obstacles import (
    AnyObstacle,
    ClaimNotMade,
    Unmade,
    advised,
    obstacle_text,
)
from allot.scheduler.explain.claim_summarizer import ClaimSummarizer
from allot.scheduler.explain.device_waits import BindingLimit, waiting
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.explanations import (
    ClaimExplanation,
    ClaimState,
    EarlierFailure,
    PodExplanation,
    PodState,
)
from allot.scheduler.explain.node_preparation import preparation_notes
from allot.scheduler.explain.obstructed_claims import (
    claim_to_be_made,
    obstacles_of,
    with_claims,
)
from allot.scheduler.explain.pod_events import (
    PodEvent,
    binding_failures,
    events_of,
    reported_binding_timeout,
)
from allot.scheduler.explain.proposals import advice
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.explain.verdicts import (
    allocated,
    being_deleted,
    finished,
    gated,
    outlook,
    scheduled,
    scheduled_condition,
)
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    claim_keys,
)
from allot.scheduler.state.pods import PodInfo

MAX_PODS: Final = 3
"""How many of the pods that wait for a claim are explained."""


class ObjectExplainer:
    """Explains pods and claims of a snapshot."""

    def __init__(
        self,
        model: StaticScheduler,
        effort: Effort,
        scheduler_name: str = "",
        *,
        is_configured: bool = False,
    ) -> None:
        """Pods are scheduled by the profile `scheduler_name`; without one, by that of their `spec.schedulerName`.

        `is_configured`: the model has the configuration of the running scheduler.
        """
        self._model = model
        self._claims = ClaimSummarizer(model, effort)
        self._effort = effort
        self._scheduler_name = scheduler_name
        self._is_configured = is_configured

    # --- pods ---

    def of_pod(self, pod: PodInfo) -> PodExplanation:
        """The explanation of a pod, by the first of these states that applies."""
        known = PodExplanation(
            pod=str(pod.key),
            node=pod.node_name,
            scheduler_name=pod.scheduler_name,
            claims=tuple(self._claims.of_pod(pod)),
        )
        if pod.is_finished:
            return finished(known, pod)
        if pod.node_name:
            notes = tuple(preparation_notes(pod, self._events(pod)))
            return scheduled(replace(known, notes=notes), pod)
        if pod.is_terminating:
            verdict = f"Pod {pod.key} is being deleted; it never had a node."
            return replace(known, state=PodState.TERMINATING, verdict=verdict)
        profile, notes = self._profile(pod)
        events = self._events(pod)
        failures = tuple(
            EarlierFailure(event.note, event.last_at, event.times)
            for event in binding_failures(events)
        )
        known = replace(known, notes=notes, earlier_failures=failures)
        if pod.scheduling_gates:
            return gated(known, f"it has scheduling gates: {', '.join(pod.scheduling_gates)}")
        obstacles = tuple(obstacles_of(pod, self._model, events))
        if obstacles:
            return self._obstructed(known, pod, profile, obstacles)
        for plugin in profile.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return gated(known, status.message)
        limit = self._limit(profile, events)
        if limit is not None and (found := waiting(known, pod, self._model, limit)) is not None:
            return found
        return self._decided(known, pod, profile)

    def _events(self, pod: PodInfo) -> list[PodEvent]:
        snapshot = self._model.snapshot
        return events_of((*snapshot.of(resources.EVENTS), *snapshot.of(resources.CORE_EVENTS)), pod)

    def _limit(self, profile: Profile, events: Iterable[PodEvent]) -> BindingLimit | None:
        """The binding timeout of the pod; None if its profile has none."""
        timeout = self._model.binding_timeouts.get(profile.scheduler_name)
        if timeout is None or self._is_configured:
            return None if timeout is None else BindingLimit(timeout, is_assumed=False)
        seconds = reported_binding_timeout(events)
        if seconds is None:
            return BindingLimit(timeout, is_assumed=True)
        return BindingLimit(timedelta(seconds=seconds), is_assumed=False)

    def _profile(self, pod: PodInfo) -> tuple[Profile, tuple[str, ...]]:
        profiles = self._model.profiles
        name = self._scheduler_name or pod.scheduler_name
        found = profiles.get(name)
        if found is not None:
            return found, ()
        first = next(iter(profiles.values()))
        note = f"Scheduler {name} is not known here; the pod is judged as one of {first.scheduler_name}."
        return first, (note,)

    def _decided(self, known: PodExplanation, pod: PodInfo, profile: Profile) -> PodExplanation:
        """The result of a scheduling cycle now."""
        found = self._model.explainer.explain(profile, pod, self._effort)
        condition = scheduled_condition(pod)
        notes = [*known.notes, *found.notes]
        if found.nodes:
            notes += self._claims.similar_classes(claim_keys(pod))
        claims = filter(None, map(self._model.claim, claim_keys(pod)))
        notes += assumed_admin_access(claims, self._model.snapshot)
        if pod.nominated_node_name:
            notes.append(f"Node {pod.nominated_node_name} was promised to it.")
        if found.state is PodState.FITS and condition.get("message"):
            notes.append(f"Its scheduler said last: {condition['message']}")
        verdict = found.verdict
        if found.state is PodState.FITS:
            verdict = f"{verdict.removesuffix('.')}; it waits for scheduler {pod.scheduler_name}."
        verdict += self._claims.advice_on_claims(found, claim_keys(pod))
        own = {claim.claim: claim for claim in found.claims}
        return replace(
            found,
            earlier_failures=known.earlier_failures,
            verdict=verdict,
            scheduler_name=pod.scheduler_name,
            since=read_time(condition.get("lastTransitionTime"))
            or pod.pod.metadata.creation_timestamp,
            claims=tuple(
                replace(own.pop(claim.claim, claim), name=claim.name) for claim in known.claims
            )
            + tuple(own.values()),
            notes=tuple(notes),
        )

    def _obstructed(
        self,
        known: PodExplanation,
        pod: PodInfo,
        profile: Profile,
        obstacles: tuple[AnyObstacle, ...],
    ) -> PodExplanation:
        """A pod that waits for its claims. If they only need to be created, with the decision after that."""
        waiting_for_claims = gated(
            replace(known, obstacles=obstacles),
            " and ".join(map(obstacle_text, obstacles)),
            advised(obstacles),
        )
        if not all(isinstance(each, Unmade) for each in obstacles):
            return waiting_for_claims
        found = self._if_made(known, pod, profile, {each.entry for each in obstacles})
        if all(isinstance(each, ClaimNotMade) for each in obstacles):
            text = f"{waiting_for_claims.verdict.removesuffix('.')}; if there were one, it {outlook(found)}"
            verdict, notes = f"{sentence(text)}{advice(found.proposals)}", found.notes
        else:
            verdict = waiting_for_claims.verdict
            notes = (*found.notes, sentence(f"With its claims, it {outlook(found)}"))
        return replace(
            found,
            state=PodState.GATED,
            verdict=verdict,
            reason=waiting_for_claims.reason,
            obstacles=obstacles,
            notes=notes,
        )

    def _if_made(
        self, known: PodExplanation, pod: PodInfo, profile: Profile, entries: set[str]
    ) -> PodExplanation:
        """The decision about the pod with the claims of these entries created."""
        made = {
            entry.name: claim
            for entry in pod.claims
            if entry.name in entries
            and (claim := claim_to_be_made(pod, entry, self._model)) is not None
        }
        changed = copy.copy(self)
        changed._model = self._model.with_claims(made.values())
        changed._claims = ClaimSummarizer(changed._model, self._effort)
        profile = changed._model.profiles[profile.scheduler_name]
        return changed._decided(known, with_claims(pod, made), profile)

    # --- claims ---

    def of_claim(self, claim: ResourceClaim) -> ClaimExplanation:
        """What has become of the claim."""
        key = claim.key
        summary = self._claims.summary(claim)
        users = [
            pod
            for pod in self._model.pods.values()
            if key in claim_keys(pod) and not pod.is_finished
        ]
        known = ClaimExplanation(claim=str(key), state=summary.state, summary=summary)
        waiting = tuple(self.of_pod(pod) for pod in users[:MAX_PODS] if not pod.node_name)
        if len(users) > MAX_PODS:
            known = replace(known, notes=(f"{len(users)} pods use it.",))
        if claim.metadata.deletion_timestamp is not None:
            return replace(known, verdict=being_deleted(key, summary), pods=waiting)
        if claim.status.allocation is not None:
            return replace(known, verdict=allocated(key, summary), pods=waiting)
        if users:
            names = ", ".join(pod.name for pod in users[:MAX_PODS])
            verdict = f"Claim {key} is not allocated yet: it will be when pod {names} is scheduled."
            return replace(known, verdict=verdict, pods=waiting)
        return self._unused(known, key)

    def _unused(self, known: ClaimExplanation, key: ObjectKey) -> ClaimExplanation:
        """A claim that no pod uses: the decision about a pod that needs only the claim."""
        entry = {"name": "claim", "resourceClaimName": key.name}
        pod = PodInfo.of(
            Pod(
                {
                    "metadata": {"name": "any", "namespace": key.namespace, "uid": "any"},
                    "spec": {"containers": [], "resourceClaims": [entry]},
                }
            )
        )
        obstacles = tuple(obstacles_of(pod, self._model, ()))
        if obstacles:
            reasons = " and ".join(map(obstacle_text, obstacles))
            verdict = f"Claim {key} cannot be allocated: {reasons}.{advised(obstacles)}"
            return replace(known, state=ClaimState.UNUSED, verdict=verdict)
        profiles = self._model.profiles
        profile = profiles.get(self._scheduler_name) or next(iter(profiles.values()))
        found = self._model.explainer.explain(profile, pod, self._effort)
        would_get = next(iter(found.claims), known.summary)
        return replace(
            known,
            state=ClaimState.UNUSED,
            verdict=sentence(
                f"Claim {key} is not allocated because no pod uses it; one that did {outlook(found)}"
            )
            + (advice(found.proposals) or self._claims.advice_on_claims(found, [key])),
            summary=would_get,
            nodes=found.nodes,
            proposals=found.proposals,
            notes=(*found.notes, *(self._claims.similar_classes([key]) if found.nodes else ())),
        )
