"""`--feature-gates` and `--rules`: the options, and the gates they select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from allot import features
from allot.cli.errors import CommandError
from allot.features import FeatureGateError, FeatureGates
from allot.rules import RuleSet

F = TypeVar("F", bound=Callable[..., Any])


def feature_gates_option(command: F) -> F:
    return click.option(
        "--feature-gates", default="", metavar="A=true,B=false", help="Override feature gates."
    )(command)


def rules_option(default: str) -> Callable[[F], F]:
    """`--rules`; the function gets `rules`, which is None without the option."""

    def decorate(command: F) -> F:
        return click.option(
            "--rules",
            type=click.Choice([rules.value for rules in RuleSet]),
            callback=lambda _context, _option, value: None if value is None else RuleSet(value),
            help="Whose answers, where the KEPs (seeds) and Kubernetes v1.38 differ."
            f" Default: {default}.",
        )(command)

    return decorate


def gate_options(default: str = RuleSet.SEEDS) -> Callable[[F], F]:
    """Both: the function gets `feature_gates` and `rules`, for `gates_from_option`."""

    def decorate(command: F) -> F:
        return feature_gates_option(rules_option(default)(command))

    return decorate


def gates_from_option(
    text: str, rules: RuleSet | None = None, *, warns: bool = True
) -> FeatureGates:
    """The gates of `--feature-gates` under these rules; without rules, under `seeds`.

    Warns about those that Kubernetes v1.38 has locked, and about those that allot does not implement.
    """
    try:
        overrides = features.parse_feature_gates(text)
        gates = features.with_overrides(overrides, rules or RuleSet.SEEDS)
    except FeatureGateError as error:
        raise CommandError(f"--feature-gates: {error}") from None
    for name in features.locked_by_kubernetes(overrides) if warns else ():
        click.echo(f"warning: Kubernetes v1.38 cannot switch off feature gate {name}", err=True)
    for name in features.not_implemented(gates) if warns else ():
        click.echo(
            f"warning: feature gate {name} is on, but allot does not implement it: at most its fields are stored",
            err=True,
        )
    return gates
