"""Discovery: the served versions of a resource, and all kinds that a server serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from allot.api.kinds import find_kind
from allot.client.client import Client
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.metadata import MetadataObject, metadata_resource
from allot.client.resources import Resource
from allot.client.transport import JSON

T = TypeVar("T")


async def served(client: Client, resource: Resource[T]) -> Resource[T] | None:
    """The resource in the best version that the server serves; None if no known version is served."""
    for version in readable_versions(resource):
        if await _is_served(client, resource, version):
            return resource if version == resource.version else resource.in_version(version)
    return None


def readable_versions(resource: Resource[T]) -> Iterable[str]:
    """The known versions of a resource, the best first."""
    kind = find_kind(resource.group, resource.kind)
    known = kind.versions if kind is not None and kind.is_typed else ()
    return dict.fromkeys((resource.version, *known))


async def _is_served(client: Client, resource: Resource[T], version: str) -> bool:
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    try:
        response = await client.request("GET", root, may_repeat=True)
    except ApiStatusError as error:
        if error.is_not_found:
            return False
        raise
    found = msgspec.json.decode(response.body, type=_ResourceList)
    return any(entry.name == resource.plural for entry in found.resources or ())


# --- all kinds ---


class ServedKind(NamedTuple):
    """A kind in one version, and its verbs."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    is_preferred: bool = True
    """Whether this is the server's preferred version."""

    @property
    def resource(self) -> Resource[MetadataObject]:
        return metadata_resource(
            self.group, self.version, self.plural, self.kind, namespaced=self.namespaced
        )

    @property
    def group_resource(self) -> str:
        """The name in messages: `pods`, `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)

    def __str__(self) -> str:
        return f"{self.group_resource} ({self.version})"


class Discovery(NamedTuple):
    """Every kind in every version, and the group versions that are unavailable."""

    kinds: tuple[ServedKind, ...]
    unavailable: frozenset[str] = frozenset()
    """Written as in `apiVersion`. Their kinds should be assumed to exist still."""


async def discover(client: Client) -> Discovery:
    """All served kinds. Raises `ClientError`."""
    kinds: list[ServedKind] = []
    unavailable: set[str] = set()
    for path in ("/api", "/apis"):
        response = await client.request("GET", path, may_repeat=True, headers=_AGGREGATED)
        try:
            found = msgspec.json.decode(response.body, type=_GroupList)
        except msgspec.DecodeError as error:
            raise UnreadableAnswerError(f"{path}: not a discovery document: {error}") from None
        for group in found.items:
            kinds += _kinds_of(group)
            unavailable |= {
                group.api_version(version.version)
                for version in group.versions
                if version.freshness == "Stale"
            }
    return Discovery(tuple(kinds), frozenset(unavailable))


def _kinds_of(group: _Group) -> Iterator[ServedKind]:
    known: set[str] = set()
    for version in group.versions:  # the preferred version first
        for found in version.resources or ():
            kind = found.response_kind
            if kind is None:
                continue
            yield ServedKind(
                kind.group or group.name,
                kind.version or version.version,
                found.resource,
                kind.kind,
                found.scope == "Namespaced",
                frozenset(found.verbs or ()),
                found.resource not in known,
            )
        known |= {found.resource for found in version.resources or ()}


_AGGREGATED: Final = {
    "Accept": f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    f"{JSON};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
}


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str = ""
    response_kind: _Kind | None = None
    verbs: list[str] | None = None


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource] | None = None
    freshness: str = ""


class _GroupMeta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _GroupMeta = msgspec.field(default_factory=_GroupMeta)
    versions: list[_Version] = msgspec.field(default_factory=list)

    @property
    def name(self) -> str:
        return self.metadata.name

    def api_version(self, version: str) -> str:
        return f"{self.name}/{version}" if self.name else version


class _GroupList(msgspec.Struct):
    items: list[_Group] = msgspec.field(default_factory=list)


class _Entry(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Entry] | None = None
