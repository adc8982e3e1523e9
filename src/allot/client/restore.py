"""Restores objects of another cluster, such as `kubectl get -o yaml` prints them, with their status.

A server gives every object a uid of its own, and clients set the status after an object exists. Owners are therefore
created first, references are changed to the new uids, and status is written when all objects exist. Components must
not run meanwhile: a controller that sees a workload without its pods creates new ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allot.api.raw import RawObject, object_key
from allot.api.volumes import PV_PROTECTION, PVC_PROTECTION
from allot.client.apply import DEFAULT_NAMESPACE, Document, RefusedError, resource_of
from allot.client.client import Client
from allot.client.discovery import discover
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource

AT_ONCE: Final = 16
METHOD_NOT_ALLOWED: Final = 405
_SERVER_FIELDS: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)
"""Fields of the metadata that only a server sets."""
_FIRST: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass", "DeviceClass", "Node")
_LAST: Final = ("ResourceQuota", "LimitRange", "ValidatingAdmissionPolicy")
"""Restored last: they refuse or change other objects."""
_LAST_SUFFIXES: Final = ("PolicyBinding", "WebhookConfiguration")
_TRANSIENT: Final = frozenset({"Event", "Lease", "Endpoints", "EndpointSlice"})
"""Not restored: components write them anew."""
_OWN_STATUS: Final = frozenset({"Namespace", "CustomResourceDefinition", "ResourceQuota"})
"""Kinds whose status the server sets itself."""
_KNOWN_FINALIZERS: Final = frozenset(
    {
        "batch.kubernetes.io/job-tracking",
        PV_PROTECTION,
        PVC_PROTECTION,
        "resource.kubernetes.io/delete-protection",
    }
)
"""Finalizers that allot's controllers remove. With any other an object could never be deleted."""


class Restored(NamedTuple):
    """What became of the documents."""

    created: int
    existing: int
    """Objects that the cluster had before; they stay as they are."""
    unknown: tuple[str, ...] = ()
    """Kinds that the server does not serve, with their apiVersion."""


def is_dumped(document: Document) -> bool:
    """Whether a server wrote the document: manifests that people write have no uid."""
    metadata = document.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


async def restore(client: Client, documents: Iterable[Document]) -> Restored:
    """Create the objects with their status. `RefusedError` for the first that the server refuses.

    Kinds that the server does not serve are left out. Objects that exist stay as they are.
    """
    served = {
        (kind.api_version, kind.kind): resource_of(kind) for kind in (await discover(client)).kinds
    }
    found: list[_Restoring] = []
    unknown: dict[str, None] = {}
    for document in documents:
        type_ = (str(document.get("apiVersion")), str(document.get("kind")))
        if type_[1] in _TRANSIENT:
            continue
        if type_ in served:
            found.append(_Restoring(document, served[type_]))
        else:
            unknown[f"{type_[1]} ({type_[0]})"] = None
    uids: dict[str, str] = {}
    for group in _in_order(found):
        await _each(_create(client, each, uids) for each in group)
    created = [each for each in found if not each.existed]
    await _each(_write_status(client, each, uids) for each in created)
    return Restored(len(created), len(found) - len(created), tuple(unknown))


class _Restoring:
    """An object on its way."""

    def __init__(self, document: Document, resource: Resource[RawObject]) -> None:
        self.document = document
        self.resource = resource
        self.existed = False
        metadata = document.get("metadata") or {}
        self.uid = str(metadata.get("uid") or "")
        body = {name: value for name, value in document.items() if name != "status"}
        body["metadata"] = {
            name: value for name, value in metadata.items() if name not in _SERVER_FIELDS
        }
        if resource.namespaced:
            body["metadata"].setdefault("namespace", DEFAULT_NAMESPACE)
        self.body = body
        self.references = frozenset(_uids_in(body))


