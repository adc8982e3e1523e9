"""What a pod or a claim is doing, and why: from what the API says about it, and from what a scheduler would decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.core import Pod, PodResourceClaim
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.client import resources
from allot.scheduler.explain.alternatives import preferred_alternatives
from allot.scheduler.explain.claim_summaries import summary_of
from allot.scheduler.explain.explainer import Effort, deadline_of
from allot.scheduler.explain.explanations import (
    ClaimExplanation,
    ClaimState,
    ClaimSummary,
    PodExplanation,
    PodState,
)
from allot.scheduler.explain.node_details import selected_nodes
from allot.scheduler.explain.similar_names import similar_names
from allot.scheduler.model import SchedulerModel
from allot.scheduler.outcomes import POD_SCHEDULED
from allot.scheduler.plugins.dynamic_resources.answers import unknown_class_names
from allot.scheduler.plugins.dynamic_resources.binding_conditions import NotReady, readiness
from allot.scheduler.plugins.dynamic_resources.judging import NAME, DeviceJudge
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claim_keys,
    claim_name,
    is_made_for,
    is_reserved_for,
)
from allot.scheduler.profiles import Profile
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_PODS: Final = 3
"""Of the pods that wait for a claim, so many are explained."""


class ObjectExplainer:
    """Answers questions about a cluster that stands still."""

    def __init__(self, model: SchedulerModel, effort: Effort, scheduler_name: str = "") -> None:
        """Pods are judged as those of `scheduler_name`; without one, as those of the scheduler they name."""
        self._model = model
        self._effort = effort
        self._scheduler_name = scheduler_name

    # --- pods ---

    def of_pod(self, pod: PodInfo) -> PodExplanation:
        """What the pod is doing. The first thing that is true of it counts."""
        known = PodExplanation(
            pod=str(pod.key),
            node=pod.node_name,
            scheduler_name=pod.scheduler_name,
            claims=tuple(self._claims(pod)),
        )
        if pod.is_finished:
            return _finished(known, pod)
        if pod.node_name:
            return _scheduled(known, pod)
        if pod.is_terminating:
            verdict = f"Pod {pod.key} is being deleted; it never had a node."
            return replace(known, state=PodState.TERMINATING, verdict=verdict)
        profile, notes = self._profile(pod)
        known = replace(known, notes=notes)
        if pod.scheduling_gates:
            return _gated(known, f"it has scheduling gates: {', '.join(pod.scheduling_gates)}")
        obstacles = list(self._obstacles(pod))
        if obstacles:
            return self._obstructed(known, pod, profile, obstacles)
        for plugin in profile.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return _gated(known, status.message)
        return self._waiting(known, pod, profile) or self._judged(known, pod, profile)

    def _profile(self, pod: PodInfo) -> tuple[Profile, tuple[str, ...]]:
        profiles = self._model.profiles
        name = self._scheduler_name or pod.scheduler_name
        found = profiles.get(name)
        if found is not None:
            return found, ()
        first = next(iter(profiles.values()))
        note = f"Scheduler {name} is not known here; the pod is judged as one of {first.scheduler_name}."
        return first, (note,)

    def _waiting(
        self, known: PodExplanation, pod: PodInfo, profile: Profile
    ) -> PodExplanation | None:
        """A pod whose devices are being made ready (KEP-5007); None if it is no such pod."""
        timeout = self._model.binding_timeouts.get(profile.scheduler_name)
        claims = [self._model.claim(key) for key in claim_keys(pod)]
        mine = [claim for claim in claims if claim is not None and is_reserved_for(claim, pod)]
        if timeout is None or not mine:
            return None
        outlooks = [readiness(claim, timeout, self._model.today()) for claim in mine]
        lacking = [outlook for outlook in outlooks if isinstance(outlook, NotReady)]
        if not lacking:
            return None
        since = min(filter(None, map(_allocated_at, mine)), default=None)
        deadline = min(filter(None, (each.deadline for each in lacking)), default=None)
        missing = "; ".join(text for each in lacking for text in each.missing)
        where = f"node {pod.nominated_node_name}" if pod.nominated_node_name else _nodes_of(mine[0])
        return replace(
            known,
            state=PodState.WAITING_FOR_DEVICES,
            verdict=f"Pod {pod.key} has devices on {where} and waits until they are ready: {missing}.",
            reason=missing,
            node=pod.nominated_node_name,
            since=since,
            deadline=deadline,
        )

    def _judged(self, known: PodExplanation, pod: PodInfo, profile: Profile) -> PodExplanation:
        """What a scheduler would do with it now."""
        found = self._model.explainer.explain(profile, pod, self._effort)
        condition = _condition(pod)
        notes = [*known.notes, *found.notes, *self._similar_classes(claim_keys(pod))]
        if pod.nominated_node_name:
            notes.append(f"Node {pod.nominated_node_name} was promised to it.")
        if found.state is PodState.FITS and condition.get("message"):
            notes.append(f"Its scheduler said last: {condition['message']}")
        verdict = found.verdict
        if found.state is PodState.FITS:
            verdict = f"{verdict.removesuffix('.')}; it waits for scheduler {pod.scheduler_name}."
        own = {claim.claim: claim for claim in found.claims}
        return replace(
            found,
            verdict=verdict,
            scheduler_name=pod.scheduler_name,
            since=_time(condition.get("lastTransitionTime")) or _created(pod),
            claims=tuple(
                replace(own.pop(claim.claim, claim), name=claim.name) for claim in known.claims
            )
            + tuple(own.values()),
            notes=tuple(notes),
        )

    def _similar_classes(self, claims: Iterable[ObjectKey]) -> Iterator[str]:
        """For each class that claims ask for and that does not exist: classes with a similar name."""
        known = self._model.devices.classes
        for name in unknown_class_names(filter(None, map(self._model.claim, claims)), known):
            yield from _meant(name, known)

    # --- the claims of a pod ---

    def _claims(self, pod: PodInfo) -> Iterator[ClaimSummary]:
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
                yield self._summary(claim, entry.name)

    def _summary(self, claim: ResourceClaim, name: str = "") -> ClaimSummary:
        """The claim as it is, with the better alternatives that it does not have."""
        summary = summary_of(claim, name)
        node = self._node_of(claim)
        profile = next(iter(self._model.profiles.values()))
        plugin = profile.plugin(NAME)
        if node is None or not isinstance(plugin, DeviceJudge):
            return summary
        problem = plugin.problem_for((), self._model.devices.target(node))
        deadline = deadline_of(self._effort.stopwatch())
        return replace(summary, preferred=tuple(preferred_alternatives(claim, problem, deadline)))

    def _node_of(self, claim: ResourceClaim) -> NodeInfo | None:
        """The node of an allocated claim: that of its pod, or the one that its devices are for."""
        allocation = claim.status.allocation
        if allocation is None:
            return None
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        names = [pod.node_name for pod in self._model.pods.values() if key in claim_keys(pod)]
        selector = allocation.node_selector
        for term in selector.node_selector_terms if selector is not None else ():
            names += [name for field in term.match_fields for name in field.values]
        return next(filter(None, map(self._model.cluster.node, filter(None, names))), None)

    def _obstacles(self, pod: PodInfo) -> Iterator[_Obstacle]:
        """What is wrong with the claims that the pod names."""
        for entry in pod.claims:
            name = claim_name(pod, entry)
            if isinstance(name, Unusable):
                yield self._unmade(pod, entry)
            elif name is not None:
                yield from self._unusable(pod, entry, ObjectKey(pod.namespace, name))

    def _unmade(self, pod: PodInfo, entry: PodResourceClaim) -> _Obstacle:
        template = entry.resource_claim_template_name
        if template is None:
            return _Obstacle(f"entry {entry.name} of its claims names neither claim nor template")
        key = ObjectKey(pod.namespace, template)
        if self._model.snapshot.get(resources.RESOURCE_CLAIM_TEMPLATES, key) is not None:
            return _Obstacle(
                f"no claim has been made from template {key} for its entry {entry.name} yet", entry
            )
        known = self._model.snapshot.of(resources.RESOURCE_CLAIM_TEMPLATES)
        return _Obstacle(f"template {key} does not exist", hints=_similar_objects(key, known))

    def _unusable(
        self, pod: PodInfo, entry: PodResourceClaim, key: ObjectKey
    ) -> Iterator[_Obstacle]:
        claim = self._model.claim(key)
        if claim is None:
            known = self._model.snapshot.of(resources.RESOURCE_CLAIMS)
            yield _Obstacle(f"claim {key} does not exist", hints=_similar_objects(key, known))
        elif entry.resource_claim_template_name is not None and not is_made_for(claim, pod):
            yield _Obstacle(f"claim {key} was not made for this pod")
        elif claim.metadata.deletion_timestamp is not None:
            yield _Obstacle(f"claim {key} is being deleted")

    def _obstructed(
        self,
        known: PodExplanation,
        pod: PodInfo,
        profile: Profile,
        obstacles: list[_Obstacle],
    ) -> PodExplanation:
        """A pod that must wait for its claims. Of those that only need to be made, it is said what would come of it."""
        hints = tuple(hint for obstacle in obstacles for hint in obstacle.hints)
        gated = _gated(
            replace(known, notes=(*known.notes, *hints)),
            " and ".join(obstacle.text for obstacle in obstacles),
        )
        unmade = [obstacle.unmade for obstacle in obstacles if obstacle.unmade is not None]
        if len(unmade) < len(obstacles):
            return gated
        claims, changed = self._with_claims(pod, unmade)
        for claim in claims:
            self._model.claims.put(claim)
        try:
            found = self._judged(known, changed, profile)
        finally:
            for claim in claims:
                self._model.claims.remove(claim)
        return replace(
            found,
            state=PodState.GATED,
            verdict=f"{gated.verdict.removesuffix('.')}; if there were one, it {_outlook(found)}.",
            reason=gated.reason,
        )

    def _with_claims(
        self, pod: PodInfo, entries: Iterable[PodResourceClaim]
    ) -> tuple[list[ResourceClaim], PodInfo]:
        """The claims that will be made from templates, and the pod as it will be then."""
        claims = []
        statuses: list[Any] = list(pod.claim_statuses[0] or ())
        for entry in entries:
            key = ObjectKey(pod.namespace, entry.resource_claim_template_name or "")
            template = self._model.snapshot.get(resources.RESOURCE_CLAIM_TEMPLATES, key)
            assert template is not None
            name = f"{pod.name}-{entry.name}"
            owner = OwnerReference(kind="Pod", name=pod.name, uid=pod.uid, controller=True)
            metadata = ObjectMeta(
                name=name,
                namespace=pod.namespace,
                uid=f"{pod.uid}/{entry.name}",
                owner_references=(owner,),
            )
            claims.append(ResourceClaim(metadata=metadata, spec=template.spec.spec))
            statuses.append({"name": entry.name, "resourceClaimName": name})
        changed = pod.pod.with_value(statuses, "status", "resourceClaimStatuses")
        return claims, PodInfo.of(changed)

    # --- claims ---

    def of_claim(self, claim: ResourceClaim) -> ClaimExplanation:
        """What has become of the claim."""
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        summary = self._summary(claim)
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
            return replace(known, verdict=_being_deleted(key, summary), pods=waiting)
        if claim.status.allocation is not None:
            return replace(known, verdict=_allocated(key, summary), pods=waiting)
        if users:
            names = ", ".join(pod.name for pod in users[:MAX_PODS])
            verdict = f"Claim {key} is not allocated yet: it will be when pod {names} is scheduled."
            return replace(known, verdict=verdict, pods=waiting)
        return self._unused(known, key)

    def _unused(self, known: ClaimExplanation, key: ObjectKey) -> ClaimExplanation:
        """What would become of a pod that asks for nothing but the claim."""
        entry = {"name": "claim", "resourceClaimName": key.name}
        pod = PodInfo.of(
            Pod(
                {
                    "metadata": {"name": "any", "namespace": key.namespace, "uid": "any"},
                    "spec": {"containers": [], "resourceClaims": [entry]},
                }
            )
        )
        profiles = self._model.profiles
        profile = profiles.get(self._scheduler_name) or next(iter(profiles.values()))
        found = self._model.explainer.explain(profile, pod, self._effort)
        would_get = next(iter(found.claims), known.summary)
        return replace(
            known,
            state=ClaimState.UNUSED,
            verdict=f"Claim {key} is not allocated because no pod uses it;"
            f" one that did {_outlook(found)}.",
            summary=would_get,
            nodes=found.nodes,
            proposals=found.proposals,
            notes=(*found.notes, *self._similar_classes([key])),
        )


class _Obstacle:
    """What keeps a pod from being tried, and similar names; `unmade` if it is only that a claim must be made."""

    def __init__(
        self, text: str, unmade: PodResourceClaim | None = None, hints: tuple[str, ...] = ()
    ) -> None:
        self.text, self.unmade, self.hints = text, unmade, hints


def _meant(name: str, known: Iterable[str]) -> tuple[str, ...]:
    close = similar_names(name, known)
    return (f"{name} does not exist; did you mean {close}?",) if close else ()


def _similar_objects(key: ObjectKey, objects: Iterable[Any]) -> tuple[str, ...]:
    return _meant(
        key.name, (obj.metadata.name for obj in objects if obj.metadata.namespace == key.namespace)
    )


# --- sentences ---


def _outlook(found: PodExplanation) -> str:
    if found.state is PodState.FITS:
        return f"would fit on node {found.node}"
    return f"would be pending: {found.reason}"


def _gated(known: PodExplanation, reason: str) -> PodExplanation:
    verdict = f"Pod {known.pod} is not tried by its scheduler: {reason}."
    return replace(known, state=PodState.GATED, verdict=verdict, reason=reason)


def _finished(known: PodExplanation, pod: PodInfo) -> PodExplanation:
    where = f" on node {pod.node_name}" if pod.node_name else ""
    phase = pod.pod.get("status", "phase", default="")
    verdict = f"Pod {pod.key} has ended{where}: {phase}."
    return replace(known, state=PodState.FINISHED, verdict=verdict)


def _scheduled(known: PodExplanation, pod: PodInfo) -> PodExplanation:
    condition = _condition(pod)
    since = _time(condition.get("lastTransitionTime")) or _time(pod.start_time)
    phase = pod.pod.get("status", "phase", default="Pending")
    going = ", and is being deleted" if pod.is_terminating else ""
    verdict = f"Pod {pod.key} is on node {pod.node_name} ({phase}){going}."
    return replace(known, state=PodState.SCHEDULED, verdict=verdict, since=since)


def _allocated(key: ObjectKey, summary: ClaimSummary) -> str:
    number = len(summary.devices)
    devices = f"{number} device{'s' * (number != 1)}"
    users = (
        ", ".join(summary.reserved_for) or "no pod yet, so that any pod that asks for it can use it"
    )
    return f"Claim {key} has {devices}, for {summary.node_selection}; reserved for {users}."


def _being_deleted(key: ObjectKey, summary: ClaimSummary) -> str:
    users = ", ".join(summary.reserved_for)
    return f"Claim {key} is being deleted" + (
        f"; it is still reserved for {users}." if users else "."
    )


# --- times ---


def _condition(pod: PodInfo) -> dict[str, Any]:
    conditions = pod.pod.get("status", "conditions", default=[])
    found: dict[str, Any] = next(
        (each for each in conditions if each.get("type") == POD_SCHEDULED), {}
    )
    return found


def _allocated_at(claim: ResourceClaim) -> datetime | None:
    allocation = claim.status.allocation
    return allocation.allocation_timestamp if allocation is not None else None


def _nodes_of(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    return selected_nodes(allocation.node_selector if allocation is not None else None)


def _created(pod: PodInfo) -> datetime | None:
    return pod.pod.metadata.creation_timestamp


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
