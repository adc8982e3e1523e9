"""The names of a pod's claims, as the controller that makes claims applies them: the apply of every pod with claims.

Such a configuration says nothing else, and is the first word about claims in the status of a new pod. Then the outcome
is known without merging documents. All others are applied as `server_side_apply` does.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.plain_json import PlainStruct, read_plain
from allot.api.times import written_time
from allot.apiserver.http.field_managers import field_manager_of
from allot.apiserver.http.field_tracking import Managers
from allot.apiserver.http.routes import Target
from allot.apiserver.managed_fields.field_manager import FieldManager
from allot.apiserver.managed_fields.field_sets import FieldSet

MAX_PLAIN: Final = 1024
"""Bytes. Longer ones are of pods with many claims."""
_TAIL: Final = b'}]},"apiVersion":"v1","kind":"Pod"}'
_FIELD: Final = "resourceClaimStatuses"
_NEW_STATUS: Final = frozenset(("phase", "qosClass"))
"""What the status of a new pod has: texts, which no default depends on."""


class _Metadata(PlainStruct, frozen=True):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _ClaimStatus(PlainStruct, frozen=True):
    name: str
    resource_claim_name: str


class _Status(PlainStruct, frozen=True):
    resource_claim_statuses: tuple[_ClaimStatus, ...]


class ClaimNames(PlainStruct, frozen=True):
    """What is applied."""

    metadata: _Metadata
    status: _Status
    api_version: str
    kind: str


_decoder: Final = msgspec.json.Decoder(ClaimNames)


def read_claim_names(body: bytes) -> ClaimNames | None:
    """The names of claims in `body`; None if it says anything else, or is written otherwise."""
    if len(body) > MAX_PLAIN or not body.endswith(_TAIL):
        return None
    return read_plain(body, _decoder)


def with_claim_names(
    pod: Any,
    sent: ClaimNames,
    document: dict[str, Any],
    manager: str,
    target: Target,
    now: datetime,
) -> tuple[Pod, Managers] | None:
    """The pod with the names that were sent, also as `document`, and its managedFields; None unless the status is new."""
    part, metadata = target.subresource, pod.metadata
    if part is None or part.name != "status" or pod.__class__ is not Pod:
        return None
    rest, named = pod.rest, sent.metadata
    status = rest.get("status")
    if (
        not status
        or not status.keys() <= _NEW_STATUS
        or not all(status.values())
        or (rest.get("spec") or {}).get("containers") is None
        or (named.uid or metadata.uid) != metadata.uid
        or (named.name or metadata.name) != metadata.name
        or (named.namespace or metadata.namespace) != metadata.namespace
    ):
        return None
    field_manager = field_manager_of(target)
    names = tuple([each.name for each in sent.status.resource_claim_statuses])
    fields = _fields_of(field_manager, names)
    if fields is None:
        return None
    entries = field_manager.with_applier(
        metadata.managed_fields, fields, manager, written_time(now)
    )
    if entries is None:
        return None
    named_claims = {**status, _FIELD: document["status"][_FIELD]}
    # The entries replace those that there are.
    bare = replace(metadata, managed_fields=())
    return pod.with_parts({"status": named_claims}, bare), tuple(entries)


@lru_cache(256)
def _fields_of(manager: FieldManager, names: tuple[str, ...]) -> FieldSet | None:
    """The fields of the claims with these names in the pod's spec; None if names are missing or there twice."""
    if not all(names):
        return None
    claims = [{"name": name, "resourceClaimName": "claim"} for name in names]
    return manager.fields_of({"status": {_FIELD: claims}})
