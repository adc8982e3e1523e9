"""Deletes pods that nobody else will: nobody runs them, or nobody will ever look at them again.

`collecting` decides, the controller looks whether nodes are really gone.
"""

from allot.controllers.pod_garbage_collection.controller import (
    PodGarbageCollector,
    PodGarbageCollectorSettings,
)

__all__ = ["PodGarbageCollector", "PodGarbageCollectorSettings"]
