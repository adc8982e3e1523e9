"""Where objects come from: what may not be listed is left out, and said so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from allot.client import resources
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.dashboard.cluster_source import FixedCluster, LiveSource
from allot.questions.observed_cluster import UnreadableError
from allot.testing.builders import a_slice
from allot.testing.observed_clusters import observed


class RefusingClient:
    """An API server that answers every list with an error."""

    def __init__(self, code_of: Callable[[Resource[Any], str], int]) -> None:
        self._code_of = code_of
        self.asked: list[tuple[str, str]] = []

    async def list_page(self, resource: Resource[Any], scope: Scope, **_options: object) -> None:
        self.asked.append((resource.plural, scope.namespace))
        raise ApiStatusError(self._code_of(resource, scope.namespace), message="no")

    async def request(self, _method: str, path: str, *_query: object, **_options: object) -> None:
        assert path == "/history"
        raise ApiStatusError(404, message="no history")

    async def close(self) -> None:
        return


def started(client: RefusingClient) -> LiveSource:
    async def run() -> LiveSource:
        source = LiveSource("test", observed(), cast("Client", client), "team")
        await source.start()
        await source.stop()
        return source

    return asyncio.run(run())


def test_what_may_not_be_listed_is_left_out() -> None:
    client = RefusingClient(lambda _resource, _namespace: 403)

    source = started(client)

    assert "pods could not be read: no" in source.notes
    assert ("pods", "team") in client.asked  # only there, perhaps
    assert ("nodes", "team") not in client.asked
    with pytest.raises(UnreadableError, match="pods"):
        source.observed()


def test_what_the_server_does_not_have() -> None:
    source = started(RefusingClient(lambda _resource, _namespace: 404))

    why = source.objects.unread[resources.RESOURCE_SLICES]
    assert why == "the server does not have them"


def test_another_error_is_not_hidden() -> None:
    with pytest.raises(ApiStatusError):
        started(RefusingClient(lambda _resource, _namespace: 500))


def test_files_are_told_once() -> None:
    source = FixedCluster("files", observed(a_slice()))
    told: list[str] = []
    source.add_handler(lambda resource, _old, _new: told.append(resource.plural))

    asyncio.run(source.start())

    assert told == ["resourceslices"]
