"""The context of validation: feature gates, API version, expression checker."""

from __future__ import annotations

from typing import NamedTuple

from allot import features
from allot.features import FeatureGates
from allot.validation.expressions import AcceptEverything, ExpressionChecker


class Context(NamedTuple):
    """The context of one request."""

    gates: FeatureGates = features.DEFAULTS
    version: str = "v1"
    expressions: ExpressionChecker = AcceptEverything()
