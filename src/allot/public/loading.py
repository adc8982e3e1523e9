"""Objects of a cluster at one moment, from manifests. `cluster_reading` lists them from an API server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from allot.api.base import ApiObject, replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.raw import RawObject
from allot.api.scheme import UnknownKindError, decode_object, is_typed_group
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.client.wall_clock import utc_now
from allot.lint.manifests import Manifest
from allot.public.errors import ManifestError

DEFAULT_NAMESPACE: Final = "default"


def objects_in(manifests: Iterable[Manifest], resources: Iterable[Resource[Any]]) -> Snapshot:
    """The objects of these kinds; others are skipped. `ManifestError` if one cannot be decoded.

    If an object occurs twice, the last one is used. A missing name, namespace or uid is filled in, because every
    object in a cluster has them.
    """
    snapshot = Snapshot()
    now = utc_now()
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
        if is_typed_group(gvk.group):
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
