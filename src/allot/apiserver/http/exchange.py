"""One request and its answer, whichever way they come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

from allot.apiserver.http.flow_control import InFlightRequest
from allot.apiserver.http.responses import Response, StreamResponse
from allot.client.component_users import ComponentUser

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientGoneError(Exception):
    """The client disconnected, or was disconnected, before the response was sent."""


class Exchange(Protocol):
    """What the application asks of a request and does with its answer."""

    @property
    def is_in_process(self) -> bool:
        """Whether its client takes the answer at once and needs no limits: nothing has to be waited for."""

    @property
    def sees_pending_writes(self) -> bool:
        """Whether its client may see writes before they are durable."""

    @property
    def component(self) -> ComponentUser | None:
        """The component of the cluster that asks, which needs no credentials."""

    @property
    def certificate(self) -> Any:
        """The certificate of the client, if it showed one."""

    @property
    def scope(self) -> Scope:
        """The request as ASGI describes it."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str:
        """Still escaped: an escaped slash in a name does not divide it."""

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters; raises 400 if they cannot be read."""

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers as text. Of a repeated one the first counts."""

    @property
    def impersonates(self) -> bool:
        """Whether a header names another user."""

    @property
    def audit_id(self) -> str:
        """Names the request in its answer and in the audit log. A client may bring it."""

    @property
    def receive(self) -> Receive:
        """Says when the client is gone."""

    async def read(self, in_flight: InFlightRequest) -> bytes:
        """The whole body; 413 if it is too large, 429 if there is no memory for it now."""

    async def answer(self, response: Response) -> None:
        """Send it; raises `ClientGoneError` when the client was too slow and is cut off."""

    async def stream(self, response: StreamResponse, count: Callable[[int], None]) -> None:
        """Send an answer that goes on; raises `ClientGoneError` when the client takes nothing."""

    def abort(self, reason: str) -> None:
        """End its connection at once, whatever is still to be sent."""
