"""The cluster under test, and what the runner works on it with."""

from __future__ import annotations

from typing import NamedTuple

from tests.acceptance.runner.kubectl import Kubectl
from tests.acceptance.runner.nodes import PlayedNodes
from tests.acceptance.runner.rest import RestClient


class Cluster(NamedTuple):
    client: RestClient
    kubectl: Kubectl | None
    nodes: PlayedNodes | None
    """None if the cluster plays the kubelets of all nodes itself."""
    short_timeout_scheduler: str
    """The scheduler profile with a binding timeout of 4 seconds."""
    patience: float
    """Every time limit is multiplied by it."""
