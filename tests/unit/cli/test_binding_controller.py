"""`allot binding-controller` says when its driver has no slices."""

from __future__ import annotations

import asyncio

import pytest

from allot.cli.binding_controller import warn_about_driver
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.testing.servers import TOKEN, LocalServer

SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "fabric.example.com",
        "allNodes": True,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d"}],
    },
}


@pytest.mark.parametrize(
    ("driver", "warning"),
    [
        ("fabric.example.com", ""),
        (
            "fabirc.example.com",
            "warning: no ResourceSlice is of driver fabirc.example.com; did you mean fabric.example.com?\n",
        ),
        ("other.domain", "warning: no ResourceSlice is of driver other.domain\n"),
    ],
)
def test_a_driver_without_slices(
    driver: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await server.post("/apis/resource.k8s.io/v1/resourceslices", SLICE)
            client = Client(InProcessTransport(server.server.app, TOKEN))
            await warn_about_driver(client, driver)

    asyncio.run(story())

    assert capsys.readouterr().err == warning


def test_slices_that_cannot_be_read_are_left_to_the_controller(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story() -> None:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, "wrong"))
            await warn_about_driver(client, "fabric.example.com")

    asyncio.run(story())

    assert capsys.readouterr().err == ""
