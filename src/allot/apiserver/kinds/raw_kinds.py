"""Strategies of the kinds that are stored as they came: one class, and a table of what differs.

A kind's rules say how its name is checked, what its status starts as, which changes count as a new
generation, and what else is validated. Pods, namespaces and services need a little more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.defaults.services import keep_addresses
from allot.apiserver.defaults.workloads import STATUS_COUNTERS
from allot.apiserver.kinds import namespaces, pod
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.kinds.strategy import StatusStrategy, metadata_for_status_update
from allot.validation import config_data, core_objects, rbac, workloads
from allot.validation.core_names import cron_job_name_problems, path_segment_problems
from allot.validation.fields import FieldError, FieldPath, first_errors
from allot.validation.formats import label_problems, subdomain_problems
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.pod_basics import validate_pod_basics

Rule = Callable[[RawObject], Iterator[FieldError]]
UpdateRule = Callable[[RawObject, RawObject], Iterator[FieldError]]
Path = tuple[str, ...]


def _anything(_: RawObject) -> Iterator[FieldError]:
    return iter(())


def _any_change(_new: RawObject, _old: RawObject) -> Iterator[FieldError]:
    return iter(())


class Generation(NamedTuple):
    """A count of the changes at these paths."""

    paths: tuple[Path, ...] = (("spec",),)
    first: int = 1


COUNTED: Final = Generation()


class KindRules(NamedTuple):
    """What is special about a kind."""

    name_problems: Callable[[str], list[str]] = subdomain_problems
    validate: Rule = _anything
    """Of a new object, and of an updated one."""
    validate_change: UpdateRule = _any_change
    status: Mapping[str, Any] | None = None
    """What the status of a new object is; None if the kind has no status of its own."""
    generation: Generation | None = None
    needs_resource_version: bool = False
    """Whether an update has to say which version it is based on."""


class RawStrategy(StatusStrategy[RawObject]):
    """The steps of a write that differ between kinds. All of them are pure.

    Names, uids, times and namespaces are the pipeline's: it sets them before or after these steps.
    """

    def __init__(self, resource: Resource, rules: KindRules) -> None:
        self._rules = rules
        self._namespaced = resource.namespaced

    # --- create ---

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        """`new` with a status nobody has written yet, and the first generation."""
        if self._rules.status is not None:
            new = new.with_value(dict(self._rules.status), "status")
        if self._rules.generation is not None:
            new = new.with_metadata(replace(new.metadata, generation=self._rules.generation.first))
        return new

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        yield from validate_metadata(
            new.metadata,
            namespaced=self._namespaced,
            check_generate_name=self._rules.name_problems is not path_segment_problems,
            name_problems=self._rules.name_problems,
        )
        yield from self._rules.validate(new)

    # --- update ---

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        """`new` with the stored status, and a new generation if it asks for something else."""
        if self._rules.status is not None:
            new = new.with_value(old.get("status"), "status")
        return self._with_generation(new, old)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self._validate_metadata_update(new, old)
        yield from self._rules.validate(new)
        yield from self._rules.validate_change(new, old)

    # --- status ---

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        """`new` with everything but the status taken from `old`."""
        metadata = metadata_for_status_update(new.metadata, old.metadata)
        kept = {name: value for name, value in old.data.items() if name != "status"}
        status = new.get("status")
        kept |= {"metadata": new.get("metadata", default={})}
        whole = type(new)(kept if status is None else kept | {"status": status})
        return whole.with_metadata(metadata)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self._validate_metadata_update(new, old)

    # --- the rest ---

    def accepts_unconditional_update(self, version: str) -> bool:
        """Whether an update may come without a resourceVersion."""
        return not self._rules.needs_resource_version

    def with_metadata(self, obj: RawObject, metadata: ObjectMeta) -> RawObject:
        return obj.with_metadata(metadata)

    def first_errors(self, errors: Iterable[FieldError], request: WriteRequest) -> list[FieldError]:
        return first_errors(errors)

    def _validate_metadata_update(self, new: RawObject, old: RawObject) -> Iterator[FieldError]:
        yield from validate_metadata_update(
            new.metadata,
            old.metadata,
            needs_resource_version=self._rules.needs_resource_version,
        )

    def _with_generation(self, new: RawObject, old: RawObject) -> RawObject:
        generation = self._rules.generation
        if generation is None:
            return new
        changed = any(new.get(*path) != old.get(*path) for path in generation.paths)
        count = old.metadata.generation + changed
        return new.with_metadata(replace(new.metadata, generation=count))


# --- kinds that need a little more ---


class PodStrategy(RawStrategy):
    """Pods: the DRA parts are checked in full, the plain parts for what is most often wrong."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return pod.prepare_create(_pod(new), request)

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        yield from pod.validate_create(_pod(new), request)
        yield from _validate_basics(new)

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        for field in ("priority", "preemptionPolicy"):  # found on create, not again
            if new.get("spec", field) is None and old.get("spec", field) is not None:
                new = new.with_value(old.get("spec", field), "spec", field)
        return pod.prepare_update(_pod(new), _pod(old), request)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from pod.validate_update(_pod(new), _pod(old), request)
        yield from _validate_basics(new)

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        return pod.prepare_status_update(_pod(new), _pod(old), request)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from pod.validate_status_update(_pod(new), _pod(old), request)


