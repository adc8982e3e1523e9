"""Detects nodes without heartbeats, and keeps the taints of all nodes in sync with their conditions.

    leases, node status ──► no heartbeat within the grace period ──► conditions Unknown, pods not ready
    conditions, spec.unschedulable ──► taints NoSchedule
    condition Ready ──► taint NoExecute, rate limited (`taint_eviction` evicts the pods)

`health` decides on conditions, `taints` on taints, `zones` on the rate of evictions.
"""

from allot.controllers.node_lifecycle.controller import (
    NodeLifecycleController,
    NodeLifecycleSettings,
)

__all__ = ["NodeLifecycleController", "NodeLifecycleSettings"]
