"""A request while it is served: the resources that it holds, and what is recorded about it."""

from __future__ import annotations

from allot.apiserver.audit.auditor import Audited
from allot.apiserver.http.durability import Durability
from allot.apiserver.http.flow_control import InFlightRequest, LongRunningRequest
from allot.apiserver.http.metrics import Labels
from allot.apiserver.http.routes import Target


class RequestState:
    """The state of a request while it is served, and the resources it holds."""

    audited: Audited | None = None
    in_flight: InFlightRequest | None = None
    long_running: LongRunningRequest | None = None
    labels: Labels | None = None
    target: Target | None = None
    durability: Durability | None = None
    """None if the client may see what is not durable."""

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
        """Free what it holds. It may be called again."""
        if self.in_flight is not None:
            self.in_flight.end()
            self.in_flight = None
        if self.long_running is not None:
            self.long_running.end()
            self.long_running = None
