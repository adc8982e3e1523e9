"""Which feature gates and rules count for questions about a cluster, and where that is known from."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot import features
from allot.cli.errors import CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.snapshots import Source, rules_of_cluster
from allot.client.snapshot import Snapshot
from allot.features import ALL_BY_STAGE, GATES, FeatureGateError, FeatureGates, Stage
from allot.rules import RuleSet

DEFAULTS: Final = "defaults"


class ClusterGates(NamedTuple):
    """The gates, and where they are from: a component of the cluster, or defaults."""

    gates: FeatureGates
    rules: RuleSet
    source: str
    assumption: str = ""
    """What was assumed about a cluster that does not say it."""


def gates_of_cluster(
    snapshot: Snapshot, source: Source, option: str, asked: RuleSet | None
) -> ClusterGates:
    """Those of the cluster, with what the command line says instead; `CommandError` if that does not go together."""
    rules = rules_of_cluster(snapshot, source, asked)
    checked = gates_from_option(option, rules)
    if source.files:
        return ClusterGates(checked, rules, DEFAULTS)
    told = snapshot.gates
    if not told.component:
        return _assumed(checked, rules, option, told.unread)
    overrides = features.parse_feature_gates(option)
    states = {name: told.states.get(name, _when_unknown(name)) for name in GATES}
    if not overrides:
        base = checked.with_rules(rules).switched(states)
        return ClusterGates(base, rules, told.component)
    stages = {ALL_BY_STAGE[name] for name in overrides if name in ALL_BY_STAGE}
    kept = {name: state for name, state in states.items() if GATES[name].stage not in stages}
    try:
        gates = features.with_overrides(kept | overrides, rules)
    except FeatureGateError as error:
        raise CommandError(f"--feature-gates: {error}") from None
    return ClusterGates(gates, rules, told.component)


def _assumed(checked: FeatureGates, rules: RuleSet, option: str, why: str) -> ClusterGates:
    gates, whose = checked, "allot's defaults"
    if rules is RuleSet.V1_38 and not option:
        gates, whose = features.KUBERNETES_DEFAULTS, "the defaults of Kubernetes v1.38"
    elif option:
        whose += " with those of --feature-gates"
    text = f"feature gates of the cluster could not be read ({why}); assumed are {whose}"
    return ClusterGates(gates, rules, DEFAULTS, text)


def _when_unknown(name: str) -> bool:
    """A gate that a component does not know: removed since it is always on, or newer than the component."""
    return GATES[name].stage is Stage.GA
