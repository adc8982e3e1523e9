"""Objects go with their owners.

graph.py        who depends on whom, kept up to date event by event; says what to look at next
decisions.py    what becomes of one object, from its owners and dependents as they are now
owners.py       whether an owner exists
controller.py   reads, decides, writes
"""

from __future__ import annotations

from allot.controllers.garbage_collector.controller import GarbageCollector

__all__ = ["GarbageCollector"]
