"""Lists of claims and pods, page by page. Of many objects only those of the page are described."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from allot.api.core import Pod
from allot.client import resources
from allot.client.cooperative import with_pauses
from allot.client.snapshot import Snapshot
from allot.dashboard.object_details import Json, claim_row, pod_row
from allot.questions.object_states import claim_state

PAGE_SIZE: Final = 100
OBJECTS_AT_ONCE: Final = 500
"""Objects that are looked at before other tasks get a turn."""
MAX_FOUND: Final = 2_000
"""More objects than these and those of the page are dropped from time to time: the oldest."""


async def list_objects(objects: Snapshot, kind: str, search: str, state: str, page: int) -> Json:
    """A page of claims, or of pods that have claims or no node, the newest first."""
    is_claims = kind == "claims"
    resource: Any = resources.RESOURCE_CLAIMS if is_claims else resources.PODS
    states: Counter[str] = Counter()
    total, last = 0, (page + 1) * PAGE_SIZE
    found: list[tuple[float, str, Any]] = []
    async for obj in with_pauses(objects.of(resource), OBJECTS_AT_ONCE):
        if not is_claims and not _is_listed(obj):
            continue
        name, its_state = str(obj.key), claim_state(obj) if is_claims else obj.phase or "Pending"
        states[its_state] += 1
        if search not in name.lower() or (state and its_state != state):
            continue
        total += 1
        created = obj.metadata.creation_timestamp
        found.append((-created.timestamp() if created is not None else 0.0, name, obj))
        if len(found) > last + MAX_FOUND:
            found = sorted(found)[:last]
    row = claim_row if is_claims else pod_row
    shown = [row(obj) for _, _, obj in sorted(found)[page * PAGE_SIZE : last]]
    return {"rows": shown, "total": total, "states": dict(states), "pageSize": PAGE_SIZE}


def _is_listed(pod: Pod) -> bool:
    return bool(pod.get("spec", "resourceClaims")) or not pod.node_name
