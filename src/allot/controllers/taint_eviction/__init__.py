"""Evicts pods from nodes that got a NoExecute taint they do not tolerate, or no longer.

    node's taints, pod's tolerations ──► queue (by pod) ──► wait until the first toleration ends ──► delete

`tolerating` decides how long a pod may stay.
"""

from allot.controllers.taint_eviction.controller import TaintEvictionController

__all__ = ["TaintEvictionController"]
