"""Applies manifests: creates missing objects, and patches existing ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from allot.api.raw import RawObject, object_key
from allot.client.client import Client
from allot.client.discovery import ServedKind, discover
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource, raw_resource

DEFAULT_NAMESPACE: Final = "default"
_FIRST: Final = ("Namespace", "DeviceClass", "PriorityClass", "ServiceAccount")
"""Applied first: other objects depend on them."""

Document = Mapping[str, Any]


class UnknownKindError(Exception):
    """The server does not serve the kind."""

    def __init__(self, document: Document) -> None:
        self.document = document
        kind, version = document.get("kind"), document.get("apiVersion")
        super().__init__(f"the server has no kind {kind} in {version}")


class RefusedError(Exception):
    """The server rejects one of the documents."""

    def __init__(self, document: Document, error: ApiStatusError) -> None:
        self.document = document
        super().__init__(str(error))


async def apply(
    client: Client,
    documents: Iterable[Document],
    namespace: str = DEFAULT_NAMESPACE,
    *,
    strict: bool = False,
) -> list[RawObject]:
    """The resulting objects; `namespace` is the default of namespaced objects.

    Nothing is written if one of them is of an unknown kind. If `strict`, the server refuses unknown fields, as for
    kubectl.
    """
    ordered = sorted(documents, key=lambda document: document.get("kind") not in _FIRST)
    kinds = {(kind.api_version, kind.kind): kind for kind in (await discover(client)).kinds}
    found = []
    for document in ordered:
        kind = kinds.get((str(document.get("apiVersion")), str(document.get("kind"))))
        if kind is None:
            raise UnknownKindError(document)
        found.append((kind, document))
    return [
        await _apply_one(client, resource_of(kind), document, namespace, strict=strict)
        for kind, document in found
    ]


def resource_of(kind: ServedKind) -> Resource[RawObject]:
    """The resource with complete objects, not only their metadata."""
    return raw_resource(
        RawObject, kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced
    )


async def _apply_one(
    client: Client,
    resource: Resource[RawObject],
    document: Document,
    namespace: str,
    *,
    strict: bool,
) -> RawObject:
    metadata = dict(document.get("metadata") or {})
    if resource.namespaced:
        metadata.setdefault("namespace", namespace)
    whole = {**document, "metadata": metadata}
    try:
        try:
            return await client.create(resource, RawObject(whole), strict=strict)
        except ApiStatusError as error:
            if not error.is_already_exists or not metadata.get("name"):
                raise
        whole.pop("status", None)
        key = object_key(whole)
        return await client.patch(resource, key, whole, strict=strict)
    except ApiStatusError as error:
        raise RefusedError(document, error) from error
