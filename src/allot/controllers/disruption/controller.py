"""The disruption controller: writes the status of PodDisruptionBudgets."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator
from typing import Any, Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.selectors import selector_string, selects_labels
from allot.api.times import written_time
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, WARNING, reference_to
from allot.client.options import PatchType
from allot.client.resources import POD_DISRUPTION_BUDGETS, PODS
from allot.client.work_queue import FAILURE_BACKOFF, WorkQueue, run_workers
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.disruption.decisions import (
    budget_status,
    disrupted_pods,
    failed_status,
    needs_scale,
    pod_counts,
    stale_at,
)
from allot.controllers.disruption.expected_pods import (
    SCALABLE,
    ExpectedPodCounter,
    UnknownScaleError,
)
from allot.controllers.pod_disruption import DISRUPTION_TARGET
from allot.controllers.workloads.accessors import (
    Json,
    generation_of,
    labels_of,
    namespace_of,
    uid_of,
)
from allot.controllers.workloads.ownership import BY_CONTROLLER, controller_uid
from allot.controllers.workloads.status_writes import with_status

log = logging.getLogger(__name__)

BY_NAMESPACE: Final = "namespace"
CONFLICT_SECONDS: Final = 0.05


class DisruptionController(QueueController[ObjectKey]):
    """Keeps the status of budgets, and clears conditions of pods that were to be disrupted and stayed."""

    name = "disruption-controller"
    queue_name = "disruption"
    event_source = "controllermanager"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._budgets = context.informers.informer(POD_DISRUPTION_BUDGETS)
        self._budgets.add_index(BY_NAMESPACE, lambda budget: (namespace_of(budget),))
        self._budgets.add_handlers(self._enqueue, lambda _old, new: self._enqueue(new))
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(BY_NAMESPACE, lambda pod: (namespace_of(pod),))
        self._pods.add_index(BY_CONTROLLER, controller_uid)
        self._pods.add_handlers(
            self._enqueue_budgets_of,
            self._pod_updated,
            self._enqueue_budgets_of,
            needs=self._budgets,
        )
        self._pods.add_handlers(self._watch_staleness, lambda _old, new: self._watch_staleness(new))
        self._expected = ExpectedPodCounter(context.client, context.informers)
        for resource in SCALABLE:
            context.informers.informer(resource).add_handlers(on_update=self._owner_updated)
        self._stale_pods: WorkQueue[ObjectKey] = WorkQueue(
            clock=context.clock,
            backoff=FAILURE_BACKOFF,
            observer=context.queue_metrics.of("stale_pod_disruption"),
        )

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        return (run_workers(self._stale_pods, self._clear_stale_condition, 1),)

    # --- event handlers ---

    def _enqueue(self, budget: RawObject) -> None:
        self.queue.add(budget.key)

    def _enqueue_budgets_of(self, pod: Pod) -> None:
        for budget in self._budgets_of(pod):
            self.queue.add(budget.key)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        self._enqueue_budgets_of(new)
        if labels_of(old) != labels_of(new):
            self._enqueue_budgets_of(old)

    def _owner_updated(self, old: RawObject, new: RawObject) -> None:
        """Another number of replicas is another number of expected pods."""
        if old.get("spec", "replicas") == new.get("spec", "replicas"):
            return
        namespace = namespace_of(new)
        for budget in self._budgets.by_index(BY_NAMESPACE, namespace):
            if needs_scale(budget):
                self.queue.add(budget.key)

    def _watch_staleness(self, pod: Pod) -> None:
        moment = stale_at(pod)
        if moment is not None:
            wait = (moment - self.clock.today()).total_seconds()
            self._stale_pods.add_after(pod.key, max(wait, 0.0))

    def _budgets_of(self, pod: Pod) -> Iterator[RawObject]:
        labels = labels_of(pod)
        for budget in self._budgets.by_index(BY_NAMESPACE, namespace_of(pod)):
            if selects_labels(_selector(budget), labels):
                yield budget

    # --- budgets ---

    async def reconcile(self, key: ObjectKey) -> None:
        budget = self._budgets.get(key)
        if budget is None:
            return
        pods = self._pods_of(budget)
        now = self.clock.today()
        try:
            expected = await self._expected_pods(budget, pods)
        except UnknownScaleError as error:
            self._record_event(
                budget,
                WARNING,
                "CalculateExpectedPodCountFailed",
                f"Failed to calculate the number of expected pods: {error}",
            )
            await self._write(budget, failed_status(budget, str(error), now))
            return
        disrupted = disrupted_pods(budget, pods, now)
        for pod in disrupted.not_deleted:
            self._recorder.event(
                reference_to(PODS, pod),
                WARNING,
                "NotDeleted",
                "NotDeleted",
                f"Pod was expected by PDB {key} to be deleted but it wasn't",
            )
        counts = pod_counts(budget, expected)
        await self._write(budget, budget_status(budget, pods, counts, disrupted, now))
        if disrupted.recheck_at is not None:
            self.queue.add_after(key, (disrupted.recheck_at - now).total_seconds() + 1)

    def _pods_of(self, budget: RawObject) -> list[Pod]:
        selector = _selector(budget)
        in_namespace = self._pods.by_index(BY_NAMESPACE, namespace_of(budget))
        pods = [pod for pod in in_namespace if selects_labels(selector, labels_of(pod))]
        if not pods:
            self._record_event(budget, NORMAL, "NoPods", "No matching pods found")
        return pods

    async def _expected_pods(self, budget: RawObject, pods: list[Pod]) -> int:
        if not needs_scale(budget):
            return len(pods)
        expected = await self._expected.count(pods)
        if expected.unmanaged:
            self._record_event(budget, WARNING, "UnmanagedPods", _unmanaged_note(budget))
        return expected.total

    async def _write(self, budget: RawObject, status: Json) -> None:
        """For the version that was decided on: an eviction may have been counted meanwhile."""
        wanted = with_status(budget, status)
        if wanted is budget:
            return
        try:
            await self.client.update_status(POD_DISRUPTION_BUDGETS, wanted)
        except ApiStatusError as error:
            if error.is_not_found:
                return
            if not error.is_conflict:
                raise
            log.debug("budget %s: %s; retrying", budget.key, error)
            self.queue.add_after(budget.key, CONFLICT_SECONDS)

    def _record_event(self, budget: RawObject, type_: str, reason: str, note: str) -> None:
        reference = reference_to(POD_DISRUPTION_BUDGETS, budget)
        self._recorder.event(reference, type_, reason, reason, note)

    # --- pods ---

    async def _clear_stale_condition(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        moment = stale_at(pod) if pod is not None else None
        if pod is None or moment is None:
            return
        wait = (moment - self.clock.today()).total_seconds()
        if wait > 0:
            self._stale_pods.add_after(key, wait)
            return
        condition: dict[str, Any] = {
            "type": DISRUPTION_TARGET,
            "status": "False",
            "reason": None,
            "message": None,
            "observedGeneration": generation_of(pod) or None,
            "lastTransitionTime": written_time(self.clock.today()),
        }
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
        try:
            await self.client.patch(PODS, key, patch, PatchType.STRATEGIC, subresource="status")
        except ApiStatusError as error:
            if not (error.is_not_found or error.is_conflict):
                raise


def _selector(budget: RawObject) -> Json | None:
    """None, which selects no pods, if it is missing. An empty one selects all pods of the namespace."""
    selector: Json | None = budget.get("spec", "selector")
    return selector


def _unmanaged_note(budget: RawObject) -> str:
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {selector_string(_selector(budget))})"
        " were found to be unmanaged. As a result, the status of the PDB cannot be calculated"
        " correctly, which may result in undefined behavior. To account for these pods please set"
        ' ".spec.minAvailable" field of the PDB to an integer value.'
    )
