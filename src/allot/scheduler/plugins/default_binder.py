"""DefaultBinder: binds the pod to its node."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from allot.client.errors import ApiStatusError, ClientError
from allot.client.resources import PODS
from allot.client.retries import is_worth_repeating
from allot.client.transport import NOT_RUN
from allot.scheduler.framework.bind_errors import BoundElsewhereError, UnknownBindingError
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import BindPlugin
from allot.scheduler.framework.status import SUCCESS, Status, failed
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.scheduler.framework.ordered_binding import OrderedBinding


class DefaultBinder(BindPlugin):
    """Creates a Binding."""

    name: ClassVar[str] = "DefaultBinder"

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        try:
            await self._client.bind(pod.key, pod.uid, node_name)
        except ClientError as error:
            return await self._status_of(error, pod, node_name)
        return SUCCESS

    def ordered_binding(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> OrderedBinding | None:
        if type(self).bind is not DefaultBinder.bind:
            return None  # a subclass binds in its own way
        from allot.scheduler.framework.ordered_binding import OrderedBinding

        return OrderedBinding(self._client, partial(self._send_in_order, pod, node_name))

    def _send_in_order(
        self, pod: PodInfo, node_name: str, client: Client
    ) -> Coroutine[Any, Any, Status | None]:
        sent = client.bind(pod.key, pod.uid, node_name)
        return self._outcome_in_order(sent, pod, node_name)

    async def _outcome_in_order(
        self, sent: Awaitable[object], pod: PodInfo, node_name: str
    ) -> Status | None:
        try:
            await sent
        except ClientError as error:
            is_not_run = isinstance(error, ApiStatusError) and error.code == NOT_RUN
            if is_not_run or is_worth_repeating(error, may_repeat=bool(pod.uid)):
                return None  # repeated once it is known that the write succeeded
            return await self._status_of(error, pod, node_name)
        return SUCCESS

    async def _status_of(self, error: ClientError, pod: PodInfo, node_name: str) -> Status:
        """How a binding ended that was not answered with success."""
        bound_to = await self._node_of(pod) if _may_be_bound(error) else ""
        if bound_to is None:
            return failed(UnknownBindingError(str(error)))
        if bound_to == node_name:
            return SUCCESS  # only the response was lost
        return failed(BoundElsewhereError(bound_to) if bound_to else error)

    async def _node_of(self, pod: PodInfo) -> str | None:
        """The node that the pod is bound to, empty if it is not bound; None if the API server does not answer."""
        try:
            found = await self._client.find(PODS, pod.key)
        except ClientError:
            return None
        return found.node_name if found is not None and found.metadata.uid == pod.uid else ""


def _may_be_bound(error: ClientError) -> bool:
    """Whether the pod may be bound in spite of the error, by this or by another scheduler."""
    return not isinstance(error, ApiStatusError) or error.is_conflict or error.is_server_error
