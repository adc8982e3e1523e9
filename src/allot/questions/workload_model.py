"""The pods of workloads: what the controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs do next.

The decisions are those of `allot.controllers.workloads`; here they are carried out on objects in memory. A workload is
synced when it or one of its pods has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.selectors import label_selector
from allot.apiserver.kinds.daemon_set import daemon_set_defaults
from allot.apiserver.kinds.deployment import deployment_defaults
from allot.apiserver.kinds.job import job_defaults, with_job_selector
from allot.apiserver.kinds.replica_set import replica_set_defaults
from allot.apiserver.kinds.stateful_set import stateful_set_defaults
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.controllers.workloads.accessors import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    replicas_of,
    selector_of,
    template_of,
    uid_of,
)
from allot.controllers.workloads.daemon_set import decision as daemon_sets
from allot.controllers.workloads.daemon_set.nodes import placement_by_node
from allot.controllers.workloads.daemon_set.pods import make_pod as make_daemon_pod
from allot.controllers.workloads.deployment import replica_sets as sets_of
from allot.controllers.workloads.deployment import sizes
from allot.controllers.workloads.job import decision as jobs
from allot.controllers.workloads.job.indexes import index_of
from allot.controllers.workloads.job.pods import make_pod as make_job_pod
from allot.controllers.workloads.job.pods import name_base
from allot.controllers.workloads.job.spec import read_spec
from allot.controllers.workloads.job.tally import tally_pods
from allot.controllers.workloads.ownership import controller_of
from allot.controllers.workloads.pod_ranking import pods_to_delete
from allot.controllers.workloads.pod_states import is_active
from allot.controllers.workloads.pod_templates import pod_from_template
from allot.controllers.workloads.replica_set import replica_set_status
from allot.controllers.workloads.revisions import hash_of, make_revision
from allot.controllers.workloads.stateful_set import decision as stateful_sets
from allot.controllers.workloads.stateful_set.identity import make_pod as make_numbered_pod

Defaults = Callable[[dict[str, Any]], dict[str, Any]]

DEFAULTS_BY_KIND: Final[Mapping[str, Defaults]] = {
    "Deployment": deployment_defaults,
    "ReplicaSet": replica_set_defaults,
    "StatefulSet": stateful_set_defaults,
    "DaemonSet": daemon_set_defaults,
    "Job": lambda job: with_job_selector(job_defaults(job)),
}
WORKLOADS: Final[tuple[Resource[RawObject], ...]] = (
    resources.DEPLOYMENTS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.DAEMON_SETS,
    resources.JOBS,
)
BY_KIND: Final = {resource.kind: resource for resource in WORKLOADS}
_WAITS_FOR_DELETION: Final = frozenset({"StatefulSet", "DaemonSet"})
"""Their pods are replaced when the old ones are gone, and so after those of others."""
SCALED_DOWN: Final = "scaled down"
_MAX_SYNCS: Final = 100_000
"""Of one call; more would mean that two controllers undo each other's work."""


class PodStore(Protocol):
    """Where pods are created and deleted."""

    objects: Snapshot
    now: float

    def today(self) -> datetime: ...

    def pods_of(self, owner_uid: str) -> list[Pod]:
        """The pods that a workload controls, finished or not."""

    def create_pod(self, pod: Pod, base: str = "") -> str:
        """Create a pod, with a generated name if `base` is given; why it was refused, or an empty string."""

    def delete_pod(self, pod: Pod, reason: str = "") -> None: ...

    def put_workload(self, workload: RawObject) -> None:
        """Keep a workload that was added or changed."""

    def remove_workload(self, workload: RawObject) -> None: ...


def with_defaults(workload: RawObject) -> RawObject:
    """The workload as the API server stores it."""
    default = DEFAULTS_BY_KIND.get(workload.kind)
    return workload if default is None else RawObject(default(dict(workload.data)))


