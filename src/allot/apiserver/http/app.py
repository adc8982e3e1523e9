"""What answers requests, of connections as an ASGI application and of links. What is asked for is decided in `handlers`.

Authentication and authorization come first: the body of a request that is not allowed is not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import lru_cache
from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, as_server_error
from allot.apiserver.audit.auditor import Audited, Auditor
from allot.apiserver.auth.authentication import Authentication, Credentials, User
from allot.apiserver.auth.authorization import (
    Attributes,
    Authorizer,
    IsGranted,
    nothing_is_granted,
    refusal,
)
from allot.apiserver.auth.impersonation import impersonated
from allot.apiserver.dynamic_admission.served_request import REQUEST
from allot.apiserver.http.durability import Durability
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from allot.apiserver.http.flow_control import MUTATING, READ_ONLY, FlowControl, InFlightRequest
from allot.apiserver.http.handlers import SEVERAL, Handlers
from allot.apiserver.http.http_exchange import PIECE, HttpExchange, TransferLimits
from allot.apiserver.http.metrics import Labels, Metrics
from allot.apiserver.http.negotiation import error_format
from allot.apiserver.http.operations import Operation, operation_of
from allot.apiserver.http.request_attributes import (
    attributes_of,
    path_attributes,
    target_attributes,
    version_in,
)
from allot.apiserver.http.request_state import RequestState
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import Response, error_response, in_format
from allot.apiserver.http.routes import USUAL_VERBS, Router, Target, verb_of
from allot.apiserver.http.streams import OpenStream, Streams
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

_GET: Final = ("GET", "HEAD")
_BEARER: Final = "bearer "
_SCHEME: Final = len(_BEARER)
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
        is_granted: IsGranted = nothing_is_granted,
    ) -> None:
        self._handlers = handlers
        self._endpoints = endpoints
        self._authentication = authentication
        self._authorizer = authorizer
        # The audit log records the reason of every decision, so each is made by the authorizer.
        self._is_granted = is_granted if auditor is None else nothing_is_granted
        self._count = metrics.requests.count
        self._flow = flow
        self._exempt = flow.exempt
        self._router = Router(served)
        self._caches = caches
        self._keeps_codes = MISTAKES_ARE_UNPROCESSABLE in gates
        self.transfer_limits = transfer_limits
        self._auditor = auditor
        self._streams = Streams(handlers, flow, metrics, auditor)

    def close(self) -> None:
        """Let all watches end, so that their clients come back to a server that lives."""
        self._streams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.serve(HttpExchange(scope, receive, send, self.transfer_limits))

    async def serve(self, exchange: Exchange) -> None:
        """Answer a request, however it came here."""
        started = time.perf_counter()
        auditor = self._auditor
        call = RequestState()
        if auditor is not None:
            call.audited = auditor.begin(exchange.scope, exchange.headers, exchange.audit_id)
        if not exchange.sees_pending_writes:
            call.durability = Durability(self._caches)
        try:
            response = await self._respond(exchange, call)
            if isinstance(response, OpenStream):
                await self._streams.send(response, exchange)
                if auditor is not None and call.audited is not None:
                    auditor.completed(call.audited, None)
                return
            if call.durability is not None and call.target is not None:
                response = await _when_durable(response, call.durability, call.target, exchange)
            if len(response.body) > PIECE or response.more is not None:
                response = await _to_send(response, exchange, call)
            else:
                call.end()
            if auditor is not None and call.audited is not None:
                auditor.completed(call.audited, response)
            labels = call.labels or Labels(exchange.method)
            self._count(labels, response.code, time.perf_counter() - started)
            await exchange.answer(response)
        except ClientGoneError:
            return
        except asyncio.CancelledError:
            if not self._streams.is_closing:
                raise
            exchange.abort("shutdown")
        finally:
            if call.in_flight is not None or call.long_running is not None:
                call.end()

    async def _respond(self, exchange: Exchange, call: RequestState) -> Response | OpenStream:
        try:
            component = exchange.component
            if component is not None:
                user = _user_of(component)
            else:
                user = await self._authentication.user_for(_credentials(exchange))
            request = self._request(user, exchange, call.audited)
            call.target = target = self._router.find(request.path)
            if target is None:
                return await self._page(request, exchange, call)
            watch = request.method in _GET and "watch" in request.query and request.flag("watch")
            operation = operation_of(request.method, target, watch=watch)
            if operation is None:
                raise self._not_allowed(request, target, call)
            if not self._is_granted(request.user, operation.action, target.namespace):
                attributes = attributes_of(request, target, operation.action)
                self._authorize(request, attributes, target.version, call)
            call.labels = operation.labels
            if operation.is_long_running:
                return await self._streams.open(request, target, operation, exchange, call)
            kind, is_near = operation.kind, exchange.is_in_process
            in_flight = self._exempt(kind) if is_near else self._flow.request(request.user, kind)
            call.in_flight = in_flight
            if kind is MUTATING:
                request.body = await exchange.read(in_flight)
                if call.audited is not None:
                    call.audited.request_body = request.body
            REQUEST.set(call)
            if not is_near:
                await self._take_seats(request, target, operation, in_flight)
            return await self._handlers.handle(request, target, operation)
        except ApiError as error:
            if call.audited is not None and call.audited.attributes is None:
                self._describe(call.audited, exchange)
            return _shown(error if self._keeps_codes else as_server_error(error), exchange)
        except ClientGoneError:
            raise
        except Exception:
            log.exception("%s %s failed", exchange.method, exchange.scope["path"])
            return _shown(api_errors.internal("internal error; see the server log"), exchange)

    async def _take_seats(
        self, request: ApiRequest, target: Target, operation: Operation, in_flight: InFlightRequest
    ) -> None:
        several = operation.verb in SEVERAL
        await begin_work(Priority.LIST if several else Priority.REQUEST)
        seats = self._handlers.seats(request, target) if several else 1
        if not in_flight.begins(seats):
            await in_flight.begin(seats)

    def _describe(self, audited: Audited, exchange: Exchange) -> None:
        """What was asked for, of a request that was answered before it was authorized."""
        with suppress(ApiError):
            method, path = exchange.method, exchange.path
            request = ApiRequest(method, path, exchange.query, {}, audited.user or User(""))
            target = self._router.find(path)
            if target is None:
                audited.attributes = path_attributes(request)
            else:
                verb = verb_of(method, target, watch=request.flag("watch"))
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

    def _not_allowed(self, request: ApiRequest, target: Target, call: RequestState) -> ApiError:
        """405 for a method that the target does not have; 403 for users who may not even try."""
        attributes = target_attributes(request, target, None)
        self._authorize(request, attributes, target.version, call)
        resource = target.resource
        if resource.custom is not None and request.method in USUAL_VERBS:
            return api_errors.not_supported(resource, USUAL_VERBS[request.method])
        if request.flag("watch") and "list" in resource.verbs and not target.subresource:
            error = api_errors.not_supported(resource, "watch")
            error.warnings.append(deprecation_warning(resource.gvk(target.version)))
            return error
        return api_errors.method_not_allowed()

    async def _page(self, request: ApiRequest, exchange: Exchange, call: RequestState) -> Response:
        self._authorize(request, path_attributes(request), version_in(request.path), call)
        exempt = exchange.is_in_process or self._endpoints.is_health(request)
        call.in_flight = self._flow.request(request.user, READ_ONLY, exempt=exempt)
        if not exempt:
            await begin_work()
        await call.in_flight.begin()
        return await self._endpoints.answer(request)

    def _request(self, user: User, exchange: Exchange, audited: Audited | None) -> ApiRequest:
        headers = exchange.headers
        if audited is not None:
            audited.user = user
        if exchange.impersonates:
            user = self._impersonated(user, exchange.scope)
            if audited is not None:
                audited.impersonated = user
        # The audit log may show what the client does not read.
        is_read = WITHOUT_OBJECT not in headers or not exchange.is_in_process or audited is not None
        return ApiRequest(
            exchange.method, exchange.path, exchange.query, headers, user, b"", is_read
        )

    def _impersonated(self, user: User, scope: Scope) -> User:
        """The user that the caller impersonates, if they may."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        return impersonated(user, pairs, scope["path"], self._authorizer) or user


