"""The disruption controller: how many pods of a PodDisruptionBudget may be evicted now.

`decisions` counts, `expected_pods` finds out how many pods there should be, `controller` watches and writes. Evictions
(`allot.apiserver.kinds.eviction`) spend what the status allows.
"""

from allot.controllers.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]