class WorkloadModel:
    """Keeps the pods of all workloads as their controllers would."""

    def __init__(self, store: PodStore) -> None:
        self._store = store
        self._dirty: dict[tuple[str, ObjectKey], None] = {}
        self._later: dict[tuple[str, ObjectKey], None] = {}
        """Workloads to sync: these after all others."""
        self._sets: dict[str, dict[ObjectKey, None]] = {}
        """ReplicaSets by the uid of their Deployment."""
        self._delayed: dict[ObjectKey, float] = {}
        """Jobs that wait for a backoff, and until when."""
        self.refused: dict[tuple[str, ObjectKey], str] = {}
        """Workloads that could not create all pods, and why: quota."""
        objects = store.objects
        for replica_set in objects.of(resources.REPLICA_SETS):
            self._index(replica_set)
        for resource in WORKLOADS:
            for workload in objects.of(resource):
                self._mark(resource.kind, workload.key)

    def _mark(self, kind: str, key: ObjectKey) -> None:
        """Sync this workload with the next call of `sync`."""
        (self._later if kind in _WAITS_FOR_DELETION else self._dirty)[kind, key] = None

    def _index(self, replica_set: RawObject) -> None:
        controller = controller_of(replica_set)
        if controller is not None:
            self._sets.setdefault(controller.uid, {})[replica_set.key] = None

    def put(self, workload: RawObject) -> None:
        """A workload was added or changed."""
        kind = workload.kind
        self._store.put_workload(workload)
        if kind == "ReplicaSet":
            self._index(workload)
        self._mark(kind, workload.key)

    def remove(self, workload: RawObject) -> None:
        """A workload was deleted; so are its dependents."""
        self._store.remove_workload(workload)
        for key in self._sets.pop(uid_of(workload), {}):
            found = self._store.objects.get(resources.REPLICA_SETS, key)
            if found is not None:
                self.remove(found)
        for pod in self._store.pods_of(uid_of(workload)):
            self._store.delete_pod(pod, f"its {workload.kind} is deleted")

    def pod_changed(self, pod: Pod) -> None:
        """A pod was bound, has ended, or is gone."""
        controller = controller_of(pod)
        if controller is not None and controller.kind in BY_KIND:
            key = ObjectKey(namespace_of(pod), controller.name)
            self._mark(controller.kind, key)

    def count_success(self, pod: Pod) -> bool:
        """Count a pod that has succeeded in the status of its Job; False if its Job counts by index."""
        controller = controller_of(pod)
        if controller is None or controller.kind != "Job":
            return False
        job = self._store.objects.get(resources.JOBS, ObjectKey(namespace_of(pod), controller.name))
        if job is None or read_spec(job).is_indexed:
            return False
        succeeded = int(job.get("status", "succeeded", default=0)) + 1
        self._store.objects.put(resources.JOBS, job.with_value(succeeded, "status", "succeeded"))
        return True

    def nodes_changed(self) -> None:
        for daemon_set in self._store.objects.of(resources.DAEMON_SETS):
            self._mark("DaemonSet", daemon_set.key)

    def next_delay(self) -> float | None:
        """When the next Job creates a pod after its backoff, in seconds since the observation; None if none does."""
        return min(self._delayed.values(), default=None)

    def sync(self) -> bool:
        """Sync workloads until all are in step with their pods. Whether there was anything to do."""
        for key, due in list(self._delayed.items()):
            if due <= self._store.now:
                del self._delayed[key]
                self._mark("Job", key)
        had_work = bool(self._dirty or self._later)
        for _ in range(_MAX_SYNCS):
            marked = self._dirty or self._later
            if not marked:
                return had_work
            kind, key = next(iter(marked))
            del marked[kind, key]
            workload = self._store.objects.get(BY_KIND[kind], key)
            if workload is not None:
                self.refused.pop((kind, key), None)
                _SYNC[kind](self, workload)
        raise RuntimeError("the controllers of workloads do not settle")

    # --- deployments and replica sets ---

    def _sync_deployment(self, deployment: RawObject) -> None:
        sets = self._sets_of(deployment)
        new = sets_of.find_new_set(deployment, sets)
        old = sets_of.by_age(found for found in sets if found is not new)
        wanted: dict[str, int]
        if _is_resized(deployment, sets) or deployment.get("spec", "paused", default=False):
            wanted = sizes.scaled_sizes(deployment, new, old)
        elif sizes.is_recreated(deployment) and sizes.active_sets(old):
            wanted = {name_of(each): 0 for each in sizes.active_sets(old)}
        else:
            if new is None:
                size = sizes.first_size(deployment, old)
                new = sets_of.make_new_set(deployment, size, sets_of.next_revision(old))
                new = self._with_new_name(new)
                new = new.with_value(f"ReplicaSet/{new.key}", "metadata", "uid")
                self.put(new)
            size = sizes.next_size_of_new(deployment, new, old)
            wanted = {name_of(new): size}
            if size == replicas_of(new):
                wanted |= sizes.next_sizes_of_old(deployment, new, old)
        for found in (*old, *([new] if new is not None else [])):
            size = wanted.get(name_of(found), replicas_of(found))
            changed = sets_of.resized(deployment, found, size)
            if changed is not found:
                self.put(changed)
        if any(replicas_of(each) != wanted.get(name_of(each), replicas_of(each)) for each in sets):
            self._mark("Deployment", deployment.key)

    def _with_new_name(self, replica_set: RawObject) -> RawObject:
        """With another name, if a set of this name has another template: hashes may collide."""
        found, number = replica_set, 1
        while self._store.objects.get(resources.REPLICA_SETS, found.key) is not None:
            number += 1
            name = f"{name_of(replica_set)}-{number}"
            found = replica_set.with_value(name, "metadata", "name")
        return found

    def _sets_of(self, deployment: RawObject) -> list[RawObject]:
        """Its ReplicaSets with their current status."""
        keys = self._sets.get(uid_of(deployment), {})
        found = [self._store.objects.get(resources.REPLICA_SETS, key) for key in keys]
        now = self._store.today()
        return [
            each.with_value(replica_set_status(each, self._active(each), None, now), "status")
            for each in found
            if each is not None
        ]

    def _active(self, owner: RawObject) -> list[Pod]:
        return [pod for pod in self._store.pods_of(uid_of(owner)) if is_active(pod)]

    def _sync_replica_set(self, replica_set: RawObject) -> None:
        active = self._active(replica_set)
        surplus = len(active) - replicas_of(replica_set)
        if surplus < 0:
            pod = pod_from_template(template_of(replica_set), resources.REPLICA_SETS, replica_set)
            self._create(replica_set, [pod] * -surplus, f"{name_of(replica_set)}-")
        elif surplus > 0:
            related = [pod for each in self._relatives(replica_set) for pod in self._active(each)]
            for pod in pods_to_delete(active, surplus, related, self._store.today()):
                self._store.delete_pod(pod, SCALED_DOWN)
        controller = controller_of(replica_set)
        if controller is not None and controller.kind == "Deployment":
            # Its rollout goes on when pods become available.
            key = ObjectKey(namespace_of(replica_set), controller.name)
            deployment = self._store.objects.get(resources.DEPLOYMENTS, key)
            if deployment is not None and len(self._sets.get(uid_of(deployment), ())) > 1:
                self._mark("Deployment", key)

    def _relatives(self, replica_set: RawObject) -> list[RawObject]:
        controller = controller_of(replica_set)
        keys: Iterable[ObjectKey] = self._sets.get(controller.uid, {}) if controller else ()
        found = [self._store.objects.get(resources.REPLICA_SETS, key) for key in keys]
        return [each for each in found if each is not None] or [replica_set]

    # --- the others ---

    def _sync_stateful_set(self, stateful_set: RawObject) -> None:
        revision = make_revision(resources.STATEFUL_SETS, stateful_set, 1)
        update = name_of(revision)
        known = stateful_set.get("status", "updateRevision", default="")
        if known and stateful_set.get("status", "observedGeneration") == stateful_set.get(
            "metadata", "generation"
        ):
            # What the cluster calls the current template.
            revision, update = revision.with_value(known, "metadata", "name"), known
        revisions = stateful_sets.Revisions(update, update)
        pods = stateful_sets.by_ordinal(stateful_set, self._store.pods_of(uid_of(stateful_set)))
        plan = stateful_sets.plan_pods(stateful_set, pods, revisions, self._store.today())
        for pod in (*plan.delete, *plan.failed):
            self._store.delete_pod(pod, SCALED_DOWN)
        made = [make_numbered_pod(stateful_set, ordinal, revision) for ordinal, _ in plan.create]
        self._create(stateful_set, made, "")
        if not plan.is_empty and (stateful_set.kind, stateful_set.key) not in self.refused:
            self._mark(stateful_set.kind, stateful_set.key)

    def _sync_daemon_set(self, daemon_set: RawObject) -> None:
        pods = daemon_sets.group_by_node(self._store.pods_of(uid_of(daemon_set)))
        spec = template_of(daemon_set).get("spec") or {}
        places = placement_by_node(self._store.objects.of(resources.NODES), spec)
        hash_ = self._daemon_hash(daemon_set, pods)
        plan = daemon_sets.plan_pods(daemon_set, places, pods, hash_, self._store.today())
        for pod in (*plan.delete, *plan.finished):
            self._store.delete_pod(pod, "its DaemonSet does not run on the node")
        made = [make_daemon_pod(daemon_set, node, hash_) for node in plan.create_on]
        self._create(daemon_set, made, f"{name_of(daemon_set)}-")

    def _daemon_hash(self, daemon_set: RawObject, pods: Mapping[str, Iterable[Pod]]) -> str:
        """The hash that its pods have; updates are not simulated."""
        own = hash_of(make_revision(resources.DAEMON_SETS, daemon_set, 1))
        known = (
            labels_of(pod).get("controller-revision-hash") for on in pods.values() for pod in on
        )
        return next(filter(None, known), own)

    def _sync_job(self, job: RawObject) -> None:
        if jobs.is_finished(job):
            return
        spec, now = read_spec(job), self._store.today()
        tally = tally_pods(job, spec, self._store.pods_of(uid_of(job)))
        conclusion = jobs.find_conclusion(job, spec, tally, now)
        if conclusion is not None:
            condition = {"type": conclusion.concluded_by, "status": "True"}
            conditions = [*job.get("status", "conditions", default=()), condition]
            self._store.objects.put(
                resources.JOBS, job.with_value(conditions, "status", "conditions")
            )
            for pod in tally.active:
                self._store.delete_pod(pod, f"its Job is {conclusion.concluded_by}")
            return
        plan = jobs.plan_pods(spec, tally, now)
        if plan.wait_seconds is not None:
            self._delayed[job.key] = self._store.now + plan.wait_seconds
        for pod in plan.delete:
            self._store.delete_pod(pod, SCALED_DOWN)
        latest = tally.latest_failed_by_index
        for index in plan.create:
            failed = latest.get(index) if index is not None else None
            pod = make_job_pod(job, spec, index, failed)
            base = name_base(job, index_of(pod) if spec.is_indexed else None)
            if not self._create(job, [pod], base):
                return
        if plan.delete or plan.create:
            self._mark("Job", job.key)

    def _create(self, owner: RawObject, pods: Iterable[Pod], base: str) -> bool:
        """Create pods until one is refused; False if one was."""
        for pod in pods:
            refusal = self._store.create_pod(pod, base)
            if refusal:
                self.refused[owner.kind, owner.key] = refusal
                return False
        return True


