"""Daemon sets: a pod on every node that is meant.

controller   the loop
nodes        on which nodes a pod should run, or may stay
pods         pods that are pinned to their node and tolerate its troubles
decision     which pods to make and to delete, node by node, also during updates
"""

from allot.controllers.workloads.daemon_set.controller import DaemonSetController

__all__ = ["DaemonSetController"]
