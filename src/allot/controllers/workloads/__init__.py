"""Workloads: kinds that run pods from a template, each with its own controller.

accessors, names, conditions,
int_or_percent                          values: fields, generated names, conditions, percentages
pod_states, pod_ranking, pod_templates  pods: readiness, deletion order, creation from a template
ownership, dependents, expectations     controller references, adoption, pending writes
pod_control, status_writes, revisions   writes
replica_set, replication_controller,
deployment, stateful_set, daemon_set,
job                                     the kinds
"""

from typing import Final

from allot.controllers.workloads.daemon_set import DaemonSetController
from allot.controllers.workloads.deployment import DeploymentController
from allot.controllers.workloads.job import JobController
from allot.controllers.workloads.replica_set import ReplicaSetController
from allot.controllers.workloads.replication_controller import ReplicationControllerController
from allot.controllers.workloads.stateful_set import StatefulSetController

WORKLOAD_CONTROLLERS: Final = (
    ReplicaSetController,
    ReplicationControllerController,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    JobController,
)
