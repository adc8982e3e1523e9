"""The ASGI application: HTTP in, HTTP out. What is asked for is decided in `handlers`.

Authentication and authorization come first: the body of a request that is not allowed is not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.audit.auditor import Audited, Auditor
from allot.apiserver.auth.authentication import Authentication, Credentials, User
from allot.apiserver.auth.authorization import Attributes, Authorizer, refusal
from allot.apiserver.auth.impersonation import IMPERSONATE, impersonated
from allot.apiserver.dynamic_admission.served_request import REQUEST
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
from allot.apiserver.http.pod_logs import LogFollower
from allot.apiserver.http.request_attributes import (
    path_attributes,
    target_attributes,
    version_in,
)
from allot.apiserver.http.requests import ApiRequest, parse_query
from allot.apiserver.http.responses import Response, error_response, in_format
from allot.apiserver.http.routes import USUAL_VERBS, Router, Target, verb_of
from allot.apiserver.http.watching import Watcher
from allot.apiserver.kinds.definition import LOG
from allot.apiserver.kinds.deprecations import deprecation_warning
from allot.apiserver.registry.served import ServedResources
from allot.client.component_users import ComponentUser

log = logging.getLogger(__name__)

_BEARER: Final = "Bearer "
_PREFIX: Final = len(IMPERSONATE)
_READING: Final = frozenset(("get", "list", "watch"))
_TRANSFER_LIMITS: Final = TransferLimits()


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
        self._router = Router(served)
        self._transfer_limits = transfer_limits
        self._auditor = auditor
        self._watchers: set[Watcher | LogFollower] = set()
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
        auditor = self._auditor
        call = _Call(None if auditor is None else auditor.begin(exchange.scope))
        try:
            response = await self._respond(exchange, call)
            if auditor is not None and call.audited is not None:
                auditor.completed(call.audited, response)
            if response is None:
                return  # a watch, which has been answered
            labels = call.labels or Labels(exchange.scope["method"])
            self._metrics.requests.count(labels, response.code, time.perf_counter() - started)
            if len(response.body) <= PIECE and response.more is None:
                call.end()  # a large answer holds its seat until the client has taken it
            await exchange.answer(response)
        finally:
            if call.in_flight is not None:
                call.end()

    async def _respond(self, exchange: HttpExchange, call: _Call) -> Response | None:
        scope = exchange.scope
        try:
            request = await self._request(exchange, call)
            target = self._router.find(request.path)
            if target is None:
                return await self._page(request, exchange, call)
            is_watch = bool(request.query) and request.flag("watch")
            verb = verb_of(request.method, target, watch=is_watch)
            attributes = target_attributes(request, target, verb)
            self._authorize(request, attributes, target.version, call)
            if verb is None:
                if target.resource.custom is not None and request.method in USUAL_VERBS:
                    verb = USUAL_VERBS[request.method]
                    raise api_errors.not_supported(target.resource, verb)
                if is_watch and "list" in target.resource.verbs and not target.subresource:
                    error = api_errors.not_supported(target.resource, "watch")
                    gvk = target.resource.gvk(target.version)
                    error.warnings.append(deprecation_warning(gvk))
                    raise error
                raise api_errors.method_not_allowed()
            call.labels = _labels(target, verb)
            kind = READ_ONLY if verb in _READING else MUTATING
            call.in_flight = in_flight = self._flow.request(
                request.user, kind, exempt=exchange.is_in_process
            )
            if verb == "watch":
                await self._watch(request, target, exchange, call)
                return None
            if target.subresource is LOG and request.flag("follow"):
                await self._follow_log(request, target, exchange, call)
                return None
            if kind is MUTATING:
                request = ApiRequest(*request[:-1], await exchange.read(in_flight))
                if call.audited is not None:
                    call.audited.request_body = request.body
            REQUEST.set(call)
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
            return _shown(api_errors.internal("internal error; see the server log"), exchange)

    def _describe(self, audited: Audited, exchange: HttpExchange) -> None:
        """What was asked for, of a request that was answered before it was authorized."""
        with suppress(ApiError):
            scope = exchange.scope
            path = scope["raw_path"].decode("latin-1")
            query = parse_query(scope["query_string"])
            request = ApiRequest(scope["method"], path, query, {}, audited.user or User(""))
            target = self._router.find(path)
            if target is None:
                audited.attributes = path_attributes(request)
            else:
                verb = verb_of(request.method, target, watch=request.flag("watch"))
                audited.attributes = target_attributes(request, target, verb)
            audited.version = version_in(path)

    def _authorize(
        self, request: ApiRequest, attributes: Attributes, version: str, call: _Call
    ) -> None:
        """403 unless the user may do it."""
        decision = self._authorizer.authorize(request.user, attributes)
        audited = call.audited
        if audited is not None:
            audited.attributes, audited.decision = attributes, decision
            audited.version = version
        if not decision.allowed:
            raise refusal(request.user, attributes, decision.reason)

    async def _page(self, request: ApiRequest, exchange: HttpExchange, call: _Call) -> Response:
        self._authorize(request, path_attributes(request), version_in(request.path), call)
        exempt = exchange.is_in_process or self._endpoints.is_health(request)
        call.in_flight = self._flow.request(request.user, READ_ONLY, exempt=exempt)
        await call.in_flight.begin()
        return await self._endpoints.answer(request)

    async def _request(self, exchange: HttpExchange, call: _Call) -> ApiRequest:
        scope = exchange.scope
        # Of a repeated header the first one counts.
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }
        exchange.name_request(headers.get("audit-id"))
        audited = call.audited
        if audited is not None:
            audited.headers, audited.audit_id = headers, exchange.audit_id
        component = exchange.component
        if component is not None:
            user = _user_of(component)
        else:
            user = await self._authentication.user_for(_credentials(headers, exchange))
        if audited is not None:
            audited.user = user
        if [name for name in headers if name[:_PREFIX] == IMPERSONATE]:
            user = self._impersonated(user, scope)
            if audited is not None:
                audited.impersonated = user
        # Not decoded yet: an escaped slash in a name does not divide it.
        path = scope["raw_path"].decode("latin-1")
        query = parse_query(scope["query_string"]) if scope["query_string"] else {}
        return ApiRequest(scope["method"], path, query, headers, user)

    def _impersonated(self, user: User, scope: Scope) -> User:
        """Whom the caller wants to be taken for, if they may."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        return impersonated(user, pairs, scope["path"], self._authorizer) or user

    # --- watches ---

    async def _follow_log(
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: _Call
    ) -> None:
        """Counts as a watch: it goes on without a seat."""
        assert call.in_flight is not None
        await call.in_flight.begin()
        follower = await self._handlers.logs.follow(request, target)
        call.end()
        is_counted = not exchange.is_in_process
        if is_counted:
            self._flow.begin_watch(request.user)
        self._watchers.add(follower)
        leaving = asyncio.create_task(_stop_when_gone(follower, exchange.receive))
        try:
            await exchange.stream(follower.response, lambda _: None)
        except ClientGoneError:
            log.info("log of %s: the client takes nothing, giving it up", request.path)
        finally:
            self._watchers.discard(follower)
            leaving.cancel()
            if is_counted:
                self._flow.end_watch(request.user)

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
        assert labels is not None
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

    def __init__(self, audited: Audited | None) -> None:
        self.audited = audited
        self.in_flight: InFlightRequest | None = None
        self.labels: Labels | None = None

    def pause(self) -> None:
        """Free the seats while it waits for others."""
        if self.in_flight is not None:
            self.in_flight.pause()

    async def resume(self) -> None:
        """Wait for seats again; raises 429."""
        if self.in_flight is not None:
            await self.in_flight.resume()

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to its audit event; the first one of a key stays."""
        if self.audited is not None:
            self.audited.annotations = {key: value, **self.audited.annotations}

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


async def _stop_when_gone(watcher: Watcher | LogFollower, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            watcher.stop()
            return


@lru_cache(maxsize=1024)
def _user_of(component: ComponentUser) -> User:
    return User(component.name, groups=component.groups)


def _credentials(headers: dict[str, str], exchange: HttpExchange) -> Credentials:
    authorization = headers.get("authorization")
    if not authorization:
        return Credentials(None, exchange.certificate)
    is_bearer = authorization[: len(_BEARER)] == _BEARER or authorization.lower().startswith(
        "bearer "
    )
    token = authorization[len(_BEARER) :].strip() if is_bearer else ""
    return Credentials(token or None, exchange.certificate)


def _labels(target: Target, verb: str) -> Labels:
    resource, version, namespace, name, part = target
    scope = "resource" if name else "namespace" if namespace else "cluster"
    return _known_labels(verb, resource.group, version, resource.plural, part and part.name, scope)


@cache
def _known_labels(
    verb: str, group: str, version: str, plural: str, part: str | None, scope: str
) -> Labels:
    """There are as many as kinds and verbs are served."""
    return Labels(verb, group, version, plural, part or "", scope)
