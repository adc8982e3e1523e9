"""Non-resource endpoints: discovery, OpenAPI, version, health, metrics, and the issuer of tokens."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final

from allot.api.base import replace
from allot.api.identities import GroupVersion
from allot.apiserver import api_errors
from allot.apiserver.http import discovery, history
from allot.apiserver.http.health import HealthEndpoints
from allot.apiserver.http.history import RevisionAt
from allot.apiserver.http.issuer_discovery import IssuerDiscovery
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.negotiation import (
    DISCOVERY_TRANSFORMS,
    BodyError,
    error_format,
    negotiate,
)
from allot.apiserver.http.openapi import version_2
from allot.apiserver.http.openapi.documents import document, document_hash, index
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import (
    Response,
    in_format,
    indented_response,
    json_response,
    text_response,
)
from allot.apiserver.pacing import HUGE, Workers
from allot.apiserver.registry.served import ServedResources
from allot.exposition import exposition
from allot.exposition_sharing import SharedExposition

RESOURCE_WORK: Final = 64
"""A resource in a document of discovery counts as so many bytes."""
_HEALTH: Final = ("healthz", "livez", "readyz")
_NOT_FOUND: Final = "404 page not found\n"
_UNAVAILABLE: Final = "service unavailable\n"
_OPENAPI_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class NonResourceEndpoints:
    """Everything that is not a resource."""

    def __init__(
        self,
        health: HealthEndpoints,
        metrics: Metrics,
        served: ServedResources,
        address: Callable[[], str],
        revision_at: RevisionAt,
        issuer: IssuerDiscovery,
        is_remote: Callable[[str, str], bool],
    ) -> None:
        """`is_remote`: whether a group and version are those of an extension API server."""
        self._health = health
        self._metrics = metrics
        self._own_metrics = SharedExposition(
            lambda accept: asyncio.to_thread(exposition, metrics.registry, accept)
        )
        self._served = served
        self._address = address
        self._revision_at = revision_at
        self._issuer = issuer
        self._is_remote = is_remote
        self._workers = Workers()

    def close(self) -> None:
        self._workers.close()

    def is_health(self, request: ApiRequest) -> bool:
        """Whether it asks how the server is, which is answered also when it is too busy for the rest."""
        return request.path.lstrip("/").partition("/")[0] in _HEALTH

    async def answer(self, request: ApiRequest) -> Response:
        """The page for a request that was authorized. Its body is of no interest."""
        parts = [part for part in request.path.split("/") if part]
        if parts[:1] == ["apis"] and len(parts) > 2 and self._is_remote(parts[1], parts[2]):
            return text_response(503, _UNAVAILABLE)
        if request.method not in ("GET", "HEAD"):
            if await self._found(parts, request) is None:
                return self._no_such_path(parts)
            raise api_errors.method_not_allowed()
        if parts and parts[0] in _HEALTH:
            return await self._health.answer(parts, verbose=request.flag("verbose"))
        if parts == ["metrics"]:
            return Response(200, *await self._own_metrics.page(request.header("accept")))
        if len(parts) == 2 and parts[0] == "metrics" and parts[1] in self._metrics.others:
            shown = await self._metrics.others[parts[1]](request.header("accept"))
            return Response(200, *shown)
        if parts == [history.PATH]:
            return await history.answer_history(request, self._revision_at)
        found = await self._found(parts, request)
        if found is None:
            return self._no_such_path(parts)
        is_json = found.content_type.startswith("application/json") and bool(found.body)
        is_discovery = is_json and parts[:1] in (["api"], ["apis"])
        if is_discovery and error_format(request.header("accept")) == "protobuf":
            return in_format(found, "protobuf")
        return in_format(found, "json", pretty=is_json and request.flag("pretty"))

    def _no_such_path(self, parts: list[str]) -> Response:
        """Below built-in APIs, in all versions, it is answered as an API answers."""
        match parts:
            case ["api" | "version", _, *_]:
                raise api_errors.no_such_path()
            case ["apis", group, _, *_] if _is_built_in(self._served, group):
                raise api_errors.no_such_path()
        return text_response(404, _NOT_FOUND)

    async def _found(self, parts: list[str], request: ApiRequest) -> Response | None:
        """What takes long to make, such as all documents, is made beside the event loop.

        One document at a time: several threads would keep the event loop waiting for the interpreter, and make the
        same document.
        """
        size = 0
        if parts[:1] == ["openapi"]:
            size = HUGE + 1
        elif parts[:1] in (["api"], ["apis"]):
            size = len(self._served.resources) * RESOURCE_WORK
        return await self._workers.run(size, lambda: self._find(parts, request))

    def _find(self, parts: list[str], request: ApiRequest) -> Response | None:
        match parts:
            case []:
                return indented_response(200, {"paths": discovery.root_paths(self._served)})
            case ["version"]:
                return indented_response(200, discovery.version_info())
            case ["healthz" | "livez" | "readyz", *_]:
                return text_response(200, "ok")
            case ["metrics"]:
                return text_response(200, "")
            case [history.PATH]:
                return text_response(200, "")
            case ["metrics", component] if component in self._metrics.others:
                return text_response(200, "")
            case ["openapi", "v2"]:
                return _openapi_v2(self._served, request)
            case ["openapi", "v3", *path]:
                return _openapi(self._served, "/".join(path), request)
            case ["api"] | ["apis"]:
                return self._groups(parts[0], request)
            case ["api", version]:
                return _known(discovery.api_resources(self._served, GroupVersion("", version)))
            case ["apis", group]:
                return _known(discovery.api_group(self._served, group))
            case ["apis", group, version]:
                return _known(discovery.api_resources(self._served, GroupVersion(group, version)))
        return self._issuer.find(parts, request)

    def _groups(self, path: str, request: ApiRequest) -> Response:
        try:
            accepted = negotiate(request.header("accept"), DISCOVERY_TRANSFORMS)
        except BodyError as error:
            raise error.api_error() from None
        if accepted.transform:
            found = discovery.aggregated(self._served, path, accepted.version)
            shown = Response(200, found.body)
            if accepted.format == "protobuf":
                shown = in_format(shown, "protobuf")
            return _tagged(request, shown.body, found.etag, accepted.content_type)
        value = (
            discovery.api_versions(self._served, self._address())
            if path == "api"
            else discovery.api_groups(self._served)
        )
        return replace(json_response(200, value), headers=((b"vary", b"Accept"),))


def _is_built_in(served: ServedResources, group: str) -> bool:
    """Whether not all resources of a group are custom ones."""
    versions = (GroupVersion(group, version) for version in served.versions_of(group))
    return any(
        resource.custom is None for version in versions for resource in served.resources_in(version)
    )


def _known(value: object) -> Response | None:
    return None if value is None else json_response(200, value)


def _openapi_v2(served: ServedResources, request: ApiRequest) -> Response:
    found = version_2.document(served)
    if "protobuf" in request.header("accept"):
        return _tagged(request, found.protobuf, found.etag, _OPENAPI_V2_PROTOBUF)
    return _tagged(request, found.json, found.etag, "application/json")


def _openapi(served: ServedResources, path: str, request: ApiRequest) -> Response | None:
    if not path:
        body = index(served)
        return _tagged(request, body, f'"{hashlib.sha512(body).hexdigest()}"', "application/json")
    found, hash_ = document(path, served), document_hash(path, served)
    if found is None:
        return None
    return _tagged(request, found, f'"{hash_}"', "application/json")


def _tagged(request: ApiRequest, body: bytes, etag: str, content_type: str) -> Response:
    """An answer that clients may keep; 304 if they have it already."""
    headers = ((b"etag", etag.encode()), (b"vary", b"Accept"))
    if etag in request.header("if-none-match"):
        return Response(304, b"", content_type, headers)
    return Response(200, body, content_type, headers)
