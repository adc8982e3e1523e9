"""The DaemonSet controller: one pod on every eligible node.

controller   the control loop
nodes        on which nodes a pod should run, or may stay
pods         pods with node affinity and the default tolerations
decision     which pods to create and delete, node by node, also during updates
"""

from allot.controllers.workloads.daemon_set.controller import DaemonSetController

__all__ = ["DaemonSetController"]
