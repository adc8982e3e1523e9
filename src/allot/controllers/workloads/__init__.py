"""Workloads: kinds that run pods from a template, each with a controller of its own.

reading, names, conditions, bounds      values: what objects say, what they are called
pod_states, pod_ranking, pod_templates  pods: how far they are, which go first, how they are made
ownership, dependents, expectations     who controls what; what was written and not yet seen
pod_control, status_writes, revisions   writes
replica_set, deployment, stateful_set,
daemon_set, job                         the kinds
"""

from typing import Final

from allot.controllers.workloads.daemon_set import DaemonSetController
from allot.controllers.workloads.deployment import DeploymentController
from allot.controllers.workloads.job import JobController
from allot.controllers.workloads.replica_set import ReplicaSetController
from allot.controllers.workloads.stateful_set import StatefulSetController

WORKLOAD_CONTROLLERS: Final = (
    ReplicaSetController,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    JobController,
)
