"""Following the cluster that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allot.cli.question_options import ClusterArguments
from allot.cli.which_cluster import chosen_kubeconfig
from allot.client.resources import Resource
from allot.client.wall_clock import wall_clock

if TYPE_CHECKING:
    from allot.questions.live_cluster import ChangeHandler, LiveCluster
    from allot.questions.reconnecting_cluster import ReconnectingCluster


def follow(
    cluster: ClusterArguments,
    agent: str,
    kinds: tuple[Resource[Any], ...],
    handler: ChangeHandler | None = None,
) -> ReconnectingCluster:
    """These kinds of the cluster, once it runs; `CommandError` if the cluster does not answer now.

    `handler` is called for every change.
    """
    from allot.client.connection import connect
    from allot.client.kubeconfig import find_access
    from allot.questions.live_cluster import LiveCluster
    from allot.questions.reconnecting_cluster import ReconnectingCluster

    base = cluster.load(agent, kinds=())  # says what is wrong if the cluster does not answer
    kubeconfig = chosen_kubeconfig(cluster.kubeconfig, cluster.context)
    access = find_access(kubeconfig, cluster.context).load()

    def address() -> str:
        return find_access(kubeconfig, cluster.context).load().server

    def make() -> LiveCluster:
        client = connect(kubeconfig, cluster.context, user_agent=agent)
        live = LiveCluster(client, base, kinds, access.namespace)
        if handler is not None:
            live.add_handler(handler)
        return live

    title = "  ".join(str(each) for each in (cluster.context, kubeconfig) if each) or access.server
    return ReconnectingCluster(make, address, base, title, wall_clock)
