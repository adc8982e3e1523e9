"""Feature gates as arguments: a mapping of overrides, or a `FeatureGates`."""

from __future__ import annotations

from collections.abc import Mapping

from allot import features
from allot.features import FeatureGates
from allot.rules import RuleSet


def feature_gates(
    overrides: FeatureGates | Mapping[str, bool] | None = None, rules: RuleSet | str = RuleSet.SEEDS
) -> FeatureGates:
    """allot's default gates with overrides, under these rules: `seeds` (the KEPs) or `v1.38` (Kubernetes).

    `FeatureGateError` for unknown gates, and for gates that contradict each other. A `FeatureGates` is
    returned unchanged.
    """
    if isinstance(overrides, FeatureGates):
        return overrides
    return features.with_overrides(overrides or {}, rule_set(rules))


def rule_set(rules: RuleSet | str) -> RuleSet:
    try:
        return RuleSet(rules)
    except ValueError:
        known = ", ".join(RuleSet)
        raise ValueError(f"rules: {rules!r} is not known; available: {known}") from None
