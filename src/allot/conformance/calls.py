"""The kubelet's calls to a driver: NodePrepareResources and NodeUnprepareResources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import grpc

from allot.conformance.claims import ClaimUnderTest
from allot.conformance.registrations import Registrations
from allot.conformance.results import CheckFailedError
from allot.kubelet.dra.plugin import open_channel
from allot.proto import dra_plugin_pb2
from allot.proto.services import Method, call, node_prepare_resources, node_unprepare_resources

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

Prepared = Mapping[str, dra_plugin_pb2.NodePrepareResourceResponse]
Unprepared = Mapping[str, dra_plugin_pb2.NodeUnprepareResourceResponse]


class DriverCalls:
    """Calls through the driver's own socket."""

    def __init__(self, registrations: Registrations, call_seconds: float) -> None:
        self._registrations = registrations
        self._call_seconds = call_seconds

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        """To the driver's own socket."""
        async with open_channel((await self._registrations.current()).info.endpoint) as channel:
            yield channel

    async def prepare_all(self, *claims: ClaimUnderTest, version: str = "") -> Prepared:
        """NodePrepareResources. Raises `grpc.aio.AioRpcError`."""
        request = dra_plugin_pb2.NodePrepareResourcesRequest(
            claims=[claim.message() for claim in claims]
        )
        answer = await self._call(node_prepare_resources, request, version)
        return dict(answer.claims)

    async def unprepare_all(self, *claims: ClaimUnderTest, version: str = "") -> Unprepared:
        request = dra_plugin_pb2.NodeUnprepareResourcesRequest(
            claims=[claim.message() for claim in claims]
        )
        answer = await self._call(node_unprepare_resources, request, version)
        return dict(answer.claims)

    async def prepare(
        self, *claims: ClaimUnderTest, version: str = ""
    ) -> dict[str, list[dra_plugin_pb2.Device]]:
        """The devices of each claim, by UID. `CheckFailedError` unless all are prepared."""
        try:
            answers = await self.prepare_all(*claims, version=version)
        except grpc.aio.AioRpcError as error:
            raise CheckFailedError(f"NodePrepareResources: {_words(error)}") from error
        _check_answers("NodePrepareResources", claims, answers)
        return {uid: list(answer.devices) for uid, answer in answers.items()}

    async def unprepare(self, *claims: ClaimUnderTest, version: str = "") -> None:
        """`CheckFailedError` unless all are unprepared."""
        try:
            answers = await self.unprepare_all(*claims, version=version)
        except grpc.aio.AioRpcError as error:
            raise CheckFailedError(f"NodeUnprepareResources: {_words(error)}") from error
        _check_answers("NodeUnprepareResources", claims, answers)

    async def refuses(self, claim: ClaimUnderTest, why: str) -> None:
        """The claim must not be prepared: an error about it, or of the whole call."""
        try:
            answers = await self.prepare_all(claim)
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise CheckFailedError(f"the driver does not answer: {_words(error)}") from error
            return
        answer = answers.get(claim.uid)
        if answer is None or not answer.error:
            raise CheckFailedError(f"a claim {why} was prepared without an error")

    async def _call(
        self,
        method: Callable[[str], Method[RequestT, ResponseT]],
        request: RequestT,
        version: str,
    ) -> ResponseT:
        chosen = version or await self._version()
        async with self.channel() as channel:
            return await call(channel, method(chosen), request, timeout_seconds=self._call_seconds)

    async def _version(self) -> str:
        versions = await self._registrations.versions()
        if not versions:
            raise CheckFailedError("the driver announces no version of DRAPlugin")
        return versions[0]


def _check_answers(
    called: str, claims: Iterable[ClaimUnderTest], answers: Prepared | Unprepared
) -> None:
    """`CheckFailedError` unless every claim has an answer without an error."""
    for claim in claims:
        answer = answers.get(claim.uid)
        if answer is None:
            raise CheckFailedError(f"{called} has no answer about a claim")
        if answer.error:
            raise CheckFailedError(f"{called}: {answer.error}")


def _words(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {error.details()}"