def _pod(obj: RawObject) -> Pod:
    return obj if isinstance(obj, Pod) else Pod(obj.data)


def _validate_basics(new: RawObject) -> Iterator[FieldError]:
    yield from validate_pod_basics(new.get("spec", default={}), FieldPath("spec"))


class NamespaceStrategy(RawStrategy):
    """Namespaces: only the finalize endpoint changes `spec.finalizers`."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return namespaces.prepare_create(super().prepare_create(new, request))

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_update(new, old, request)
        return new.with_value(old.get("spec", "finalizers"), "spec", "finalizers")

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_status_update(new, old, request)
        yield from core_objects.validate_namespace_phase(new)


class NodeStrategy(RawStrategy):
    """Nodes register with their status, and annotate themselves when they report it."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return new

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        prepared = super().prepare_status_update(new, old, request)
        return prepared.with_metadata(
            replace(
                prepared.metadata,
                labels=new.metadata.labels,
                annotations=new.metadata.annotations,
            )
        )


class ServiceStrategy(RawStrategy):
    """Services: what the server gave out stays, whether or not a client repeats it."""

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_update(new, old, request)
        return type(new)(keep_addresses(dict(new.data), dict(old.data)))


# --- the table ---

_WORKLOAD: Final = KindRules(
    validate=workloads.validate_workload,
    validate_change=workloads.validate_workload_update,
    status={},
    generation=COUNTED,
)
_VOLUME_STATUS: Final = {"phase": "Pending"}
_ROLE: Final = KindRules(path_segment_problems, rbac.validate_role)
_BINDING: Final = KindRules(
    path_segment_problems, rbac.validate_role_binding, rbac.validate_role_binding_update
)
_VERSIONED: Final = KindRules(needs_resource_version=True)

