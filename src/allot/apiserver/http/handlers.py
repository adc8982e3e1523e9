"""Handles one authorized API request: negotiation, and the handler of its verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.access_reviews import AccessReviews
from allot.apiserver.http.component_statuses import ComponentStatuses
from allot.apiserver.http.flow_control import seats_for
from allot.apiserver.http.list_bodies import list_response
from allot.apiserver.http.list_options import check_list_options, list_options, read_selection
from allot.apiserver.http.negotiation import (
    JSON,
    LIST_TRANSFORMS,
    OBJECT_TRANSFORMS,
    PLAIN_JSON,
    PROTOBUF,
    STREAMED,
    Accepted,
    BodyError,
    Transform,
    negotiate,
)
from allot.apiserver.http.operations import Operation
from allot.apiserver.http.pod_logs import PodLogs
from allot.apiserver.http.protobuf_rendering import (
    ProtobufRenderer,
    protobuf_list,
    protobuf_renderer,
)
from allot.apiserver.http.rendering import (
    Renderer,
    renderer_for,
    table_of_document,
)
from allot.apiserver.http.requests import ApiRequest, write_options
from allot.apiserver.http.responses import (
    Header,
    Response,
    StreamResponse,
    in_format,
    json_response,
    warning_headers,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.http.subresources import Subresources
from allot.apiserver.http.watching import Watcher, watch_options
from allot.apiserver.http.writing import WriteHandlers
from allot.apiserver.kinds.definition import SCALE
from allot.apiserver.kinds.scale import SCALE_TABLE
from allot.apiserver.pacing import LARGE, SLOW, Workers
from allot.apiserver.registry.conversion import Converter
from allot.apiserver.registry.reading import ListMeta, Reader
from allot.apiserver.registry.write_results import Written
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.client.transport import STORED_VERSION
from allot.storage.interface import Store

BINDING_KIND: Final = "Binding"
SEVERAL: Final = frozenset(("list", "deletecollection"))
"""Verbs that are about more than one object."""


class Handlers:
    """Everything that is done with resources."""

    def __init__(
        self,
        store: Store,
        caches: Caches,
        reader: Reader,
        writes: WriteHandlers,
        subresources: Subresources,
        reviews: AccessReviews,
        components: ComponentStatuses,
        clock: Callable[[], datetime],
        workers: Workers,
        converter: Converter,
    ) -> None:
        self._store = store
        self._caches = caches
        self._reader = reader
        self._writes = writes
        self._subresources = subresources
        self.logs = PodLogs(reader, clock, workers)
        self._reviews = reviews
        self._components = components
        self._clock = clock
        self._workers = workers
        self._converter = converter

    def seats(self, request: ApiRequest, target: Target) -> int:
        """How many seats a request for several objects takes."""
        if not target.resource.is_stored:
            return 1
        objects = self._caches.of(target.resource).count
        limit = request.query.get("limit", "")
        if limit.isascii() and limit.isdigit() and len(limit) < 10:
            objects = min(objects, int(limit) or objects)
        return seats_for(objects)

    def handle(
        self, request: ApiRequest, target: Target, operation: Operation
    ) -> Awaitable[Response]:
        """The answer to anything but a watch and a log."""
        answering = self._answer(request, target, operation)
        return _with_warning(operation.warning, answering) if operation.warning else answering

    async def _answer(self, request: ApiRequest, target: Target, operation: Operation) -> Response:
        verb, renderer, accepted = operation.verb, operation.renderer, PLAIN_JSON
        accept = request.headers.get("accept")
        if accept and accept != JSON:
            # Negotiated first: a write must not be done if its answer is not acceptable.
            transforms = LIST_TRANSFORMS if verb in SEVERAL else OBJECT_TRANSFORMS
            accepted = self._negotiated(accept, target, transforms)
            renderer = self._renderer(request, target, accepted, operation)
        answer = _Responder(request, accepted, renderer, self._workers)
        match operation.form:
            case "create":
                return await answer.written(201, await self._writes.create(request, target))
            case "update":
                written = await self._writes.update(request, target)
                return await answer.written(201 if written.created else 200, written)
            case "patch":
                written = await self._writes.patch(request, target)
                return await answer.written(201 if written.created else 200, written)
            case "delete":
                written = await self._writes.delete(request, target)
                if written.gone and target.version not in target.resource.returns_deleted_in:
                    return await answer.formatted(json_response(200, _deleted(target, written)))
                return await answer.written(200, written)
            case "get":
                key = ObjectKey(target.namespace, target.name)
                version = request.query.get("resourceVersion", "")
                stored = await self._reader.get(target.resource, key, version)
                return await answer.one(200, stored)
            case "list":
                selection = await read_selection(request, target, self._workers)
                listing = await self._reader.list(selection, list_options(request))
                return await answer.listed(listing.objects, listing.meta)
            case "part":
                return await self._part(request, target, verb, answer)
            case "finalize":
                return await answer.written(200, await self._subresources.finalize(request, target))
            case "unstored":
                return await self._unstored(request, target, verb, answer)
            case "deletecollection":
                selection = await read_selection(request, target, self._workers)
                listing = await self._writes.delete_collection(request, target, selection)
                return await answer.listed(listing.objects, listing.meta)
        raise AssertionError(f"nothing answers {operation.form}")

    async def _part(
        self, request: ApiRequest, target: Target, verb: str, answer: _Responder
    ) -> Response:
        """The answer about a part of an object that is of a kind of its own."""
        assert target.subresource is not None
        response, accepted = await self._subresources.handle(request, target, verb), answer.accepted
        if target.subresource.name == SCALE.name and accepted.transform == "Table":
            document = msgspec.json.decode(response.body)
            table = table_of_document(document, SCALE_TABLE, accepted.version, self._clock())
            response = replace(json_response(response.code, table), headers=response.headers)
        return await answer.formatted(response)

    async def _unstored(
        self, request: ApiRequest, target: Target, verb: str, answer: _Responder
    ) -> Response:
        """The answer about a kind without stored objects."""
        match verb:
            case "list":
                check_list_options(request)
                listing = await self._components.list(request, target)
                return await answer.listed(listing.objects, listing.meta)
            case "get":
                return await answer.one(200, await self._components.get(target))
        if target.resource.kind == BINDING_KIND:
            return await answer.formatted(await self._subresources.bind_named(request, target))
        return await answer.formatted(await self._review(request, target))

    async def _review(self, request: ApiRequest, target: Target) -> Response:
        write_options(request, "create")
        gvk = target.resource.gvk(target.version)
        # Policies and webhooks are not asked about reviews.
        review, warnings = await self._subresources.document(request, gvk)
        answered = await self._reviews.answer(
            gvk.kind, target.namespace, review, request.user, len(request.body)
        )
        return replace(json_response(201, answered), headers=warning_headers(warnings))

    async def watch(
        self, request: ApiRequest, target: Target, operation: Operation
    ) -> tuple[Watcher, StreamResponse]:
        """A watch that is ready to stream."""
        accept = request.headers.get("accept")
        accepted = PLAIN_JSON
        if accept and accept != JSON:
            accepted = self._negotiated(accept, target, OBJECT_TRANSFORMS, watch=True)
        selection = await read_selection(request, target, self._workers)
        options = watch_options(request)
        renderer = self._renderer(request, target, accepted, operation)
        cache = self._caches.of(target.resource)
        watcher = Watcher(
            self._store, cache, selection, renderer, options, self._converter, self._workers
        )
        await watcher.prepare(self._reader)
        streamed = STREAMED["protobuf"] if accepted.format == "protobuf" else JSON
        warning = operation.warning
        headers = warning_headers([warning]) if warning else ()
        return watcher, StreamResponse(watcher.stream(), streamed, headers)

    def _negotiated(
        self,
        accept: str,
        target: Target,
        transforms: frozenset[Transform],
        *,
        watch: bool = False,
    ) -> Accepted:
        protobuf = codec_for(target.resource).has_protobuf(target.version)
        try:
            return negotiate(accept, transforms, watch=watch, protobuf=protobuf)
        except BodyError as error:
            raise error.api_error() from None

    def _renderer(
        self, request: ApiRequest, target: Target, accepted: Accepted, operation: Operation
    ) -> Renderer:
        if accepted.format != "protobuf" and not accepted.transform:
            return operation.renderer
        codec = codec_for(target.resource)
        if accepted.format == "protobuf":
            return protobuf_renderer(accepted, codec, target.version)
        part = target.subresource.name if target.subresource is not None else ""
        return renderer_for(request, accepted, codec, target.version, self._clock, part)


class _Responder(msgspec.Struct, frozen=True):
    """Answers a request in the negotiated format."""

    request: ApiRequest
    accepted: Accepted
    renderer: Renderer
    workers: Workers

    async def written(self, code: int, written: Written) -> Response:
        stored, request = written.stored, self.request
        if not request.wants_object and written.as_sent is not False:
            headers: tuple[Header, ...] = ()
            if written.as_sent:
                headers = ((STORED_VERSION, b"%d" % stored.revision),)
            response = Response(code, b"", headers=headers, revision=stored.revision)
        elif self.accepted is PLAIN_JSON and not request.query and len(stored.entry.value) <= LARGE:
            response = Response(code, self.renderer.written(stored), revision=stored.revision)
        else:
            response = await self.one(code, stored)
        if not written.warnings:
            return response
        headers = (*response.headers, *warning_headers(written.warnings))
        return replace(response, headers=headers)

    async def one(self, code: int, stored: StoredObject) -> Response:
        is_protobuf = self.accepted.format == "protobuf"
        size = self.renderer.work_size(stored)
        if size <= LARGE:
            body = self.renderer.one(stored)
        else:
            body = await self.workers.run(size, partial(self.renderer.one, stored))
        if is_protobuf:
            return Response(code, body, PROTOBUF, revision=stored.revision)
        response = Response(code, body + b"\n", revision=stored.revision)
        if self.accepted.format == "json" and not self.request.query:
            return response
        return await self.formatted(response)

    async def listed(self, objects: Sequence[StoredObject], meta: ListMeta) -> Response:
        if isinstance(self.renderer, ProtobufRenderer):
            return await protobuf_list(objects, self.renderer, meta, self.workers)
        return await list_response(
            self.renderer.in_order(objects),
            self.renderer.frame(meta),
            self.renderer.item,
            self.accepted.format,
            self.workers,
            pretty=self.request.flag("pretty"),
        )

    async def formatted(self, response: Response) -> Response:
        format_, pretty = self.accepted.format, self.request.flag("pretty")
        if format_ == "json" and not pretty:
            return response
        size = len(response.body) * (SLOW if format_ == "yaml" else 1)
        return await self.workers.run(size, lambda: in_format(response, format_, pretty=pretty))


async def _with_warning(warning: str, answering: Awaitable[Response]) -> Response:
    """An answer that comes with a warning, also if it is an error."""
    try:
        response = await answering
    except ApiError as error:
        error.warnings.insert(0, warning)
        raise
    return replace(response, headers=(*warning_headers([warning]), *response.headers))


def _deleted(target: Target, written: Written) -> dict[str, Any]:
    """The Status that answers a delete which is done."""
    details = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details["kind"] = target.resource.plural
    details["uid"] = written.stored.object.metadata.uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
