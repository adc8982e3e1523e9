"""The ASGI application: HTTP in, HTTP out. What is asked for is decided in `handlers`.

Authentication and authorization come first: the body of a request that is not allowed is not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.audit.auditor import Answered, Audited, Auditor
from allot.apiserver.auth.authentication import Authentication, Credentials, User
from allot.apiserver.auth.authorization import Attributes, Authorizer, check
from allot.apiserver.auth.impersonation import IMPERSONATE, impersonated
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.flow_control import MUTATING, READ_ONLY, FlowControl, InFlightRequest
from allot.apiserver.http.handlers import SEVERAL, Handlers
from allot.apiserver.http.http_exchange import (
    PIECE,
    ClientGoneError,
    HttpExchange,
    Receive,
    Scope,
    Send,
    TransferLimits,
)
from allot.apiserver.http.metrics import Labels, Metrics
from allot.apiserver.http.negotiation import error_format
from allot.apiserver.http.request_attributes import (
    path_attributes,
    target_attributes,
    version_in,
)
from allot.apiserver.http.requests import ApiRequest, parse_query
from allot.apiserver.http.responses import Response, error_response, in_format
from allot.apiserver.http.routes import Target, find_target, verb_of
from allot.apiserver.http.watching import Watcher
from allot.apiserver.registry.served import ServedResources

log = logging.getLogger(__name__)

_READING: Final = frozenset(("get", "list", "watch"))
_TRANSFER_LIMITS: Final = TransferLimits()
LOOPBACK: Final = "127.0.0.1"


class App:
    """One API server's front door."""

    def __init__(
        self,
        handlers: Handlers,
        endpoints: NonResourceEndpoints,
        authentication: Authentication,
        authorizer: Authorizer,
        metrics: Metrics,
        flow: FlowControl,
        served: ServedResources,
        transfer_limits: TransferLimits = _TRANSFER_LIMITS,
        auditor: Auditor | None = None,
    ) -> None:
        self._handlers = handlers
        self._endpoints = endpoints
        self._authentication = authentication
        self._authorizer = authorizer
        self._metrics = metrics
        self._flow = flow
        self._served = served
        self._transfer_limits = transfer_limits
        self._auditor = auditor
        self._watchers: set[Watcher] = set()
        self._closing = False

    def close(self) -> None:
        """Let all watches end, so that their clients come back to a server that lives."""
        self._closing = True
        for watcher in tuple(self._watchers):
            watcher.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = HttpExchange(scope, receive, send, self._transfer_limits)
        try:
            await self._serve(exchange)
        except ClientGoneError:
            return
        except asyncio.CancelledError:
            if not self._closing:
                raise
            exchange.abort("shutdown")

    async def _serve(self, exchange: HttpExchange) -> None:
        started = time.perf_counter()
        call = _Call(Labels(exchange.scope["method"]))
        try:
            if self._auditor is not None:
                call.audited = self._begin_audit(self._auditor, exchange)
            response = await self._respond(exchange, call)
            if self._auditor is not None and call.audited is not None:
                answered = Answered(response.code, response.body) if response else Answered(200)
                self._auditor.completed(call.audited, answered, is_stream=response is None)
            if response is None:
                return  # a watch, which has been answered
            self._metrics.count(call.labels, response.code, time.perf_counter() - started)
            if len(response.body) <= PIECE and response.more is None:
                call.end()  # a large answer holds its seat until the client has taken it
            await exchange.answer(response)
        finally:
            call.end()

    def _begin_audit(self, auditor: Auditor, exchange: HttpExchange) -> Audited:
        scope = exchange.scope
        query: bytes = scope["query_string"]
        uri = scope["raw_path"] + (b"?" + query if query else b"")
        audited = auditor.begin(uri.decode("latin-1"), exchange.audit_id)
        audited.source = (scope.get("client") or (LOOPBACK,))[0]
        return audited

    async def _respond(self, exchange: HttpExchange, call: _Call) -> Response | None:
        scope = exchange.scope
        try:
            request = await self._request(exchange, call)
            target = find_target(request.path, self._served)
            if target is None:
                return await self._page(request, exchange, call)
            verb = verb_of(request.method, target, watch=request.flag("watch"))
            self._authorize(request, target_attributes(request, target, verb), call)
            if verb is None:
                raise api_errors.method_not_allowed()
            call.labels = _labels(target, verb)
            kind = READ_ONLY if verb in _READING else MUTATING
            call.in_flight = in_flight = self._flow.request(
                request.user, kind, exempt=exchange.is_in_process
            )
            if verb == "watch":
                await self._watch(request, target, exchange, call)
                return None
            if kind is MUTATING:
                request = request._replace(body=await exchange.read(in_flight))
                if call.audited is not None:
                    call.audited.request_body = request.body
            several = verb in SEVERAL
            await in_flight.begin(self._handlers.seats(request, target) if several else 1)
            return await self._handlers.handle(request, target, verb)
        except ApiError as error:
            if call.audited is not None and call.audited.attributes is None:
                self._describe(call.audited, exchange)
            return _shown(error, exchange)
        except ClientGoneError:
            raise
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            return _shown(api_errors.internal("the server made a mistake; see its log"), exchange)

    def _describe(self, audited: Audited, exchange: HttpExchange) -> None:
        """What was asked for, of a request that was answered before it was authorized."""
        audited.user_agent = exchange.header(b"user-agent").decode("latin-1")
        with suppress(ApiError):
            scope = exchange.scope
            path = scope["raw_path"].decode("latin-1")
            query = parse_query(scope["query_string"])
            request = ApiRequest(scope["method"], path, query, {}, audited.user or User(""))
            target = find_target(path, self._served)
            if target is None:
                audited.attributes = path_attributes(request)
            else:
                verb = verb_of(request.method, target, watch=request.flag("watch"))
                audited.attributes = target_attributes(request, target, verb)
            audited.version = version_in(path)

    def _authorize(self, request: ApiRequest, attributes: Attributes, call: _Call) -> None:
        """403 unless the user may do it."""
        decision = self._authorizer.authorize(request.user, attributes)
        if call.audited is not None:
            call.audited.attributes, call.audited.decision = attributes, decision
            call.audited.version = version_in(request.path)
        check(decision, request.user, attributes)

    async def _page(self, request: ApiRequest, exchange: HttpExchange, call: _Call) -> Response:
        self._authorize(request, path_attributes(request), call)
        exempt = exchange.is_in_process or self._endpoints.is_health(request)
        call.in_flight = self._flow.request(request.user, READ_ONLY, exempt=exempt)
        await call.in_flight.begin()
        return await self._endpoints.answer(request)

    async def _request(self, exchange: HttpExchange, call: _Call) -> ApiRequest:
        scope = exchange.scope
        headers: dict[str, str] = {}
        impersonates = False
        for raw_name, value in scope["headers"]:
            name = raw_name.decode("latin-1")
            headers.setdefault(name, value.decode("latin-1"))
            if name.startswith(IMPERSONATE):
                impersonates = True
        component = exchange.component
        if component is not None:
            user = User(component.name, groups=component.groups)
        else:
            user = await self._authentication.user_for(_credentials(headers, exchange))
        audited = call.audited
        if audited is not None:
            audited.user, audited.user_agent = user, headers.get("user-agent", "")
        if impersonates:
            user = self._impersonated(user, scope)
            if audited is not None:
                audited.impersonated = user
        # Not decoded yet: an escaped slash in a name does not divide it.
        path = scope["raw_path"].decode("latin-1")
        query = parse_query(scope["query_string"])
        return ApiRequest(scope["method"], path, query, headers, user)

    def _impersonated(self, user: User, scope: Scope) -> User:
        """Whom the caller wants to be taken for, if they may."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        return impersonated(user, pairs, scope["path"], self._authorizer) or user

    # --- watches ---

    async def _watch(
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: _Call
    ) -> None:
        if exchange.is_in_process:
            await self._begin_watch(request, target, exchange, call)
            return
        self._flow.begin_watch(request.user)
        try:
            await self._begin_watch(request, target, exchange, call)
        finally:
            self._flow.end_watch(request.user)

    async def _begin_watch(
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: _Call
    ) -> None:
        assert call.in_flight is not None
        await call.in_flight.begin()
        watcher, response = await self._handlers.watch(request, target)
        if self._auditor is not None and call.audited is not None:
            self._auditor.started(call.audited)
        call.end()  # it goes on without a seat
        labels = call.labels
        self._metrics.requests.count_watch(labels)
        gauge = self._metrics.watchers.labels(*labels)
        sent = self._metrics.watch_bytes.labels(labels.group, labels.version, labels.resource)
        self._watchers.add(watcher)
        gauge.inc()
        leaving = asyncio.create_task(_stop_when_gone(watcher, exchange.receive))
        if self._closing:
            watcher.stop()
        try:
            await exchange.stream(response, sent.inc)
        except ClientGoneError:
            log.info("watch of %s: the client takes nothing, giving it up", request.path)
        except Exception:
            # The answer has begun and cannot become another. Cut off, the client watches again.
            log.exception("watch of %s failed", request.path)
            exchange.abort("error")
        finally:
            gauge.dec()
            self._watchers.discard(watcher)
            leaving.cancel()


class _Call:
    """The state of a request while it is served, and the resources it holds."""

    __slots__ = ("audited", "in_flight", "labels")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.in_flight: InFlightRequest | None = None
        self.audited: Audited | None = None

    def end(self) -> None:
        """Free the seats. It may be called again."""
        in_flight, self.in_flight = self.in_flight, None
        if in_flight is not None:
            in_flight.end()


def _shown(error: ApiError, exchange: HttpExchange) -> Response:
    """An error in the format that the client reads."""
    response = error_response(error)
    accept = exchange.header(b"accept").decode("latin-1")
    # Errors have always been JSON for those who ask for YAML, which can be read as such.
    return in_format(response, "protobuf") if error_format(accept) == "protobuf" else response


async def _stop_when_gone(watcher: Watcher, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            watcher.stop()
            return


def _credentials(headers: dict[str, str], exchange: HttpExchange) -> Credentials:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    return Credentials(bearer or None, exchange.certificate)


def _labels(target: Target, verb: str) -> Labels:
    resource = target.resource
    scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
    part = target.subresource.name if target.subresource else ""
    return Labels(verb, resource.group, target.version, resource.plural, part, scope)
