"""Finds the obstacles of a pod's claims, from objects, quotas and events of the claim controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from allot.api.claims import ResourceClaim
from allot.api.core import Pod, PodResourceClaim, ResourceQuota
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.similar_names import similar_names
from allot.client import resources
from allot.quota.decisions import Exceeded, charge, is_in_force, total_usage, with_usage
from allot.quota.evaluators import ResourceClaimEvaluator
from allot.scheduler.explain.admin_access import is_admin_access_forbidden
from allot.scheduler.explain.claim_obstacles import (
    AdminAccessForbidden,
    AnyObstacle,
    ClaimMissing,
    ClaimNotMade,
    ClaimOfOther,
    ClaimRefused,
    ClaimTerminating,
    QuotaExceeded,
    QuotaExcess,
    SourceMissing,
    TemplateMissing,
)
from allot.scheduler.explain.pod_events import PodEvent, claim_creation_failure
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claim_name,
    is_created_for,
)
from allot.scheduler.state.pods import PodInfo
from allot.validation.cel_checker import CelChecker
from allot.validation.context import Context
from allot.validation.fields import FieldError
from allot.validation.resource_claim import validate_claim


def obstacles_of(
    pod: PodInfo, model: StaticScheduler, events: Sequence[PodEvent]
) -> Iterator[AnyObstacle]:
    """The obstacles of the pod's claims, in the order of its spec."""
    quotas = list(_quotas(pod.namespace, model))
    for entry in pod.claims:
        name = claim_name(pod, entry)
        if isinstance(name, Unusable):
            yield _unmade(pod, entry, model, quotas, events)
        elif name is not None:
            yield from _unusable(pod, entry, ObjectKey(pod.namespace, name), model)


def claim_to_be_made(
    pod: PodInfo, entry: PodResourceClaim, model: StaticScheduler
) -> ResourceClaim | None:
    """The claim that the controller would create for an entry; None without its template."""
    key = ObjectKey(pod.namespace, entry.resource_claim_template_name or "")
    template = model.snapshot.get(resources.RESOURCE_CLAIM_TEMPLATES, key)
    if template is None:
        return None
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    metadata = ObjectMeta(
        name=f"{pod.name}-{entry.name}",
        namespace=pod.namespace,
        uid=f"{pod.uid}/{entry.name}",
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def with_claims(pod: PodInfo, claims: dict[str, ResourceClaim]) -> PodInfo:
    """The pod with claims created for these entries."""
    statuses: list[Any] = list(pod.claim_statuses[0] or ())
    for entry, claim in claims.items():
        statuses.append({"name": entry, "resourceClaimName": claim.metadata.name})
    return PodInfo.of(pod.pod.with_value(statuses, "status", "resourceClaimStatuses"))


def _unusable(
    pod: PodInfo, entry: PodResourceClaim, key: ObjectKey, model: StaticScheduler
) -> Iterator[AnyObstacle]:
    claim = model.claim(key)
    template = entry.resource_claim_template_name
    if claim is None:
        known = model.snapshot.of(resources.RESOURCE_CLAIMS)
        similar = _similar_objects(key, known) if template is None else ()
        yield ClaimMissing(entry.name, str(key), similar, template or "")
    elif template is not None and not is_created_for(claim, pod):
        yield ClaimOfOther(entry.name, str(key))
    elif claim.metadata.deletion_timestamp is not None:
        yield ClaimTerminating(entry.name, str(key))
    elif claim.status.allocation is None and is_admin_access_forbidden(claim, model.snapshot):
        yield AdminAccessForbidden(entry.name, f"claim {key}", key.namespace)


def _unmade(
    pod: PodInfo,
    entry: PodResourceClaim,
    model: StaticScheduler,
    quotas: list[ResourceQuota],
    events: Sequence[PodEvent],
) -> AnyObstacle:
    """Why an entry with a template has no claim. Entries share the quotas, so that two together may exceed them."""
    template = entry.resource_claim_template_name
    if template is None:
        return SourceMissing(entry.name)
    key = ObjectKey(pod.namespace, template)
    claim = claim_to_be_made(pod, entry, model)
    if claim is None:
        known = model.snapshot.of(resources.RESOURCE_CLAIM_TEMPLATES)
        return TemplateMissing(entry.name, str(key), _similar_objects(key, known))
    if is_admin_access_forbidden(claim, model.snapshot):
        return AdminAccessForbidden(entry.name, f"template {key}", key.namespace)
    charged = charge(quotas, _evaluator(model), claim)
    if isinstance(charged, Exceeded) and charged.excess:
        excess = tuple(
            QuotaExcess(
                each.name,
                str(each.requested),
                str(each.used),
                str(each.hard),
                str(each.used + each.requested),
                each.requested <= each.hard,
            )
            for each in charged.excess
        )
        return QuotaExceeded(entry.name, str(key), charged.quota, excess)
    if not isinstance(charged, Exceeded):
        by_name = {quota.metadata.name: quota for quota in (*quotas, *charged)}
        quotas[:] = by_name.values()
    failure = claim_creation_failure(events, entry.name)
    if failure is not None:
        return ClaimRefused(entry.name, str(key), failure.note, failure.last_at, failure.times)
    invalid = next(_field_errors(claim, model), None)
    if invalid is not None:
        return ClaimRefused(entry.name, str(key), str(invalid))
    return ClaimNotMade(entry.name, str(key))


def _field_errors(claim: ResourceClaim, model: StaticScheduler) -> Iterator[FieldError]:
    """Why an API server with the same feature gates refuses the claim: a template may be older than the gates."""
    return validate_claim(claim, Context(model.gates, expressions=CelChecker()))


def _quotas(namespace: str, model: StaticScheduler) -> Iterator[ResourceQuota]:
    """The quotas of a namespace. Usage is counted here if their status lacks it, as in manifests."""
    evaluator = _evaluator(model)
    claims = [
        claim
        for claim in model.snapshot.of(resources.RESOURCE_CLAIMS)
        if claim.metadata.namespace == namespace
    ]
    for quota in model.snapshot.of(resources.RESOURCE_QUOTAS):
        if quota.metadata.namespace == namespace:
            is_counted = is_in_force(quota)
            yield quota if is_counted else with_usage(quota, total_usage(quota, evaluator, claims))


def _evaluator(model: StaticScheduler) -> ResourceClaimEvaluator:
    def pod_of(key: ObjectKey) -> Pod | None:
        return model.snapshot.get(resources.PODS, key)

    return ResourceClaimEvaluator(tuple(model.devices.classes.values()), pod_of)


def _similar_objects(key: ObjectKey, objects: Iterable[Any]) -> tuple[str, ...]:
    """Names of objects in the same namespace that may have been meant."""
    keys = (each.key for each in objects)
    return similar_names(key.name, (each.name for each in keys if each.namespace == key.namespace))
