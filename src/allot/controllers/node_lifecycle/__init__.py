"""Notices nodes that do not answer, and keeps the taints of all nodes in step with their conditions.

    leases, heartbeats ──► seen ──► nothing for too long ──► conditions become Unknown, pods not ready
    conditions, spec.unschedulable ──► taints NoSchedule
    condition Ready ──► taint NoExecute, a few nodes at a time (`taint_eviction` does the rest)

`health` decides on conditions, `taints` on taints, `zones` how many nodes may be given up at once.
"""

from allot.controllers.node_lifecycle.controller import (
    NodeLifecycleController,
    NodeLifecycleSettings,
)

__all__ = ["NodeLifecycleController", "NodeLifecycleSettings"]
