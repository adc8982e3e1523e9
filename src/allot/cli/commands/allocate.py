"""The options of `allot allocate`."""

from __future__ import annotations

from typing import Any, Final

import click

from allot.cli.gate_options import rules_option
from allot.rules import RuleSet

DEFAULT_STEPS: Final = 100_000


@click.command()
@click.option(
    "--steps",
    "max_steps",
    type=click.IntRange(min=1),
    default=DEFAULT_STEPS,
    show_default=True,
    help="How many steps a search may take before it is given up.",
)
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="Where claims do not fit, add `explanation` and `proposals`: why, and what would help.",
)
@rules_option(RuleSet.V1_38)
@click.argument("file", type=click.File("rb"), default="-")
def allocate(**options: Any) -> int:
    """Answer scenarios: which devices does each claim get?

    Reads one JSON scenario per line from FILE (default: standard input) and writes one answer per
    line: `name`, `result` (one allocation per claim, or null if they do not fit), `error` and
    `steps`. Share ids are numbered in order of appearance. With --rules seeds every answer also has
    `rules`.
    """
    from allot.cli.allocate import answer_scenarios

    return answer_scenarios(**options)
