"""Events in both of their groups: core/v1, as they are stored, and events.k8s.io/v1.

They differ in the names of some fields only, so that nothing is lost on the way and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CORE: Final = "v1"
EVENTS: Final = "events.k8s.io/v1"

_PAIRS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_SHOWN_IF_KNOWN: Final = ("reportingController", "reportingInstance")
# Names are swapped, so that even a field that one of the versions does not know finds its way back.
_OTHER_NAME: Final = _PAIRS | {new: old for old, new in _PAIRS.items()}


def from_core(event: Mapping[str, Any]) -> dict[str, Any]:
    """A core/v1 Event as an events.k8s.io/v1 Event, which does not show who has reported it if that is unknown."""
    renamed = _renamed(event, EVENTS)
    if "" in map(renamed.get, _SHOWN_IF_KNOWN):
        for field in _SHOWN_IF_KNOWN:
            if renamed.get(field) == "":
                del renamed[field]
    return renamed


def to_core(event: Mapping[str, Any]) -> dict[str, Any]:
    """An events.k8s.io/v1 Event as a core/v1 Event."""
    return _renamed(event, CORE)


def _renamed(event: Mapping[str, Any], version: str) -> dict[str, Any]:
    renamed = dict(zip(map(_OTHER_NAME.get, event, event), event.values(), strict=True))
    if "apiVersion" in renamed:
        renamed["apiVersion"] = version
    return renamed