_SYNC: Final[Mapping[str, Callable[[WorkloadModel, RawObject], None]]] = {
    "Deployment": WorkloadModel._sync_deployment,
    "ReplicaSet": WorkloadModel._sync_replica_set,
    "StatefulSet": WorkloadModel._sync_stateful_set,
    "DaemonSet": WorkloadModel._sync_daemon_set,
    "Job": WorkloadModel._sync_job,
}


def _is_resized(deployment: RawObject, sets: Iterable[RawObject]) -> bool:
    """Whether the deployment was resized since its sets were scaled."""
    desired = str(replicas_of(deployment))
    return any(
        annotations_of(found).get(sets_of.DESIRED_REPLICAS, desired) != desired
        for found in sizes.active_sets(sets)
    )


def with_inferred_replica_sets(objects: Snapshot) -> Snapshot:
    """The objects, with a ReplicaSet for pods of a Deployment whose ReplicaSet is missing, as in partial dumps."""
    known = {uid_of(each) for each in objects.of(resources.REPLICA_SETS)}
    found = objects
    for pod in objects.of(resources.PODS):
        controller = controller_of(pod)
        if controller is None or controller.kind != "ReplicaSet" or controller.uid in known:
            continue
        known.add(controller.uid)
        for deployment in objects.of(resources.DEPLOYMENTS):
            selector = label_selector(selector_of(deployment))
            if namespace_of(deployment) != namespace_of(pod) or selector is None:
                continue
            if selector.matches(labels_of(pod)):
                found = objects.copy() if found is objects else found
                replica_set = sets_of.make_new_set(deployment, replicas_of(deployment), 1)
                metadata = {
                    **replica_set.get("metadata"),
                    "name": controller.name,
                    "uid": controller.uid,
                }
                found.put(resources.REPLICA_SETS, replica_set.with_value(metadata, "metadata"))
                break
    return found
