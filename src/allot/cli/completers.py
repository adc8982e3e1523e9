"""Completion of names in a shell: objects of the cluster or of files, contexts, profiles.

A completion must be fast and must not fail: the API server is asked with the standard library's HTTP client, for two
seconds at most, and whatever goes wrong completes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

TIMEOUT_SECONDS: Final = 2.0
MAX_OBJECTS: Final = 500
_RESOURCE_API: Final = "/apis/resource.k8s.io/v1"
_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_CLUSTER_SCOPED: Final = {
    "namespaces": "/api/v1/namespaces",
    "nodes": "/api/v1/nodes",
    "deviceclasses": f"{_RESOURCE_API}/deviceclasses",
    "resourceslices": f"{_RESOURCE_API}/resourceslices",
}
_NAMESPACED: Final = {"pod": ("/api/v1", "pods"), "claim": (_RESOURCE_API, "resourceclaims")}
_KINDS: Final = {"Pod": "pod", "ResourceClaim": "claim"}

Items = list[CompletionItem[str]]
Completer = Callable[[click.Context, click.Parameter, str], Items]


def completer(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Completes what the function returns; nothing if it fails."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
        try:
            found = {name for name in names(context) if name.startswith(incomplete)}
        except Exception:  # noqa: BLE001 - an error message would end up in the user's command line
            return []
        return [CompletionItem(name) for name in sorted(found)]

    return complete


# --- what to complete ---


def _targets(context: click.Context) -> Iterator[str]:
    """`pod/NAME` and `claim/NAME`, or after a kind in a word of its own, `NAME`."""
    kinds = [word for word in context.params.get("what") or () if "/" not in word]
    for kind, name in _objects(context):
        if not kinds:
            yield f"{kind}/{name}"
        elif kind in kinds[-1]:
            yield name


def _objects(context: click.Context) -> Iterator[tuple[str, str]]:
    if files := context.params.get("sources"):
        yield from _objects_in(files)
        return
    namespace = context.params.get("namespace") or _access(context).namespace
    for kind, (prefix, plural) in _NAMESPACED.items():
        for item in _listed(context, f"{prefix}/namespaces/{namespace}/{plural}", _NAMES_ONLY):
            yield kind, item["metadata"]["name"]


def _objects_in(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    from allot.cli.manifests import read_all

    for manifest in read_all([file for file in files if file != "-"]):
        if manifest.kind in _KINDS:
            yield _KINDS[manifest.kind], manifest.name


def _names(plural: str) -> Callable[[click.Context], Iterator[str]]:
    def names(context: click.Context) -> Iterator[str]:
        for item in _listed(context, _CLUSTER_SCOPED[plural], _NAMES_ONLY):
            yield item["metadata"]["name"]

    return names


def _of_slices(value: Callable[[Mapping[str, Any]], Iterable[str]]) -> Completer:
    def names(context: click.Context) -> Iterator[str]:
        for item in _listed(context, _CLUSTER_SCOPED["resourceslices"], "application/json"):
            yield from value(item["spec"])

    return completer(names)


def _contexts(context: click.Context) -> Iterable[str]:
    from allot.cli.which_cluster import chosen_kubeconfig
    from allot.client.kubeconfig import context_names

    chosen = chosen_kubeconfig(context.params.get("kubeconfig"))
    return context_names(None if chosen is None else str(chosen))


def _lint_rules(_context: click.Context) -> Iterable[str]:
    from allot.lint.rule_table import RULES

    return RULES


complete_targets: Final = completer(_targets)
complete_namespaces: Final = completer(_names("namespaces"))
complete_nodes: Final = completer(_names("nodes"))
complete_classes: Final = completer(_names("deviceclasses"))
complete_drivers: Final = _of_slices(lambda spec: [spec["driver"]])
complete_pools: Final = _of_slices(lambda spec: [spec["pool"]["name"]])
complete_devices: Final = _of_slices(lambda spec: [each["name"] for each in spec["devices"]])
complete_contexts: Final = completer(_contexts)
complete_rules: Final = completer(_lint_rules)


def complete_hardware(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> Items:
    """Profiles, and files."""
    from allot.driver.loading import profiles

    found = [CompletionItem(name) for name in profiles() if name.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="file")]


# --- the API server ---


def _access(context: click.Context) -> Any:
    from allot.cli.which_cluster import chosen_kubeconfig
    from allot.client.kubeconfig import find_access

    kubeconfig: Path | None = context.params.get("kubeconfig")
    name: str | None = context.params.get("context")
    return find_access(chosen_kubeconfig(kubeconfig, name), name).load()


def _listed(context: click.Context, path: str, accept: str) -> list[dict[str, Any]]:
    """The first objects of a list."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    access = _access(context)
    server = urlsplit(access.server)
    ssl_context = access.ssl_context()
    host, port = server.hostname or "", server.port
    connection = (
        HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        if ssl_context is None
        else HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=ssl_context)
    )
    headers = {"Accept": accept, **dict(access.impersonation)}
    if access.authorization:
        headers["Authorization"] = access.authorization
    try:
        connection.request("GET", f"{server.path}{path}?limit={MAX_OBJECTS}", headers=headers)
        items: list[dict[str, Any]] = json.load(connection.getresponse())["items"]
        return items
    finally:
        connection.close()
