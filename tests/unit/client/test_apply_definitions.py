"""Manifests with a CustomResourceDefinition and objects of the kind it defines."""

from __future__ import annotations

import asyncio

import pytest

from allot.client.apply import UnknownKindError, apply
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.testing.servers import TOKEN, LocalServer
from tests.custom_resources.manifests import COMPUTE_DOMAINS

DOMAIN = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "ComputeDomain",
    "metadata": {"name": "cd"},
    "spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "t"}}},
}


def test_objects_wait_for_their_definition() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            first = await apply(client, [DOMAIN, COMPUTE_DOMAINS])
            again = await apply(client, [COMPUTE_DOMAINS, DOMAIN])

        assert [each.kind for each in first] == ["CustomResourceDefinition", "ComputeDomain"]
        assert [each.metadata.uid for each in again] == [each.metadata.uid for each in first]

    asyncio.run(run())


def test_a_kind_that_is_not_defined_is_unknown() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            with pytest.raises(UnknownKindError, match="no kind ComputeDomain"):
                await apply(client, [DOMAIN])

    asyncio.run(run())
