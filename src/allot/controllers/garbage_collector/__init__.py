"""The garbage collector: deletes objects whose owners are gone.

graph.py        the graph of owners and dependents, updated by watch events
decisions.py    what to do with one object, from the current state of its owners and dependents
owners.py       whether an owner exists
controller.py   the control loop: reads, decides, writes
"""

from __future__ import annotations

from allot.controllers.garbage_collector.controller import GarbageCollector

__all__ = ["GarbageCollector"]
