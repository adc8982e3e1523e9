"""`allot top`: devices, pending pods and their causes in a terminal, live."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from allot.cli.errors import CommandError
from allot.cli.live_clusters import follow
from allot.cli.question_options import ClusterArguments, cluster_options

if TYPE_CHECKING:
    from allot.terminal.cluster_source import ClusterSource

_AGENT: Final = "allot-top"
_SWITCH_SECONDS: Final = 0.001
"""Explanations are computed in a thread: keys are answered while they are."""


@click.command()
@cluster_options(
    "-f",
    "--filename",
    does="Show what is in files, directories, or - for standard input, instead of a cluster.",
)
@click.option("--mouse", is_flag=True, help="Also take clicks; the terminal then selects no text.")
@click.option(
    "--ascii", "is_ascii", is_flag=True, help="Draw without characters that some terminals lack."
)
def top(cluster: ClusterArguments, mouse: bool, is_ascii: bool) -> int:
    """Show devices, pending pods and their causes in the terminal, and follow the cluster.

    The floor plan has a line for each node, with a symbol for each device: free, held, shared, tainted, waiting.
    Other views list pending pods by cause, devices, pods, claims and events; Enter explains. Keys are shown at the
    bottom, all of them with `?`. The right to get, list and watch suffices; what may not be listed is named.

    \b
    allot top
    allot top --context production
    allot top -f dump.yaml
    """
    if not (sys.stdin.isatty() or "-" in cluster.files) or not sys.stdout.isatty():
        raise CommandError("top needs a terminal; `allot devices --watch` prints lines")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise CommandError("top needs a terminal that can move the cursor; TERM says it cannot")
    from allot.terminal.app import TopApp
    from allot.terminal.cluster_source import SHOWN_KINDS
    from allot.terminal.state_symbols import ASCII, BLOCKS

    is_fixed = cluster.is_offline or cluster.at is not None
    source = _fixed_source(cluster) if is_fixed else follow(cluster, _AGENT, SHOWN_KINDS)
    if not sys.stdin.isatty():
        os.dup2(os.open("/dev/tty", os.O_RDWR), sys.stdin.fileno())  # objects came from there
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    symbols = ASCII if is_ascii or encoding != "utf8" else BLOCKS
    if not os.environ.get("NO_COLOR"):
        os.environ.pop("NO_COLOR", None)  # empty means not set
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = TopApp(source, symbols)
    result = app.run(mouse=mouse)
    return result if isinstance(result, int) else app.return_code or 0


def _fixed_source(cluster: ClusterArguments) -> ClusterSource:
    from allot.terminal.cluster_source import SHOWN_KINDS, FixedSource

    title = ", ".join((*cluster.files, *cluster.hardware)) or cluster.title
    return FixedSource(cluster.load(_AGENT, kinds=SHOWN_KINDS), title)
