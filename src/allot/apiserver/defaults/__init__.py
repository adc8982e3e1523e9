"""What the server fills in for kinds that are stored as they came: one function per kind, in a table.

apply_defaults       what follows from the object alone; on every write
resolve_priority     the number behind a pod's priority class; on create
with_job_selector    the selector and labels that carry a job's uid; on create, once it is known
with_addresses       a service's cluster IP and node ports; on every write of a service
"""

from __future__ import annotations

from typing import Final

from allot.api.identities import GroupVersionKind
from allot.apiserver.defaults import core_kinds, other_kinds, services, workloads
from allot.apiserver.defaults.filling import Data, Step
from allot.apiserver.defaults.pod_priority import (
    SYSTEM_PRIORITIES,
    Denied,
    PriorityClasses,
    resolve_priority,
)
from allot.apiserver.defaults.pods import pod_defaults, template_defaults
from allot.apiserver.defaults.services import with_addresses
from allot.apiserver.defaults.workloads import with_job_selector

__all__ = [
    "SYSTEM_PRIORITIES",
    "Denied",
    "PriorityClasses",
    "apply_defaults",
    "resolve_priority",
    "with_addresses",
    "with_job_selector",
]

RBAC: Final = "rbac.authorization.k8s.io"
STORAGE: Final = "storage.k8s.io"

_DEFAULTS: Final[dict[tuple[str, str], Step]] = {
    ("", "Pod"): pod_defaults,
    ("", "PodTemplate"): template_defaults,
    ("", "Namespace"): core_kinds.namespace_defaults,
    ("", "Node"): core_kinds.node_defaults,
    ("", "Service"): services.service_defaults,
    ("", "Endpoints"): core_kinds.endpoints_defaults,
    ("", "Secret"): core_kinds.secret_defaults,
    ("", "LimitRange"): core_kinds.limit_range_defaults,
    ("", "PersistentVolume"): core_kinds.volume_defaults,
    ("", "PersistentVolumeClaim"): core_kinds.volume_claim_defaults,
    ("", "ReplicationController"): workloads.replication_controller_defaults,
    ("apps", "Deployment"): workloads.deployment_defaults,
    ("apps", "ReplicaSet"): workloads.replica_set_defaults,
    ("apps", "StatefulSet"): workloads.stateful_set_defaults,
    ("apps", "DaemonSet"): workloads.daemon_set_defaults,
    ("batch", "Job"): workloads.job_defaults,
    ("batch", "CronJob"): workloads.cron_job_defaults,
    ("policy", "PodDisruptionBudget"): workloads.budget_defaults,
    (RBAC, "RoleBinding"): other_kinds.role_binding_defaults,
    (RBAC, "ClusterRoleBinding"): other_kinds.role_binding_defaults,
    (STORAGE, "StorageClass"): other_kinds.storage_class_defaults,
    (STORAGE, "CSIDriver"): other_kinds.csi_driver_defaults,
    (STORAGE, "VolumeAttachment"): other_kinds.volume_attachment_defaults,
    ("scheduling.k8s.io", "PriorityClass"): other_kinds.priority_class_defaults,
    ("discovery.k8s.io", "EndpointSlice"): other_kinds.endpoint_slice_defaults,
}


def apply_defaults(data: Data, gvk: GroupVersionKind) -> Data:
    """The object with what kube-apiserver would fill in. The argument stays as it is.

    Nothing is filled in twice: applied to its own result, this returns it unchanged.
    """
    step = _DEFAULTS.get((gvk.group, gvk.kind))
    return data if step is None else step(data)