async def _to_send(response: Response, exchange: Exchange, call: RequestState) -> Response:
    """A large answer, which counts until the client has taken it, or an error if it cannot be sent now."""
    if call.in_flight is not None:
        try:
            await call.in_flight.begin_sending()
        except ApiError as error:
            call.end()
            return _shown(error, exchange)
    return response


async def _when_durable(
    response: Response, durability: Durability, target: Target, exchange: Exchange
) -> Response:
    """The response when all writes that it may show are durable, or an error if one of them failed."""
    is_read = exchange.method in ("GET", "HEAD")
    # What was deleted is shown as it was before.
    shown = response.revision if exchange.method != "DELETE" else 0
    if not shown:
        shown = durability.last_read(target.resource) if is_read else durability.last_shown
    if durability.is_durable(shown):
        return response
    try:
        await durability.until_durable(shown)
    except StorageError as error:
        return _shown(api_error_for(error), exchange)
    return response


def _shown(error: ApiError, exchange: Exchange) -> Response:
    """An error in the format that the client reads."""
    response = error_response(error)
    accept = exchange.headers.get("accept", "")
    # Clients that ask for YAML get errors as JSON, which is YAML, too.
    return in_format(response, "protobuf") if error_format(accept) == "protobuf" else response


@lru_cache(maxsize=1024)
def _user_of(component: ComponentUser) -> User:
    return User(component.name, groups=component.groups)


def _credentials(exchange: Exchange) -> Credentials:
    authorization = exchange.headers.get("authorization")
    if not authorization:
        return Credentials(None, exchange.certificate)
    is_bearer = authorization[:_SCHEME].lower() == _BEARER
    token = authorization[_SCHEME:].strip() if is_bearer else ""
    return Credentials(token or None, exchange.certificate)
