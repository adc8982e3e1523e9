"""The ReplicationController controller: what replica sets do, for their predecessors."""

from __future__ import annotations

from allot.client.resources import REPLICATION_CONTROLLERS
from allot.controllers.workloads.replica_set import ReplicaSetController


class ReplicationControllerController(ReplicaSetController):
    """Keeps the number of pods of replication controllers."""

    name = "replicationcontroller-controller"
    event_source = "replication-controller"
    resource = REPLICATION_CONTROLLERS
    counts_terminating = False
