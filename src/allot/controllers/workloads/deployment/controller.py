"""The control loop of deployments.

paused, or resized in a rollout    scale the existing sets
Recreate                           old sets to zero ──► wait for their pods ──► the new set
RollingUpdate                      the new set up ──► old sets down, as far as bounds allow
then                               delete old sets, write the status
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError, ClientError
from allot.client.events import WARNING
from allot.client.options import DeleteOptions
from allot.client.resources import DEPLOYMENTS, REPLICA_SETS
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.accessors import (
    Json,
    annotations_of,
    is_deleting,
    name_of,
    namespace_of,
    replicas_of,
    uid_of,
)
from allot.controllers.workloads.conditions import ConditionUpdate, conditions_of, find_condition
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.deployment import progress, sizes
from allot.controllers.workloads.deployment import replica_sets as sets_of
from allot.controllers.workloads.ownership import (
    BY_CONTROLLER,
    controller_of,
    controller_uid,
    is_controlled_by,
)
from allot.controllers.workloads.status_writes import write_status
from allot.controllers.workloads.workload_controller import WorkloadController


class ReplicaSets(NamedTuple):
    """The replica sets of a deployment. `new` is None if none has its template."""

    new: RawObject | None
    old: tuple[RawObject, ...]

    @property
    def all(self) -> tuple[RawObject, ...]:
        return self.old if self.new is None else (*self.old, self.new)


class DeploymentController(WorkloadController):
    """Rolls deployments out."""

    name = "deployment-controller"
    resource = DEPLOYMENTS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.sets = self.informers.informer(REPLICA_SETS)
        self.dependents = Dependents(self.client, self.workloads, self.sets, self.queue)
        self.pods.add_index(BY_CONTROLLER, controller_uid)
        self.pods.add_handlers(on_delete=self._pod_gone)

    def _pod_gone(self, pod: Pod) -> None:
        """Recreate waits for the last old pod."""
        controller = controller_of(pod)
        if controller is None or not controller.is_of(REPLICA_SETS):
            return
        found = self.sets.get(ObjectKey(namespace_of(pod), controller.name))
        deployment = self.dependents.owner_of(found) if found is not None else None
        if deployment is not None and sizes.is_recreated(deployment):
            self.queue.add(deployment.key)

    async def sync(self, workload: RawObject) -> None:
        sets = self._sort(workload, await self.dependents.claim(workload))
        if is_deleting(workload):
            await self._write_status(workload, sets, rollout=False)
            return
        pause = progress.pause_condition(workload)
        if pause is not None:
            workload = await self._write_condition(workload, pause)
        if workload.get("spec", "paused", default=False):
            sets = await self._scale(workload, sets)
            await self._forget(workload, sets)
            await self._write_status(workload, sets, rollout=False)
        elif _is_resized(workload, sets):
            sets = await self._scale(workload, sets)
            await self._write_status(workload, sets, rollout=False)
        elif sizes.is_recreated(workload):
            await self._recreate(workload, sets)
        else:
            await self._roll(workload, sets)

    def _sort(self, deployment: RawObject, sets: Sequence[RawObject]) -> ReplicaSets:
        new = sets_of.find_new_set(deployment, sets)
        return ReplicaSets(new, tuple(sets_of.by_age(found for found in sets if found is not new)))

    # --- strategies ---

    async def _roll(self, deployment: RawObject, sets: ReplicaSets) -> None:
        deployment, sets = await self._with_new_set(deployment, sets)
        assert sets.new is not None
        size = sizes.next_size_of_new(deployment, sets.new, sets.old)
        if size == replicas_of(sets.new):
            shrunk = sizes.next_sizes_of_old(deployment, sets.new, sets.old)
        else:
            shrunk = {}
        resized = await self._resize(deployment, sets, {name_of(sets.new): size} | shrunk)
        await self._finish(deployment, resized)

    async def _recreate(self, deployment: RawObject, sets: ReplicaSets) -> None:
        active = sizes.active_sets(sets.old)
        if active:
            sets = await self._resize(deployment, sets, {name_of(old): 0 for old in active})
        elif not self._has_pods(sets.old):
            deployment, sets = await self._with_new_set(deployment, sets)
            assert sets.new is not None
            wanted = {name_of(sets.new): replicas_of(deployment)}
            sets = await self._resize(deployment, sets, wanted)
        await self._finish(deployment, sets)

    def _has_pods(self, sets: Sequence[RawObject]) -> bool:
        return any(
            not pod.is_finished
            for found in sets
            for pod in self.pods.by_index(BY_CONTROLLER, uid_of(found))
        )

    async def _scale(self, deployment: RawObject, sets: ReplicaSets) -> ReplicaSets:
        wanted = sizes.scaled_sizes(deployment, sets.new, sets.old)
        return await self._resize(deployment, sets, wanted)

    async def _finish(self, deployment: RawObject, sets: ReplicaSets) -> None:
        status = progress.deployment_status(deployment, sets.all, sets.new, self.today())
        if progress.is_complete(deployment, status):
            await self._forget(deployment, sets)
        await self._write_status(deployment, sets, rollout=True)

    # --- writing replica sets ---

    async def _with_new_set(
        self, deployment: RawObject, sets: ReplicaSets
    ) -> tuple[RawObject, ReplicaSets]:
        """The set for the deployment's template, created if missing; both get the revision annotation."""
        revision = sets_of.next_revision(sets.old)
        if sets.new is None:
            new = await self._create_set(deployment, sets, revision)
            condition = ConditionUpdate(
                progress.PROGRESSING,
                "True",
                progress.NEW_SET_CREATED,
                f'Created new replica set "{name_of(new)}"',
            )
        else:
            new = sets_of.as_new_set(deployment, sets.new, revision)
            if new is not sets.new:
                new = await self.client.update(REPLICA_SETS, new)
            condition = ConditionUpdate(
                progress.PROGRESSING,
                "True",
                progress.FOUND_NEW_SET,
                f'Found new replica set "{name_of(new)}"',
            )
        deployment = await self._with_revision(deployment, sets_of.revision_of(new))
        known = find_condition(conditions_of(deployment), progress.PROGRESSING)
        if progress.has_deadline(deployment) and (sets.new is None or known is None):
            deployment = await self._write_condition(deployment, condition)
        return deployment, ReplicaSets(new, sets.old)

    async def _create_set(
        self, deployment: RawObject, sets: ReplicaSets, revision: int
    ) -> RawObject:
        size = sizes.first_size(deployment, sets.old)
        wanted = sets_of.make_new_set(deployment, size, revision)
        try:
            created = await self.client.create(REPLICA_SETS, wanted)
        except ApiStatusError as error:
            if error.is_already_exists:
                return await self._found_set(deployment, wanted, error)
            if not error.is_namespace_terminating:
                self.record_event(
                    deployment,
                    progress.SET_CREATE_ERROR,
                    f'Failed to create new replica set "{name_of(wanted)}": {error}',
                    WARNING,
                )
                if progress.has_deadline(deployment):
                    message = f'Failed to create new replica set "{name_of(wanted)}": {error}'
                    await self._write_condition(
                        deployment,
                        ConditionUpdate(
                            progress.PROGRESSING, "False", progress.SET_CREATE_ERROR, message
                        ),
                    )
            raise
        if size:
            self._record_scaling(deployment, wanted, 0, size)
        return created

    async def _found_set(
        self, deployment: RawObject, wanted: RawObject, error: ClientError
    ) -> RawObject:
        """The set of that name, if the deployment owns it; otherwise it is a hash collision."""
        found = await self.client.get(REPLICA_SETS, wanted.key)
        if is_controlled_by(found, deployment) and sets_of.has_template_of(found, deployment):
            return found
        collisions = int(deployment.get("status", "collisionCount", default=0)) + 1
        await write_status(self.client, self.resource, deployment, {"collisionCount": collisions})
        raise error

    async def _resize(
        self, deployment: RawObject, sets: ReplicaSets, wanted: Mapping[str, int]
    ) -> ReplicaSets:
        """The sets, with those in `wanted` resized."""

        async def sized(found: RawObject) -> RawObject:
            if name_of(found) not in wanted:
                return found
            size, before = wanted[name_of(found)], replicas_of(found)
            updated = sets_of.resized(deployment, found, size)
            if updated is found:
                return found
            stored = await self.client.update(REPLICA_SETS, updated)
            if size != before:
                self._record_scaling(deployment, found, before, size)
            return stored

        new = await sized(sets.new) if sets.new is not None else None
        return ReplicaSets(new, tuple([await sized(found) for found in sets.old]))

    def _record_scaling(
        self, deployment: RawObject, replica_set: RawObject, before: int, after: int
    ) -> None:
        direction = "up" if after > before else "down"
        self.record_event(
            deployment,
            "ScalingReplicaSet",
            f"Scaled {direction} replica set {name_of(replica_set)} from {before} to {after}",
        )

    async def _forget(self, deployment: RawObject, sets: ReplicaSets) -> None:
        """Delete old sets beyond the history limit."""
        for found in sets_of.sets_to_forget(deployment, sets.old):
            try:
                await self.client.delete(REPLICA_SETS, found.key, DeleteOptions(uid=uid_of(found)))
            except ApiStatusError as error:
                if not (error.is_not_found or error.is_conflict):
                    raise

    # --- writing the deployment ---

    async def _with_revision(self, deployment: RawObject, revision: int) -> RawObject:
        if annotations_of(deployment).get(sets_of.REVISION) == str(revision):
            return deployment
        annotations = {**annotations_of(deployment), sets_of.REVISION: str(revision)}
        # With the status, because a change of the spec or of annotations is a new generation. An update is a
        # precondition: observedGeneration refers to the version that was read.
        changed = deployment.with_value(annotations, "metadata", "annotations")
        return await self.client.update_status(self.resource, changed)

    async def _write_condition(
        self, deployment: RawObject, condition: ConditionUpdate
    ) -> RawObject:
        conditions = progress.set_condition(conditions_of(deployment), condition, self.today())
        return await write_status(
            self.client, self.resource, deployment, {"conditions": list(conditions)}
        )

    async def _write_status(
        self, deployment: RawObject, sets: ReplicaSets, *, rollout: bool
    ) -> None:
        now = self.today()
        status: Json = progress.deployment_status(deployment, sets.all, sets.new, now)
        if rollout:
            status = progress.with_progress(deployment, status, sets.all, sets.new, now)
        await write_status(self.client, self.resource, deployment, status)
        wait = progress.seconds_until_timeout(deployment, status, now) if rollout else None
        if wait is not None:
            self.queue.add_after(deployment.key, wait)


def _is_resized(deployment: RawObject, sets: ReplicaSets) -> bool:
    """Whether the deployment was resized since its sets were scaled."""
    desired = str(replicas_of(deployment))
    return any(
        annotations_of(found).get(sets_of.DESIRED_REPLICAS, desired) != desired
        for found in sizes.active_sets(sets.all)
    )
