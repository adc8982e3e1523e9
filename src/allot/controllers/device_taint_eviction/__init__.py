"""Evicts pods from devices that got a NoExecute taint, and tells rules how far that has come (KEP-5055).

    slices, rules ──► claims on their devices ──► pods that use them ──► queue (by pod) ──► wait, evict
         │                                                                                   │
         └───────────────► queue (by rule) ◄── a while later ◄───────────────────────────────┘
                                 └──► condition EvictionInProgress

`evictions` decides who has to go and when, `rule_status` what a rule's condition says, `affected` finds who is concerned.
"""

from allot.controllers.device_taint_eviction.controller import DeviceTaintEvictionController

__all__ = ["DeviceTaintEvictionController"]
