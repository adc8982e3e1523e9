"""What the server tells about itself: groups, versions, resources, and its own version.

Clients ask for classic discovery document by document, newer ones for all of it at once (aggregated).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from allot._version import VERSION
from allot.api.identities import GroupVersion
from allot.apiserver.http.issuer_discovery import PATHS as ISSUER_PATHS
from allot.apiserver.kinds.definition import Subresource
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.served import ServedResources

KUBERNETES_MINOR: Final = "38"
BUILD_DATE: Final = "2026-11-15T00:00:00Z"


class DiscoveryDocument(NamedTuple):
    """A page of discovery and a tag that changes when it does."""

    body: bytes
    etag: str


def version_info() -> dict[str, Any]:
    """/version: a semantic version that clients can parse."""
    return {
        "major": "1",
        "minor": KUBERNETES_MINOR,
        "emulationMajor": "1",
        "emulationMinor": KUBERNETES_MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "37",
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0+allot.{VERSION}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": BUILD_DATE,
        "goVersion": "none",
        "compiler": "cpython",
        "platform": "any",
    }


# --- classic ---


def api_versions(served: ServedResources, address: str) -> dict[str, Any]:
    """/api"""
    return {
        "kind": "APIVersions",
        "versions": list(served.versions_of("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_groups(served: ServedResources) -> dict[str, Any]:
    """/apis"""
    groups = [_group(served, group) for group in served.groups if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(served: ServedResources, group: str) -> dict[str, Any] | None:
    """/apis/GROUP"""
    if not group or group not in served.groups:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(served, group)}


def _group(served: ServedResources, group: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in served.versions_of(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resources(served: ServedResources, group_version: GroupVersion) -> dict[str, Any] | None:
    """/api/v1 and /apis/GROUP/VERSION"""
    found = served.resources_in(group_version)
    if not found:
        return None
    # The list of the core group is older than this field.
    typed = {"apiVersion": "v1"} if group_version.group else {}
    return {
        "kind": "APIResourceList",
        **typed,
        "groupVersion": str(group_version),
        "resources": [
            entry
            for resource in found
            for entry in _entries(served, resource, group_version.version)
        ],
    }


def _entries(served: ServedResources, resource: Resource, version: str) -> Iterable[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    short_names = served.short_names(resource, version)
    if short_names:
        entry["shortNames"] = list(short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.is_stored:
        entry["storageVersionHash"] = _storage_hash(resource)
    yield entry
    for part in _parts(resource):
        yield _part_entry(resource, part)


def _parts(resource: Resource) -> Iterable[Subresource]:
    """In the order of Kubernetes: by name, but status first in custom resources."""
    return resource.subresources if resource.custom is not None else sorted(resource.subresources)


def _part_entry(resource: Resource, part: Subresource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{part.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if part.kind is not None and part.kind.group:
        entry["group"] = part.kind.group
        entry["version"] = part.kind.version
    entry["kind"] = part.kind.kind if part.kind else resource.kind
    entry["verbs"] = list(part.verbs)
    return entry


def _storage_hash(resource: Resource) -> str:
    """Tells clients when objects were stored in another version."""
    text = f"{resource.group}/{resource.info.storage_version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


# --- aggregated ---


def aggregated(served: ServedResources, path: str, version: str) -> DiscoveryDocument:
    """/api or /apis as one APIGroupDiscoveryList."""
    key = ("aggregated", path, version)
    return served.derived(key, lambda: _aggregated(served, path, version))


def _aggregated(served: ServedResources, path: str, version: str) -> DiscoveryDocument:
    groups = [""] if path == "api" else [group for group in served.groups if group]
    body = msgspec.json.encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": [_discovered_group(served, group) for group in groups],
        }
    )
    body += b"\n"
    return DiscoveryDocument(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _discovered_group(served: ServedResources, group: str) -> dict[str, Any]:
    metadata = {"name": group} if group else {}
    versions = [
        {
            "version": version,
            "resources": [
                _discovered_resource(served, resource, version)
                for resource in served.resources_in(GroupVersion(group, version))
            ],
            "freshness": "Current",
        }
        for version in served.versions_of(group)
    ]
    return {"metadata": {**metadata, "creationTimestamp": None}, "versions": versions}


def _discovered_resource(
    served: ServedResources, resource: Resource, version: str
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    short_names = served.short_names(resource, version)
    if short_names:
        found["shortNames"] = list(short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": {
                    "group": part.kind.group if part.kind else "",
                    "version": part.kind.version if part.kind else "",
                    "kind": part.kind.kind if part.kind else resource.kind,
                },
                "verbs": list(part.verbs),
            }
            for part in _parts(resource)
        ]
    return found


def root_paths(served: ServedResources) -> list[str]:
    """/: everything there is to ask for."""
    paths = [
        "/api",
        "/apis",
        "/healthz",
        "/history",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        *ISSUER_PATHS,
        "/readyz",
        "/version",
    ]
    for group in served.groups:
        if group:
            paths.append(f"/apis/{group}")
        base = f"/apis/{group}" if group else "/api"
        paths += [f"{base}/{version}" for version in served.versions_of(group)]
    return sorted(paths)
