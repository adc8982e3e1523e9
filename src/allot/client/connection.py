"""A client for a Kubernetes cluster, as kubectl would connect to it."""

from __future__ import annotations

from pathlib import Path

from allot.client.client import Client
from allot.client.http import ConnectionLimits, HttpTransport
from allot.client.kubeconfig import AccessSource, find_access
from allot.client.rate_limits import RequestLimit
from allot.client.service_account import ServiceAccountAccess


def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    limit: RequestLimit | None = None,
    connections: ConnectionLimits | None = None,
    user_agent: str = "allot",
    service_account: tuple[str, str] | None = None,
) -> Client:
    """A client. The kubeconfig is read with the first request.

    With a `service_account`, by namespace and name, the user of the kubeconfig only requests its tokens.
    """
    source: AccessSource = find_access(kubeconfig, context)
    if service_account is not None:
        source = ServiceAccountAccess(source, *service_account)
    transport = HttpTransport(source, connections or ConnectionLimits(), user_agent)
    return Client(transport, limit=limit, prefers_protobuf=True)
