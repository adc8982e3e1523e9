"""The ASGI application: HTTP in, HTTP out. What is asked for is decided in `handlers`.

Authentication and authorization come first: the body of a request that is not allowed is not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from allot.api.base import replace
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, as_server_error
from allot.apiserver.audit.auditor import Audited, Auditor
from allot.apiserver.auth.authentication import Authentication, Credentials, User
from allot.apiserver.auth.authorization import Attributes, Authorizer, refusal
from allot.apiserver.auth.impersonation import IMPERSONATE, impersonated
from allot.apiserver.dynamic_admission.served_request import REQUEST
from allot.apiserver.http.durability import Durability
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.flow_control import (
    MUTATING,
    READ_ONLY,
    FlowControl,
    InFlightRequest,
)
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
from allot.apiserver.http.request_labels import labels_of
from allot.apiserver.http.request_state import RequestState
from allot.apiserver.http.requests import ApiRequest, parse_query
from allot.apiserver.http.responses import Response, error_response, in_format
from allot.apiserver.http.routes import USUAL_VERBS, Router, Target, verb_of
from allot.apiserver.http.watching import Watcher
from allot.apiserver.kinds.definition import LOG
from allot.apiserver.kinds.deprecations import deprecation_warning
from allot.apiserver.pacing import Priority, begin_work
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.storage_errors import api_error_for
from allot.client.component_users import ComponentUser
from allot.client.transport import WITHOUT_OBJECT
from allot.features import FeatureGates
from allot.rules import MISTAKES_ARE_UNPROCESSABLE
from allot.storage.interface import StorageError

log = logging.getLogger(__name__)

_BEARER: Final = "bearer "
_SCHEME: Final = len(_BEARER)
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
        caches: Caches,
        gates: FeatureGates,
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
        self._caches = caches
        self._keeps_codes = MISTAKES_ARE_UNPROCESSABLE in gates
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
        call = RequestState(None if auditor is None else auditor.begin(exchange.scope))
        if not exchange.sees_pending_writes:
            call.durability = Durability(self._caches)
        try:
            response = await self._respond(exchange, call)
            durability, target = call.durability, call.target
            if response is not None and durability is not None and target is not None:
                shown = response.revision
                if not shown:
                    is_read = exchange.scope["method"] in ("GET", "HEAD")
                    read = durability.last_read
                    shown = read(target.resource) if is_read else durability.last_shown
                if not durability.is_durable(shown):
                    response = await _when_durable(response, durability, shown, exchange)
            is_large = response is not None and (
                len(response.body) > PIECE or response.more is not None
            )
            if is_large and isinstance(call.in_flight, InFlightRequest):
                try:
                    await call.in_flight.begin_sending()
                except ApiError as error:
                    response, is_large = _shown(error, exchange), False
            if auditor is not None and call.audited is not None:
                auditor.completed(call.audited, response)
            if response is None:
                return  # a watch, which has been answered
            labels = call.labels or Labels(exchange.scope["method"])
            self._metrics.requests.count(labels, response.code, time.perf_counter() - started)
            if not is_large:
                call.end()  # a large answer counts until the client has taken it
            await exchange.answer(response)
        finally:
            if call.in_flight is not None:
                call.end()

    async def _respond(self, exchange: HttpExchange, call: RequestState) -> Response | None:
        scope = exchange.scope
        try:
            request = await self._request(exchange, call)
            target = self._router.find(request.path)
            if target is None:
                return await self._page(request, exchange, call)
            call.target = target
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
            call.labels = labels_of(target, verb)
            if target.subresource is LOG:
                return await self._log(request, target, exchange, call)
            kind = READ_ONLY if verb in _READING else MUTATING
            call.in_flight = in_flight = self._flow.request(
                request.user, kind, exempt=exchange.is_in_process
            )
            if verb == "watch":
                await self._watch(request, target, exchange, call)
                return None
            if kind is MUTATING:
                request = replace(request, body=await exchange.read(in_flight))
                if call.audited is not None:
                    call.audited.request_body = request.body
            REQUEST.set(call)
            several = verb in SEVERAL
            if not exchange.is_in_process:
                await begin_work(Priority.LIST if several else Priority.REQUEST)
            await in_flight.begin(self._handlers.seats(request, target) if several else 1)
            return await self._handlers.handle(request, target, verb)
        except ApiError as error:
            if call.audited is not None and call.audited.attributes is None:
                self._describe(call.audited, exchange)
            return _shown(error if self._keeps_codes else as_server_error(error), exchange)
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
        self, request: ApiRequest, attributes: Attributes, version: str, call: RequestState
    ) -> None:
        """403 unless the user may do it."""
        decision = self._authorizer.authorize(request.user, attributes)
        audited = call.audited
        if audited is not None:
            audited.attributes, audited.decision = attributes, decision
            audited.version = version
        if not decision.allowed:
            raise refusal(request.user, attributes, decision.reason)

    async def _page(
        self, request: ApiRequest, exchange: HttpExchange, call: RequestState
    ) -> Response:
        self._authorize(request, path_attributes(request), version_in(request.path), call)
        exempt = exchange.is_in_process or self._endpoints.is_health(request)
        call.in_flight = self._flow.request(request.user, READ_ONLY, exempt=exempt)
        if not exempt:
            await begin_work()
        await call.in_flight.begin()
        return await self._endpoints.answer(request)

    async def _request(self, exchange: HttpExchange, call: RequestState) -> ApiRequest:
        scope = exchange.scope
        headers = exchange.headers
        exchange.name_request(headers.get("audit-id"))
        audited = call.audited
        if audited is not None:
            audited.user_agent, audited.audit_id = headers.get("user-agent", ""), exchange.audit_id
        component = exchange.component
        if component is not None:
            user = _user_of(component)
        else:
            user = await self._authentication.user_for(_credentials(headers, exchange))
        if audited is not None:
            audited.user = user
        for name in headers:
            if name[:_PREFIX] == IMPERSONATE:
                user = self._impersonated(user, scope)
                if audited is not None:
                    audited.impersonated = user
                break
        # Not decoded yet: an escaped slash in a name does not divide it.
        path = scope["raw_path"].decode("latin-1")
        query = parse_query(scope["query_string"]) if scope["query_string"] else {}
        early = exchange.sees_pending_writes
        # The audit log may show what the client does not read.
        is_read = WITHOUT_OBJECT not in headers or not exchange.is_in_process or audited is not None
        return ApiRequest(scope["method"], path, query, headers, user, b"", early, is_read)

    def _impersonated(self, user: User, scope: Scope) -> User:
        """The user that the caller impersonates, if they may."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        return impersonated(user, pairs, scope["path"], self._authorizer) or user

    # --- watches ---

    async def _log(
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: RequestState
    ) -> Response | None:
        """Long-running, as in Kubernetes, with `follow` or without it: a log that takes long delays no other read."""
        if not exchange.is_in_process:
            call.in_flight = self._flow.long_running(request.user)
        logs = self._handlers.logs
        if not request.flag("follow"):
            return await logs.read(request, target)
        follower = await logs.follow(request, target)
        if isinstance(follower, Response):
            return follower
        response = follower.response
        if call.durability is not None:
            response = response._replace(chunks=call.durability.of_chunks(response.chunks))
        self._watchers.add(follower)
        leaving = asyncio.create_task(_stop_when_gone(follower, exchange.receive))
        if self._closing:
            follower.stop()
        try:
            await exchange.stream(response, lambda _: None)
        except ClientGoneError:
            log.info("log of %s: the client takes nothing, giving it up", request.path)
        finally:
            self._watchers.discard(follower)
            leaving.cancel()
        return None

    async def _watch(
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: RequestState
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
        self, request: ApiRequest, target: Target, exchange: HttpExchange, call: RequestState
    ) -> None:
        assert isinstance(call.in_flight, InFlightRequest)
        if not exchange.is_in_process:
            await begin_work(Priority.LIST)
        await call.in_flight.begin()
        watcher, response = await self._handlers.watch(request, target)
        watcher.is_paced = not exchange.is_in_process
        if call.durability is not None:
            response = response._replace(chunks=call.durability.of_chunks(response.chunks))
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


async def _when_durable(
    response: Response, durability: Durability, shown: int, exchange: HttpExchange
) -> Response:
    """The response when all writes up to a revision are durable, or an error if one of them failed."""
    try:
        await durability.until_durable(shown)
    except StorageError as error:
        return _shown(api_error_for(error), exchange)
    return response


def _shown(error: ApiError, exchange: HttpExchange) -> Response:
    """An error in the format that the client reads."""
    response = error_response(error)
    accept = exchange.header(b"accept").decode("latin-1")
    # Clients that ask for YAML get errors as JSON, which is YAML, too.
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


def _credentials(headers: Mapping[str, str], exchange: HttpExchange) -> Credentials:
    authorization = headers.get("authorization")
    if not authorization:
        return Credentials(None, exchange.certificate)
    is_bearer = authorization[:_SCHEME].lower() == _BEARER
    token = authorization[_SCHEME:].strip() if is_bearer else ""
    return Credentials(token or None, exchange.certificate)
