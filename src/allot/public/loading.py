"""Objects of a cluster at one moment: from manifests, or listed from an API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.api.base import ApiObject, replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.raw import RawObject
from allot.api.resource import GROUP
from allot.api.scheme import UnknownKindError, decode_object
from allot.client.client import Client
from allot.client.history import resource_version_at
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.retries import RetryPolicy
from allot.client.server_gates import read_server_gates
from allot.client.snapshot import Snapshot, server_version, take_snapshot
from allot.lint.manifests import Manifest
from allot.public.errors import ClusterError, ManifestError

DEFAULT_NAMESPACE: Final = "default"
MAX_ATTEMPTS: Final = 3
"""A user waits for the answer: an unreachable server is reported soon."""


# --- a cluster ---


class Reading(NamedTuple):
    """What to read from a cluster."""

    resources: Sequence[Resource[Any]]
    namespace: str = ""
    """The namespace to list if the user may not list all namespaces."""
    scopes: Mapping[Resource[Any], Scope] = {}
    """Resources of which only a part is read."""
    gate_pages: Sequence[str] = ()
    """Feature gates are read from the first of these endpoints that has them."""
    at: datetime | None = None
    """The time to read the objects of; None for now."""


async def read_cluster(
    kubeconfig: str | Path | None, context: str | None, user_agent: str, what: Reading
) -> Snapshot:
    """The objects of a cluster; `ClusterError` if it cannot be read."""
    from allot.client.connection import connect  # loads an HTTP client, which files do not need
    from allot.client.errors import ClientError

    client: Client | None = None
    try:
        client = connect(kubeconfig, context, user_agent=user_agent)
        return await read_objects(client, what)
    except ClientError as error:
        raise ClusterError(str(error)) from error
    finally:
        if client is not None:
            await client.close()


async def read_objects(client: Client, what: Reading) -> Snapshot:
    """The objects that a client can list, the server's version, and its feature gates if asked for."""
    brief = Client(client.transport, retry=RetryPolicy(max_attempts=MAX_ATTEMPTS))
    then = await resource_version_at(brief, what.at) if what.at is not None else ""
    snapshot = await take_snapshot(brief, what.resources, what.namespace, what.scopes, then)
    snapshot.time = what.at
    snapshot.server_version = await server_version(brief)
    if what.gate_pages:
        snapshot.gates = await read_server_gates(brief, what.gate_pages)
    return snapshot


# --- manifests ---


def objects_in(manifests: Iterable[Manifest], resources: Iterable[Resource[Any]]) -> Snapshot:
    """The objects of these kinds; others are skipped. `ManifestError` if one cannot be decoded.

    If an object occurs twice, the last one is used. A missing name, namespace or uid is filled in, because every
    object in a cluster has them.
    """
    snapshot = Snapshot()
    now = datetime.now(UTC)
    by_kind = {(resource.group, resource.kind): resource for resource in resources}
    for number, manifest in enumerate(manifests):
        group_version = GroupVersion.parse(manifest.api_version)
        resource = by_kind.get((group_version.group, manifest.kind))
        if resource is None:
            continue
        gvk = GroupVersionKind(*group_version, manifest.kind)
        snapshot.put(resource, completed(_decoded(manifest, gvk, resource, now), resource, number))
    return snapshot


def _decoded(
    manifest: Manifest, gvk: GroupVersionKind, resource: Resource[Any], now: datetime
) -> Any:
    try:
        if gvk.group == GROUP:
            return decode_object(manifest.body, gvk, now)
        return resource.codec.decode(manifest.body)
    except (DecodeError, UnknownKindError) as error:
        what = f"{manifest.kind}/{manifest.name}: {error}"
        raise ManifestError(manifest.source, what, manifest.place.line) from None


def completed(obj: Any, resource: Resource[Any], number: int = 0) -> Any:
    """The object with a name, a namespace and a uid."""
    metadata = obj.metadata
    missing = {}
    if not metadata.name:
        missing["name"] = f"{metadata.generate_name}#{number}"
    if resource.namespaced and not metadata.namespace:
        missing["namespace"] = DEFAULT_NAMESPACE
    if not metadata.uid:
        where = missing.get("namespace", metadata.namespace)
        missing["uid"] = f"{resource.kind}/{where}/{missing.get('name', metadata.name)}"
    if not missing:
        return obj
    if isinstance(obj, RawObject):
        return obj.with_metadata(replace(metadata, **missing))
    assert isinstance(obj, ApiObject)
    return replace(obj, metadata=replace(metadata, **missing))
