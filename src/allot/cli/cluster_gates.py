"""Feature gates and rules for questions about a cluster, with `--feature-gates` and `--rules`."""

from __future__ import annotations

from allot import features
from allot.cli.errors import CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.snapshots import SnapshotSource, rules_of_cluster
from allot.client import cluster_gates
from allot.client.cluster_gates import ClusterGates
from allot.client.snapshot import Snapshot
from allot.features import FeatureGateError
from allot.rules import RuleSet


def gates_of_cluster(
    snapshot: Snapshot, source: SnapshotSource, option: str, asked: RuleSet | None
) -> ClusterGates:
    """The cluster's gates with those of the command line; `CommandError` if they do not go together."""
    rules = rules_of_cluster(snapshot, source, asked)
    checked = gates_from_option(option, rules)
    if source.files and not snapshot.server_version:
        return ClusterGates(checked, rules)
    overrides = features.parse_feature_gates(option)
    try:
        return cluster_gates.gates_of_cluster(snapshot, overrides, rules, "--feature-gates")
    except FeatureGateError as error:
        raise CommandError(f"--feature-gates: {error}") from None