RULES: Final[dict[tuple[str, str], KindRules]] = {
    ("", "ConfigMap"): KindRules(
        validate=config_data.validate_config_map,
        validate_change=config_data.validate_config_map_update,
    ),
    ("", "Secret"): KindRules(
        validate=config_data.validate_secret, validate_change=config_data.validate_secret_update
    ),
    ("", "Event"): KindRules(path_segment_problems, core_objects.validate_event),
    ("", "Namespace"): KindRules(label_problems, status={"phase": "Active"}),
    ("", "Node"): KindRules(validate=core_objects.validate_node, status={}),
    ("", "PersistentVolume"): KindRules(
        validate=core_objects.validate_volume, status=_VOLUME_STATUS
    ),
    ("", "PersistentVolumeClaim"): KindRules(
        validate=core_objects.validate_volume_claim,
        validate_change=core_objects.validate_volume_claim_update,
        status=_VOLUME_STATUS,
    ),
    ("", "Pod"): KindRules(status={}, generation=COUNTED),
    ("", "PodTemplate"): KindRules(
        validate=workloads.validate_pod_template, generation=Generation((("template",),))
    ),
    ("", "ReplicationController"): KindRules(
        validate=workloads.validate_replication_controller,
        status=STATUS_COUNTERS["ReplicationController"],
        generation=COUNTED,
    ),
    ("", "ResourceQuota"): KindRules(validate=core_objects.validate_quota, status={}),
    ("", "Service"): KindRules(
        label_problems,
        core_objects.validate_service,
        core_objects.validate_service_update,
        status={"loadBalancer": {}},
    ),
    ("apps", "ControllerRevision"): KindRules(
        validate=core_objects.validate_revision, validate_change=core_objects.unchanged("data")
    ),
    ("apps", "DaemonSet"): _WORKLOAD._replace(status=STATUS_COUNTERS["DaemonSet"]),
    ("apps", "Deployment"): _WORKLOAD._replace(
        generation=Generation((("spec",), ("metadata", "annotations")))
    ),
    ("apps", "ReplicaSet"): _WORKLOAD._replace(status=STATUS_COUNTERS["ReplicaSet"]),
    ("apps", "StatefulSet"): _WORKLOAD._replace(
        name_problems=label_problems,
        validate_change=workloads.validate_stateful_set_update,
        status=STATUS_COUNTERS["StatefulSet"],
    ),
    ("batch", "CronJob"): KindRules(
        cron_job_name_problems, workloads.validate_cron_job, status={}, generation=COUNTED
    ),
    ("batch", "Job"): KindRules(
        validate=workloads.validate_job,
        validate_change=workloads.validate_job_update,
        status={},
        generation=COUNTED,
    ),
    ("policy", "PodDisruptionBudget"): KindRules(
        validate=workloads.validate_budget,
        status=STATUS_COUNTERS["PodDisruptionBudget"],
        generation=COUNTED,
        needs_resource_version=True,
    ),
    ("rbac.authorization.k8s.io", "ClusterRole"): _ROLE,
    ("rbac.authorization.k8s.io", "Role"): _ROLE,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("storage.k8s.io", "CSIDriver"): _VERSIONED._replace(generation=Generation(first=0)),
    ("storage.k8s.io", "CSINode"): _VERSIONED,
    ("storage.k8s.io", "CSIStorageCapacity"): _VERSIONED,
    ("storage.k8s.io", "StorageClass"): KindRules(
        validate=core_objects.validate_storage_class,
        validate_change=core_objects.validate_storage_class_update,
    ),
    ("storage.k8s.io", "VolumeAttachment"): KindRules(
        validate=core_objects.validate_attachment,
        validate_change=core_objects.unchanged("spec"),
        status={"attached": False},
        needs_resource_version=True,
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        validate=core_objects.validate_priority_class,
        validate_change=core_objects.validate_priority_class_update,
        generation=Generation(()),
    ),
    ("coordination.k8s.io", "Lease"): KindRules(
        validate=core_objects.validate_lease, needs_resource_version=True
    ),
    ("node.k8s.io", "RuntimeClass"): KindRules(
        validate=core_objects.validate_runtime_class,
        validate_change=core_objects.unchanged("handler"),
        needs_resource_version=True,
    ),
    ("discovery.k8s.io", "EndpointSlice"): KindRules(
        validate=core_objects.validate_endpoint_slice,
        validate_change=core_objects.unchanged("addressType"),
        generation=Generation((("endpoints",), ("ports",), ("metadata", "labels"))),
    ),
}
_SPECIAL: Final[dict[tuple[str, str], type[RawStrategy]]] = {
    ("", "Pod"): PodStrategy,
    ("", "Namespace"): NamespaceStrategy,
    ("", "Node"): NodeStrategy,
    ("", "Service"): ServiceStrategy,
}


def raw_strategy(resource: Resource) -> RawStrategy:
    # Events of both groups are core events once they are stored.
    key = (resource.stored_as[0] if resource.stored_as else resource.group, resource.kind)
    return _SPECIAL.get(key, RawStrategy)(resource, RULES.get(key, KindRules()))
