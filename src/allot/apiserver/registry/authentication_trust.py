"""Tells other servers of the cluster whose client certificates to trust.

kube-scheduler, kube-controller-manager and extension API servers read a ConfigMap in kube-system for that, as Kubernetes'
cluster authentication trust controller writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import MISSING, Put, RevisionConflictError, Store

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
CLIENT_CA: Final = "client-ca-file"
MAX_TRIES: Final = 10


async def publish_client_ca(
    store: Store, caches: Caches, certificates: str, clock: Callable[[], datetime]
) -> None:
    """Write the certificates (PEM) into the ConfigMap. Other entries of it are kept."""
    resource = resource_named("", "configmaps")
    codec, cache = codec_for(resource), caches.of(resource)
    key = caches.key(resource, NAMESPACE, NAME)
    for _ in range(MAX_TRIES):
        await cache.refresh()
        stored = cache.get(key)
        if stored is None:
            document = {"metadata": {"name": NAME, "namespace": NAMESPACE}}
            fresh = RawObject({"kind": "ConfigMap", "apiVersion": "v1", **document})
            stamped = replace(fresh.metadata, uid=new_uid(), creation_timestamp=clock())
            found, revision = fresh.with_metadata(stamped), MISSING
        else:
            found, revision = stored.object, stored.revision
        data = found.get("data") or {}
        if data.get(CLIENT_CA) == certificates:
            return
        wanted = found.with_value({**data, CLIENT_CA: certificates}, "data")
        try:
            await store.write(Put(key, codec.encode(wanted, codec.storage_version), revision))
        except RevisionConflictError:
            continue  # another API server does the same
        return
