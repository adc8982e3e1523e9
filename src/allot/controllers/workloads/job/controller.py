"""The control loop of jobs: tally pods, decide, write; count finished pods; finish."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ClientError
from allot.client.events import WARNING
from allot.client.resources import JOBS
from allot.client.work_queue import FAILURE_BACKOFF, WorkQueue, run_workers
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.accessors import Json, is_deleting, uid_of
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.job import decision, status, tracking
from allot.controllers.workloads.job.decision import JobConclusion, JobPlan
from allot.controllers.workloads.job.indexes import index_of
from allot.controllers.workloads.job.pods import make_pod, name_base
from allot.controllers.workloads.job.spec import JobSpec, is_managed_here, read_spec
from allot.controllers.workloads.job.tally import (
    Tally,
    Uncounted,
    is_tracked,
    tally_pods,
    uncounted_of,
)
from allot.controllers.workloads.ownership import controller_of
from allot.controllers.workloads.pod_states import is_ready
from allot.controllers.workloads.status_writes import with_status
from allot.controllers.workloads.workload_controller import STALE_SECONDS, WorkloadController

log = logging.getLogger(__name__)


class JobController(WorkloadController):
    """Runs jobs to their end."""

    name = "job-controller"
    resource = JOBS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.dependents = Dependents(
            self.client, self.workloads, self.pods, self.queue, self.expectations
        )
        self.orphan_pods: WorkQueue[ObjectKey] = WorkQueue(
            clock=self.clock,
            backoff=FAILURE_BACKOFF,
            observer=context.queue_metrics.of("job_orphan_pod"),
        )
        """Pods with the finalizer whose job may be gone."""
        self.pods.add_handlers(self._look_after, lambda _old, new: self._look_after(new))
        self.workloads.add_handlers(on_delete=self._leave_behind)

    async def sync(self, workload: RawObject) -> None:
        if not is_managed_here(workload):
            return
        pods = await self.dependents.claim(workload)
        if decision.is_finished(workload):
            await tracking.untrack(self.client, filter(is_tracked, pods))
            return
        spec, now = read_spec(workload), self.today()
        tally, is_all = await self._take_stock(workload, spec, pods)
        if not is_all:
            await self._count(workload, spec, tally, JobPlan(), None)
            self.queue.add(workload.key)
            return
        conclusion = decision.find_conclusion(workload, spec, tally, now)
        expectations_satisfied = self.expectations_satisfied(workload.key)
        plan = JobPlan()
        if conclusion is not None:
            plan = JobPlan(delete=tally.active)
        elif expectations_satisfied and not is_deleting(workload):
            plan = decision.plan_pods(spec, tally, now)
            # Pods that are deleted as surplus do not count as failed.
            await tracking.give_up(self.client, filter(is_tracked, plan.delete))
        if plan.create and not await self._is_current(workload):
            self.queue.add_after(workload.key, STALE_SECONDS)
            return
        failure = await self._carry_out(workload, spec, tally, plan)
        job = await self._count(workload, spec, tally, plan, conclusion)
        if (
            conclusion is not None
            and expectations_satisfied
            and self._nothing_is_left(job, tally, plan)
        ):
            await self._conclude(job, conclusion)
        self._look_again(job, spec, plan)
        if failure is not None:
            raise failure

    async def _take_stock(
        self, job: RawObject, spec: JobSpec, pods: Sequence[Pod]
    ) -> tuple[Tally, bool]:
        """The tally of the job, and whether it is complete, or finished pods remain for another sync.

        The informer of pods may be behind the one of jobs, and show counted pods as new: look them up live.
        """
        tally = tally_pods(job, spec, pods)
        finished = (*tally.new_succeeded, *tally.new_failed)
        if not finished:
            return tally, True
        room = max(tracking.MAX_UNCOUNTED - len(uncounted_of(job).all), 0)
        now, later = finished[:room], set(map(uid_of, finished[room:]))
        current = await tracking.verified(self.client, pods, now)
        known = [pod for pod in current if uid_of(pod) not in later]
        return tally_pods(job, spec, known), not later

    # --- pods ---

    async def _is_current(self, job: RawObject) -> bool:
        """Whether the informer has the live version of the job. An older one may lack recent counts."""
        current = await self.client.find(self.resource, job.key)
        return current is not None and current.get("metadata", "resourceVersion") == job.get(
            "metadata", "resourceVersion"
        )

    async def _carry_out(
        self, job: RawObject, spec: JobSpec, tally: Tally, plan: JobPlan
    ) -> ClientError | None:
        failure = await self.pod_control.delete_all(job, plan.delete)
        if failure is not None or not plan.create:
            return failure
        latest = tally.latest_failed_by_index
        pods = [
            make_pod(job, spec, index, latest.get(index) if index is not None else None)
            for index in plan.create
        ]
        return await self.pod_control.create_all(
            job, pods, lambda pod: name_base(job, index_of(pod) if spec.is_indexed else None)
        )

    # --- the status ---

    async def _count(
        self,
        job: RawObject,
        spec: JobSpec,
        tally: Tally,
        plan: JobPlan,
        conclusion: JobConclusion | None,
    ) -> RawObject:
        """Write the status, and count finished pods; see `tracking`."""
        known = uncounted_of(job)
        is_over = conclusion is not None
        failed = [pod for pod in tally.new_failed if is_over or uid_of(pod) not in tally.kept]
        succeeded = frozenset() if spec.is_indexed else frozenset(map(uid_of, tally.new_succeeded))
        uncounted = Uncounted(
            known.succeeded | succeeded, known.failed | frozenset(map(uid_of, failed))
        )
        job = await self._write(
            job,
            status.announced_status(
                job, spec, tally, _numbers(tally, plan), uncounted, conclusion, self.today()
            ),
        )
        freed = await tracking.untrack(
            self.client,
            [
                *tally.new_ignored,
                *tally.new_succeeded,
                *failed,
                *await self._announced_pods(job, known),
            ],
        )
        return await self._write(job, status.counted_status(job, spec, freed | known.all))

    async def _announced_pods(self, job: RawObject, known: Uncounted) -> list[Pod]:
        """The pods in uncountedTerminatedPods that still have the finalizer."""
        by_uid = {uid_of(pod): pod for pod in self.dependents.of(job)}
        announced = [by_uid[uid] for uid in known.all if uid in by_uid]
        unseen = known.all - by_uid.keys()
        if unseen:
            announced += await tracking.find_unseen(self.client, job, unseen)
        return [pod for pod in announced if is_tracked(pod)]

    async def _write(self, job: RawObject, changes: Json) -> RawObject:
        """Write with the resourceVersion of the decision: pods must not be counted twice."""
        wanted = with_status(job, changes)
        if wanted is job:
            return job
        stored = await self.client.update_status(self.resource, wanted)
        self._record_suspension(job, stored)
        return stored

    def _record_suspension(self, before: RawObject, after: RawObject) -> None:
        suspension = status.suspension(before, read_spec(before))
        if suspension is not None and status.suspension(after, read_spec(before)) is None:
            reason = "Suspended" if suspension.status == "True" else "Resumed"
            self.record_event(before, reason, suspension.message)

    def _nothing_is_left(self, job: RawObject, tally: Tally, plan: JobPlan) -> bool:
        """Whether all pods have finished and are counted."""
        numbers = _numbers(tally, plan)
        return not (numbers.active or numbers.terminating or uncounted_of(job).all)

    async def _conclude(self, job: RawObject, conclusion: JobConclusion) -> None:
        await self._write(job, status.concluded_status(job, conclusion, self.today()))
        if conclusion.succeeded:
            self.record_event(job, "Completed", "Job completed")
        else:
            self.record_event(job, conclusion.reason, conclusion.message, WARNING)

    def _look_again(self, job: RawObject, spec: JobSpec, plan: JobPlan) -> None:
        key = job.key
        left = decision.seconds_until_deadline(job, spec, self.today())
        for wait in (plan.wait_seconds, left):
            if wait is not None and wait > 0:
                self.queue.add_after(key, wait)

    # --- orphan pods ---

    def _look_after(self, pod: Pod) -> None:
        if is_tracked(pod) and self.dependents.owner_of(pod) is None:
            self.orphan_pods.add(pod.key)

    def _leave_behind(self, job: RawObject) -> None:
        for pod in self.dependents.of(job):
            if is_tracked(pod):
                self.orphan_pods.add(pod.key)

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        return (run_workers(self.orphan_pods, self._sync_orphan_pod, 2),)

    async def _sync_orphan_pod(self, key: ObjectKey) -> None:
        """Remove the finalizer of a pod without a job."""
        pod = self.pods.get(key)
        if pod is None or not is_tracked(pod):
            return
        controller = controller_of(pod)
        if controller is not None and controller.is_of(self.resource):
            job = await self.client.find(self.resource, ObjectKey(key.namespace, controller.name))
            if job is not None and uid_of(job) == controller.uid:
                return
        elif controller is not None:
            return  # the pod belongs to another controller
        await tracking.remove_finalizer(self.client, key, uid_of(pod))


def _numbers(tally: Tally, plan: JobPlan) -> status.PodCounts:
    """The counts after the plan was executed: deleted pods are terminating."""
    deleted: Sequence[Pod] = plan.delete
    return status.PodCounts(
        active=len(tally.active) - len(deleted) + len(plan.create),
        ready=tally.ready - sum(map(is_ready, deleted)),
        terminating=tally.terminating + len(deleted),
    )