async def _each(work: Iterable[Any]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(task: Any) -> None:
        async with limit:
            await task

    for error in await asyncio.gather(*map(one, work), return_exceptions=True):
        if error is not None:
            raise error


# --- order and references ---


def _in_order(found: Sequence[_Restoring]) -> Iterator[list[_Restoring]]:
    """Groups of objects: each refers only to objects of earlier groups."""
    yield from ([each for each in found if each.resource.kind == kind] for kind in _FIRST)
    last = [each for each in found if _is_last(each.resource.kind)]
    rest = [
        each
        for each in found
        if each.resource.kind not in _FIRST and not _is_last(each.resource.kind)
    ]
    while rest:
        waiting = {each.uid for each in rest if each.uid}
        ready = [each for each in rest if not (each.references & waiting) - {each.uid}]
        ready = ready or rest  # objects that refer to each other
        yield ready
        chosen = set(map(id, ready))
        rest = [each for each in rest if id(each) not in chosen]
    yield last


def _is_last(kind: str) -> bool:
    return kind in _LAST or kind.endswith(_LAST_SUFFIXES)


def _uids_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "uid" and isinstance(inner, str):
                yield inner
            else:
                yield from _uids_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _uids_in(inner)


def _with_uids(value: Any, uids: Mapping[str, str]) -> Any:
    """The value with the new uids of objects that were restored."""
    if isinstance(value, Mapping):
        return {
            name: uids.get(inner, inner)
            if name == "uid" and isinstance(inner, str)
            else _with_uids(inner, uids)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_with_uids(inner, uids) for inner in value]
    return value


# --- writes ---


async def _create(client: Client, each: _Restoring, uids: dict[str, str]) -> None:
    body = _startable(_with_uids(each.body, uids))
    metadata = body["metadata"]
    owners = [
        owner
        for owner, before in zip(
            metadata.pop("ownerReferences", None) or (),
            each.body["metadata"].get("ownerReferences") or (),
            strict=True,
        )
        if before.get("uid") in uids
    ]
    if owners:  # the garbage collector deletes objects whose owners do not exist
        metadata["ownerReferences"] = owners
    kept = [name for name in metadata.pop("finalizers", None) or () if name in _KNOWN_FINALIZERS]
    if kept:
        metadata["finalizers"] = kept
    try:
        stored = await client.create(each.resource, RawObject(body))
    except ApiStatusError as error:
        if not error.is_already_exists:
            raise RefusedError(each.document, error) from error
        each.existed = True
        stored = await client.get(each.resource, object_key(body))
        await _add_labels(client, each, stored)
    if each.uid:
        uids[each.uid] = stored.metadata.uid


def _startable(body: dict[str, Any]) -> dict[str, Any]:
    """The object such that its controller keeps the pods that are restored with it."""
    kind, spec = body.get("kind"), body.get("spec")
    if not isinstance(spec, Mapping):
        return body
    if kind in ("StatefulSet", "DaemonSet"):
        # Without the ControllerRevisions every pod looks outdated.
        return {**body, "spec": {**spec, "updateStrategy": {"type": "OnDelete"}}}
    if kind == "Job" and spec.get("selector"):
        return {**body, "spec": {**spec, "manualSelector": True}}
    return body


async def _add_labels(client: Client, each: _Restoring, stored: RawObject) -> None:
    """Namespaces such as default exist in every cluster; pods are selected by their labels."""
    labels = each.body["metadata"].get("labels") or {}
    missing = {name: value for name, value in labels.items() if name not in stored.metadata.labels}
    if each.resource.kind == "Namespace" and missing:
        await client.patch(each.resource, stored.key, {"metadata": {"labels": missing}})


async def _write_status(client: Client, each: _Restoring, uids: Mapping[str, str]) -> None:
    status = each.document.get("status")
    if not isinstance(status, Mapping) or not status or each.resource.kind in _OWN_STATUS:
        return
    patch = {"status": _with_uids(status, uids)}
    try:
        await client.patch(each.resource, object_key(each.body), patch, subresource="status")
    except ApiStatusError as error:
        if not (error.is_not_found or error.code == METHOD_NOT_ALLOWED):
            raise RefusedError(each.document, error) from error
