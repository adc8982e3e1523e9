"""Deletes pods that no kubelet will: of missing or out-of-service nodes, unscheduled, or finished beyond a threshold.

`decisions` decides, the controller verifies that nodes are gone.
"""

from allot.controllers.pod_garbage_collection.controller import (
    PodGarbageCollector,
    PodGarbageCollectorSettings,
)

__all__ = ["PodGarbageCollector", "PodGarbageCollectorSettings"]
