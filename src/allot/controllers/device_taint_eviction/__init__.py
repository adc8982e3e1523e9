"""Evicts pods from devices with a NoExecute taint, and writes the progress to the status of rules (KEP-5055).

    slices, rules ──► claims on their devices ──► pods that use them ──► queue (by pod) ──► wait, evict
         │                                                                                   │
         └───────────────► queue (by rule) ◄── a while later ◄───────────────────────────────┘
                                 └──► condition EvictionInProgress

`evictions` decides which pods are evicted and when, `rule_status` what a rule's condition says, `affected` finds the pods.
"""

from allot.controllers.device_taint_eviction.controller import DeviceTaintEvictionController

__all__ = ["DeviceTaintEvictionController"]
