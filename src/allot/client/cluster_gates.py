"""The feature gates and rules of a cluster, and their source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from allot import features
from allot.client.snapshot import Snapshot
from allot.features import ALL_BY_STAGE, GATES, FeatureGates, Stage
from allot.rules import RuleSet

DEFAULTS: Final = "defaults"


class ClusterGates(NamedTuple):
    """The gates, and their source: a component of the cluster, or defaults."""

    gates: FeatureGates
    rules: RuleSet
    source: str = DEFAULTS
    assumption: str = ""
    """The gates assumed for a cluster that does not expose them."""


def gates_of_cluster(
    snapshot: Snapshot,
    overrides: Mapping[str, bool],
    asked: RuleSet | None,
    option: str = "feature_gates",
) -> ClusterGates:
    """The gates of the cluster with overrides; `FeatureGateError` if they contradict each other.

    `option` is the name of the overrides in messages.
    """
    rules = rules_of_cluster(snapshot, asked)
    checked = features.with_overrides(overrides, rules)
    server_gates = snapshot.gates
    if not server_gates.component:
        return _assumed(checked, rules, server_gates.unread, option if overrides else "")
    states = {name: server_gates.states.get(name, _when_unknown(name)) for name in GATES}
    if not overrides:
        base = checked.with_rules(rules).switched(states)
        return ClusterGates(base, rules, server_gates.component)
    stages = {ALL_BY_STAGE[name] for name in overrides if name in ALL_BY_STAGE}
    kept = {name: state for name, state in states.items() if GATES[name].stage not in stages}
    gates = features.with_overrides(kept | dict(overrides), rules)
    return ClusterGates(gates, rules, server_gates.component)


def rules_of_cluster(snapshot: Snapshot, asked: RuleSet | None) -> RuleSet:
    """The rules in force: those given, those a component exposes, or the default for its API server.

    If no component exposes them and the API server is not allot's, another scheduler schedules the pods.
    """
    if asked is not None:
        return asked
    if snapshot.gates.rules is not None:
        return snapshot.gates.rules
    return RuleSet.SEEDS if "+allot." in snapshot.server_version else RuleSet.V1_38


def _assumed(checked: FeatureGates, rules: RuleSet, why: str, option: str) -> ClusterGates:
    gates, whose = checked, "allot's defaults"
    if rules is RuleSet.V1_38 and not option:
        gates, whose = features.KUBERNETES_DEFAULTS, "the defaults of Kubernetes v1.38"
    elif option:
        whose += f" with those of {option}"
    text = f"feature gates of the cluster could not be read ({why}); assumed are {whose}"
    return ClusterGates(gates, rules, DEFAULTS, text)


def _when_unknown(name: str) -> bool:
    """The state of a gate that a component does not have: removed because it is locked on, or newer than the component."""
    return GATES[name].stage is Stage.GA
