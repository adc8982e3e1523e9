"""Applies manifests: creates missing objects, and patches existing ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject, object_key
from allot.client.client import Client
from allot.client.discovery import ServedKind, discover
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource, raw_resource

DEFAULT_NAMESPACE: Final = "default"
_FIRST: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "DeviceClass",
    "PriorityClass",
    "ServiceAccount",
)
"""Applied first: other objects depend on them."""
ESTABLISH_SECONDS: Final = 30.0
"""How long a definition may take until its objects can be applied."""

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
    kubectl. Objects of kinds that CustomResourceDefinitions among the documents define wait until these are served.
    """
    ordered = sorted(documents, key=lambda document: document.get("kind") not in _FIRST)
    served = await _served_kinds(client)
    defined = {
        (kind.api_version, kind.kind): kind for document in ordered for kind in _defined(document)
    }
    kinds = defined | served
    found = []
    for document in ordered:
        kind = kinds.get(_type_of(document))
        if kind is None:
            raise UnknownKindError(document)
        found.append((kind, document))
    applied = []
    for kind, document in found:
        if _type_of(document) not in served and kind in defined.values():
            served = await _wait_served(client, document)
        applied.append(
            await _apply_one(client, resource_of(kind), document, namespace, strict=strict)
        )
    return applied


async def _served_kinds(client: Client) -> dict[tuple[str, str], ServedKind]:
    return {(kind.api_version, kind.kind): kind for kind in (await discover(client)).kinds}


def _type_of(document: Document) -> tuple[str, str]:
    return str(document.get("apiVersion")), str(document.get("kind"))


def _defined(document: Document) -> Iterator[ServedKind]:
    """The kinds that a definition defines; none if the document is something else."""
    if document.get("kind") != "CustomResourceDefinition":
        return
    spec = document.get("spec") or {}
    names = spec.get("names") or {}
    for version in spec.get("versions") or ():
        yield ServedKind(
            str(spec.get("group")),
            str(version.get("name")),
            str(names.get("plural")),
            str(names.get("kind")),
            spec.get("scope") == "Namespaced",
            frozenset(),
        )


async def _wait_served(client: Client, document: Document) -> dict[tuple[str, str], ServedKind]:
    """What is served, when the kind of a document is; `UnknownKindError` if it does not come to that."""
    deadline = client.clock.now() + ESTABLISH_SECONDS
    while True:
        served = await _served_kinds(client)
        if _type_of(document) in served:
            return served
        if client.clock.now() > deadline:
            raise UnknownKindError(document)
        await client.clock.sleep(0.05)


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
