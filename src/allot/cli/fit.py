"""`allot fit`: how many more pods fit, where, and what runs out first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import click
from rich.console import RenderableType
from rich.text import Text

from allot.allocation.explain.amounts import counted
from allot.allocation.explain.phrases import sentence
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.progress import progress_line
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.snapshots import snapshot_of_files
from allot.cli.tables import Column, notes, output_options, print_blocks, print_document, table
from allot.questions.fit import FitAnswer, FitCount, FitItem, NodeLimit
from allot.questions.fit import fit as count_fitting
from allot.questions.observed_cluster import KINDS
from allot.questions.pod_templates import PodTemplate, pod_templates

_AGENT: Final = "allot-fit"
_MAX_NODES: Final = 10
"""How many groups of nodes the table has."""
_RATIO: Final = re.compile(r"(?P<name>[^=]+)=(?P<weight>[1-9]\d{0,5})").fullmatch


@click.command()
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    required=True,
    metavar="FILE",
    help="The pod, or a Deployment, ReplicaSet, StatefulSet or Job, with the templates of its claims. Several are a mix.",
)
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="Stop counting at N.")
@click.option(
    "--ratio",
    "ratios",
    multiple=True,
    metavar="NAME=N",
    help="Of a mix: N of this one for each of the others.",
)
@cluster_options("--cluster")
@output_options
def fit(
    cluster: ClusterArguments,
    sources: tuple[str, ...],
    limit: int | None,
    ratios: tuple[str, ...],
    output: str,
    width: int | None,
) -> int:
    """Count how many more of a pod fit, on which nodes, and what runs out first.

    It is what the scheduler would place if they were created one after the other; nothing is preempted, and pending
    pods get their places first. Of a mix, all of it is counted together. Exit code 1 if not one fits.

    \b
    allot fit -f trainer.yaml
    allot fit -f trainer.yaml -f worker.yaml --ratio worker=4 --max 100
    allot fit -f trainer.yaml --hardware gpu-server=16
    """
    given = snapshot_of_files(sources, KINDS)
    templates = list(pod_templates(given))
    if not templates:
        raise CommandError(
            "no Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet or Job in these files"
        )
    items = weighted(templates, ratios)
    observed = cluster.load(_AGENT)
    with progress_line("pods placed") as progress:
        answer = count_fitting(observed, items, given, limit, progress)
    if output != "table":
        print_document(answer, output)
    else:
        print_blocks(_blocks(answer), width)
    return EXIT_OK if answer.rounds else EXIT_FINDINGS


def weighted(templates: Sequence[PodTemplate], ratios: Sequence[str]) -> list[FitItem]:
    """The items of the question; `CommandError` for a ratio that names none of them."""
    weights: dict[str, int] = {}
    for text in ratios:
        found = _RATIO(text)
        if found is None:
            raise CommandError(f"--ratio: {text!r} is not NAME=N")
        weights[found["name"]] = int(found["weight"])
    items = []
    for template in templates:
        short = template.name.partition("/")[2]
        weight = weights.pop(template.name, weights.pop(short, 1))
        items.append(FitItem(template, weight))
    if weights:
        names = ", ".join(template.name for template in templates)
        raise CommandError(f"--ratio: no {next(iter(weights))} in the files; available: {names}")
    return items


# --- text ---


def _blocks(answer: FitAnswer) -> Iterator[RenderableType]:
    yield Text(_verdict(answer), "bold")
    for item in answer.items:
        if item.pods:
            if len(answer.items) > 1:
                yield Text(f"\n{item.name}: {counted(item.pods, 'pod')}", "bold")
            yield Text("")
            yield table(_NODES, list(_node_groups(item)))
            if item.alternatives:
                chosen = ", ".join(f"{text} {number}" for text, number in item.alternatives.items())
                yield Text(f"Alternatives: {chosen}")
    if answer.runs_out:
        yield Text("")
        yield table(_LIMITS, answer.runs_out)
    yield from notes(
        [
            *(
                [f"{counted(answer.placed_before, 'pending pod')} got their places first"]
                if answer.placed_before
                else []
            ),
            *answer.notes,
        ]
    )


def _verdict(answer: FitAnswer) -> str:
    first = answer.items[0]
    if len(answer.items) == 1:
        what = f"{answer.rounds} more of {first.name}"
        if first.workloads is not None and first.workloads != answer.rounds:
            what = f"{counted(first.pods, 'more pod')} of {first.name} ({first.workloads} whole)"
    else:
        what = f"{answer.rounds} times the mix of {', '.join(item.name for item in answer.items)}"
    verb = "fit" if answer.rounds != 1 else "fits"
    if answer.is_limited:
        return f"At least {what} {verb}."
    if answer.quota:
        return sentence(f"{what} {verb}; the next is refused: {answer.quota}")
    if answer.runs_out:
        limit = answer.runs_out[0]
        who = f" for {answer.blocked_by}" if answer.blocked_by else ""
        return sentence(f"{what} {verb}; then{who}: {limit.detail or limit.reason}")
    return f"{what} {verb}."


def _node_groups(item: FitCount) -> Iterator[tuple[str, int, int]]:
    """Nodes that take equally many pods, the fullest first."""
    names: dict[int, list[str]] = {}
    for node, number in item.nodes.items():
        names.setdefault(number, []).append(node)
    for position, (number, nodes) in enumerate(sorted(names.items(), reverse=True)):
        if position == _MAX_NODES:
            rest = Counter(item.nodes.values())
            left = [each for each in rest if each <= number]
            yield "others", sum(rest[each] for each in left), 0
            return
        yield _shown(nodes), len(nodes), number


def _shown(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


_NODES: Final = (
    Column("NODES", lambda row: str(row[1]), is_number=True),
    Column("PODS EACH", lambda row: str(row[2] or "fewer"), is_number=True),
    Column("WHICH", lambda row: row[0]),
)


def _why(limit: NodeLimit) -> str:
    where = f" (on {limit.example})" if limit.detail and limit.nodes > 1 else ""
    return f"{limit.reason}: {limit.detail}{where}" if limit.detail else limit.reason


_LIMITS: Final = (
    Column("NODES", lambda limit: str(limit.nodes), is_number=True),
    Column("RUNS OUT", _why),
)
