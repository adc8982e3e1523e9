"""A client for a Kubernetes cluster, as kubectl would connect to it."""

from __future__ import annotations

from pathlib import Path

from allot.client.client import Client
from allot.client.http import ConnectionLimits, HttpTransport
from allot.client.kubeconfig import find_access
from allot.client.rate_limits import RequestLimit


def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    limit: RequestLimit | None = None,
    connections: ConnectionLimits | None = None,
    user_agent: str = "allot",
) -> Client:
    """A client. The kubeconfig is read with the first request."""
    source = find_access(kubeconfig, context)
    transport = HttpTransport(source, connections or ConnectionLimits(), user_agent)
    return Client(transport, limit=limit, prefers_protobuf=True)
