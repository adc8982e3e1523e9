"""The StatefulSet controller: pods with a stable ordinal, name and storage.

controller      the control loop
identity        names, labels and volume claims by ordinal
decision        which pods to create and delete, ordered or parallel, also during updates
volume_claims   the persistent volume claims of pods, and their retention
"""

from allot.controllers.workloads.stateful_set.controller import StatefulSetController

__all__ = ["StatefulSetController"]
