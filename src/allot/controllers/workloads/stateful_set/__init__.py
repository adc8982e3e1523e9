"""Stateful sets: pods with a number, a name and storage that stay theirs.

controller      the loop
identity        names, labels and claims of the pod with a number
decision        which pods to make and to delete, in order or at once, also during updates
volume_claims   the claims of pods, and what becomes of them
"""

from allot.controllers.workloads.stateful_set.controller import StatefulSetController

__all__ = ["StatefulSetController"]
