"""ResourceQuotas of a cluster in memory: whether new pods and claims are admitted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from allot.api.core import Pod, ResourceQuota
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.quota.decisions import Exceeded, charge, total_usage, with_usage
from allot.quota.evaluators import Evaluator, PodEvaluator, ResourceClaimEvaluator


class QuotaModel:
    """Charges quotas. The usage of a namespace is counted when it is first needed, and again after deletions."""

    def __init__(self, objects: Snapshot, now: datetime) -> None:
        self._objects = objects
        self._pods = PodEvaluator(now)
        self._has_quota = {
            quota.metadata.namespace for quota in objects.of(resources.RESOURCE_QUOTAS)
        }
        self._counted: dict[str, dict[str, ResourceQuota]] = {}

    def forget(self, namespace: str) -> None:
        """Objects of the namespace were deleted or changed."""
        self._counted.pop(namespace, None)

    def refuse_pod(self, pod: Pod) -> str:
        """Why the pod may not be created; empty if it is charged."""
        return self._charge(pod.key.namespace, self._pods, pod)

    def refuse_claim(self, namespace: str, claim: Any) -> str:
        return self._charge(namespace, self._claims(), claim)

    def _charge(self, namespace: str, evaluator: Evaluator, obj: Any) -> str:
        if namespace not in self._has_quota:
            return ""
        quotas = self._quotas(namespace)
        charged = charge(quotas.values(), evaluator, obj)
        if isinstance(charged, Exceeded):
            return charged.message
        quotas.update((quota.metadata.name, quota) for quota in charged)
        return ""

    def _claims(self) -> ResourceClaimEvaluator:
        def pod_of(key: ObjectKey) -> Pod | None:
            return self._objects.get(resources.PODS, key)

        return ResourceClaimEvaluator(self._objects.of(resources.DEVICE_CLASSES), pod_of)

    def _quotas(self, namespace: str) -> dict[str, ResourceQuota]:
        known = self._counted.get(namespace)
        if known is not None:
            return known
        pods = [
            each
            for each in self._objects.of(resources.PODS)
            if each.key.namespace == namespace and not each.is_finished
        ]
        claims = [
            each
            for each in self._objects.of(resources.RESOURCE_CLAIMS)
            if each.metadata.namespace == namespace
        ]
        counted = {
            quota.metadata.name: self._with_usage(quota, pods, claims)
            for quota in self._objects.of(resources.RESOURCE_QUOTAS)
            if quota.metadata.namespace == namespace
        }
        self._counted[namespace] = counted
        return counted

    def _with_usage(
        self, quota: ResourceQuota, pods: Iterable[Pod], claims: Iterable[Any]
    ) -> ResourceQuota:
        """Counted usage; entries of other kinds keep the usage that the status tells."""
        used = {
            **quota.used,
            **total_usage(quota, self._pods, pods),
            **total_usage(quota, self._claims(), claims),
        }
        return with_usage(quota, used)
