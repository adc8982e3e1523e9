"""Evicts pods from nodes with a NoExecute taint that they do not tolerate, or no longer tolerate.

    node's taints, pod's tolerations ──► queue (by pod) ──► wait until the first toleration ends ──► delete

`decisions` decides how long a pod may stay.
"""

from allot.controllers.taint_eviction.controller import TaintEvictionController

__all__ = ["TaintEvictionController"]
