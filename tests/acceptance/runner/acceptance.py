"""The way in: a runner for the cluster of a kubeconfig."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.runner.cluster import Cluster
from tests.acceptance.runner.kubectl import Kubectl
from tests.acceptance.runner.nodes import PlayedNodes
from tests.acceptance.runner.rest import RestClient
from tests.acceptance.runner.running import ScenarioRun
from tests.acceptance.runner.scenarios import Scenario


class AcceptanceRunner:
    """Runs scenarios, one or many at a time, on one cluster."""

    def __init__(self, cluster: Cluster, skipped_features: Iterable[str]) -> None:
        self._cluster = cluster
        self._skipped_features = frozenset(skipped_features)

    @property
    def client(self) -> RestClient:
        return self._cluster.client

    def reason_to_skip(self, scenario: Scenario) -> str:
        """What the scenario needs and does not get here; empty if it can run."""
        skipped = self._skipped_features.intersection(scenario.features)
        if skipped:
            return f"without {', '.join(sorted(skipped))}"
        if scenario.needs_kubectl and self._cluster.kubectl is None:
            return "there is no kubectl on this machine"
        return ""

    def run(self, scenario: Scenario) -> None:
        """Raises ScenarioFailedError if the cluster does not behave as the scenario says."""
        ScenarioRun(self._cluster, scenario).run()


@contextmanager
def open_runner(
    kubeconfig: Path,
    *,
    kubectl: Path | None,
    simulate_nodes: bool,
    skip_features: Iterable[str] = (),
    short_timeout_scheduler: str = "short-binding-timeout",
    patience: float = 1.0,
) -> Iterator[AcceptanceRunner]:
    """A runner with the rights of the kubeconfig's user, who should be an administrator.

    `simulate_nodes` plays the kubelets of the nodes that scenarios bring along; without it the
    cluster has to do that for every node object.
    """
    with (
        tempfile.TemporaryDirectory(prefix="acceptance-home-") as home,
        RestClient.from_kubeconfig(kubeconfig) as client,
    ):
        program = Kubectl(kubectl, kubeconfig, Path(home)) if kubectl else None
        nodes = PlayedNodes(client) if simulate_nodes else None
        if nodes is not None:
            nodes.start()
        try:
            cluster = Cluster(client, program, nodes, short_timeout_scheduler, patience)
            yield AcceptanceRunner(cluster, skip_features)
        finally:
            if nodes is not None:
                nodes.stop()
