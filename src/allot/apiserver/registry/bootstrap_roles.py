"""Writes the bootstrap roles and bindings that a store lacks, in as few transactions as etcd allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.apiserver.auth.rbac.bootstrap import (
    GROUP,
    BootstrapRole,
    bootstrap_roles,
    reconciled_binding,
    reconciled_role,
)
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.features import FeatureGates
from allot.storage.interface import MISSING, Put, RevisionConflictError, Store

MAX_OPERATIONS: Final = 120
"""In one transaction: etcd accepts 128."""
MAX_TRIES: Final = 10
PLURALS: Final = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


async def ensure_bootstrap_roles(
    store: Store, caches: Caches, gates: FeatureGates, clock: Callable[[], datetime]
) -> None:
    """Create what is missing and add what others lack; their own additions stay."""
    for _ in range(MAX_TRIES):
        for plural in PLURALS.values():
            await caches.of(resource_named(GROUP, plural)).refresh()
        puts = list(_missing(caches, gates, clock()))
        if not puts:
            return
        try:
            for start in range(0, len(puts), MAX_OPERATIONS):
                await store.write(*puts[start : start + MAX_OPERATIONS])
        except RevisionConflictError:
            continue  # another API server does the same
        return


def _missing(caches: Caches, gates: FeatureGates, now: datetime) -> Iterator[Put]:
    for each in _known(gates):
        for wanted, reconciled in (
            (each.role, reconciled_role),
            (each.binding, reconciled_binding),
        ):
            if wanted is not None:
                put = _put(caches, wanted, reconciled, now)
                if put is not None:
                    yield put


def _known(gates: FeatureGates) -> Iterator[BootstrapRole]:
    return (each for each in bootstrap_roles() if not each.gate or each.gate in gates)


def _put(
    caches: Caches,
    wanted: dict[str, Any],
    reconciled: Callable[[Any, Any], dict[str, Any] | None],
    now: datetime,
) -> Put | None:
    resource = resource_named(GROUP, PLURALS[wanted["kind"]])
    codec = codec_for(resource)
    metadata = wanted["metadata"]
    key = caches.key(resource, metadata.get("namespace", ""), metadata["name"])
    stored = caches.of(resource).get(key)
    if stored is None:
        new = RawObject(wanted)
        stamped = replace(new.metadata, uid=new_uid(), creation_timestamp=now)
        return Put(key, codec.encode(new.with_metadata(stamped), codec.storage_version), MISSING)
    document = reconciled(stored.object.data, wanted)
    if document is None:
        return None
    changed = RawObject(document)
    kept = replace(
        changed.metadata,
        uid=stored.object.metadata.uid,
        creation_timestamp=stored.object.metadata.creation_timestamp,
    )
    body = codec.encode(changed.with_metadata(kept), codec.storage_version)
    return Put(key, body, stored.revision)
