"""Objects of a cluster at one moment, listed from an API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.client.client import Client
from allot.client.history import resource_version_at
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.retries import RetryPolicy
from allot.client.server_gates import read_server_gates
from allot.client.snapshot import Snapshot
from allot.client.snapshot_lists import server_version, take_snapshot
from allot.public.errors import ClusterError

MAX_ATTEMPTS: Final = 3
"""A user waits for the answer: an unreachable server is reported soon."""


class Reading(NamedTuple):
    """What to read from a cluster."""

    resources: Sequence[Resource[Any]]
    namespace: str = ""
    """The namespace to list if the user may not list all namespaces."""
    scopes: Mapping[Resource[Any], Scope] = {}
    """Resources of which only a part is read."""
    gate_pages: Sequence[str] = ()
    """Feature gates are read from the first of these endpoints that has them."""
    at: datetime | None = None
    """The time to read the objects of; None for now."""


async def read_cluster(
    kubeconfig: str | Path | None, context: str | None, user_agent: str, what: Reading
) -> Snapshot:
    """The objects of a cluster; `ClusterError` if it cannot be read."""
    from allot.client.connection import connect  # loads an HTTP client, which files do not need
    from allot.client.errors import ClientError

    client: Client | None = None
    try:
        client = connect(kubeconfig, context, user_agent=user_agent)
        return await read_objects(client, what)
    except ClientError as error:
        raise ClusterError(str(error)) from error
    finally:
        if client is not None:
            await client.close()


async def read_objects(client: Client, what: Reading) -> Snapshot:
    """The objects that a client can list, the server's version, and its feature gates if asked for."""
    brief = Client(client.transport, retry=RetryPolicy(max_attempts=MAX_ATTEMPTS))
    then = await resource_version_at(brief, what.at) if what.at is not None else ""
    snapshot = await take_snapshot(brief, what.resources, what.namespace, what.scopes, then)
    snapshot.time = what.at
    snapshot.server_version = await server_version(brief)
    if what.gate_pages:
        snapshot.gates = await read_server_gates(brief, what.gate_pages)
    return snapshot
