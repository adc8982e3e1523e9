"""`allot what-if`: what changes would do to all pods, without making them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click
from rich.console import RenderableType
from rich.text import Text

from allot.api.base import replace
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.progress import progress_line
from allot.cli.question_options import ClusterArguments, cluster_options, described_objects
from allot.cli.snapshots import snapshot_of_files
from allot.cli.tables import Column, notes, output_options, print_blocks, print_document, table
from allot.client import resources
from allot.questions.changes import AddObjects, Change, ChangeError
from allot.questions.device_usage import UsageFigures
from allot.questions.observed_cluster import KINDS
from allot.questions.what_if import Effect, PodEffect, WhatIfAnswer
from allot.questions.what_if import what_if as ask
from allot.questions.written_changes import read_change

_AGENT: Final = "allot-what-if"
_META: Final = "allot.what_if.order"
_MAX_SHOWN: Final = 40
"""Rows of the table without `--all`."""
_SIGNS: Final = {
    Effect.STARTS: ("+", "green"),
    Effect.MOVES: ("~", "yellow"),
    Effect.RESTARTS: ("~", "yellow"),
    Effect.EVICTED: ("-", "red"),
    Effect.WAITS: ("!", "red"),
    Effect.ENDS: ("-", ""),
}


class _OrderedCommand(click.Command):
    """Keeps the order in which options were given, also of different ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(list(args))
        taken: dict[str, Iterator[Any]] = {}
        given: list[tuple[str, Any]] = []
        for parameter in order:
            name = parameter.name or ""
            if name in _CHANGES:
                found = taken.setdefault(name, iter(values[name]))
                given.append((name, next(found)))
        ctx.meta[_META] = given
        return super().parse_args(ctx, args)


@click.command(cls=_OrderedCommand)
@click.option(
    "--add",
    multiple=True,
    metavar="PROFILE[=N]",
    help="Add hardware: N nodes of a profile or a file.",
)
@click.option(
    "--add-node",
    multiple=True,
    metavar="FILE",
    help="Add the Nodes of a file, with their ResourceSlices and DeviceClasses.",
)
@click.option("--drain", multiple=True, metavar="NODE", help="Cordon a node and evict its pods.")
@click.option(
    "--taint",
    multiple=True,
    metavar="EXPR[:EFFECT]",
    help="Taint the devices that a CEL expression selects, node/NAME, or device/DRIVER/POOL/DEVICE."
    " Default effect: NoExecute.",
)
@click.option(
    "--remove",
    multiple=True,
    metavar="KIND/NAME",
    help="Delete an object, such as claim/x or node/n1.",
)
@click.option(
    "--scale", multiple=True, metavar="KIND/NAME=N", help="Set the replicas of a workload."
)
@click.option("--evict", multiple=True, metavar="pod/NAME", help="Evict a pod.")
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    metavar="FILE",
    help="Create what is in files or directories, or update it if it exists.",
)
@click.option(
    "-n", "--namespace", help="The namespace of names. Default: that of the context, or default."
)
@click.option("--all", "everything", is_flag=True, help="Show all pods, however many.")
@cluster_options("--cluster")
@output_options
@click.pass_context
def what_if(
    context_: click.Context,
    /,
    cluster: ClusterArguments,
    namespace: str | None,
    everything: bool,
    output: str,
    width: int | None,
    **_given: Any,
) -> int:
    """Say what changes would do: who starts, who is evicted, who finds no place and why.

    The changes are made to a copy in memory, in the order of the options; the cluster is only read. Workloads replace
    their pods, and preemption, quotas and disruption budgets count as in the cluster.

    \b
    allot what-if --drain node-7
    allot what-if --add gpu-server=3 --scale deployment/web=40
    allot what-if --taint 'device.attributes["gpu.example.com"].model == "A100"'
    """
    given = context_.meta[_META]
    if not given:
        raise CommandError(
            "say what would change: --add, --drain, --taint, --remove, --scale, --evict or -f"
        )
    space = namespace or cluster.namespace
    try:
        changes = [
            _change(name, value, space, f"-new{number or ''}")
            for number, (name, value) in enumerate(given)
        ]
        observed = cluster.load(_AGENT)
        with progress_line("pods placed") as progress:
            answer = ask(observed, changes, progress)
    except ChangeError as error:
        raise CommandError(str(error)) from None
    if output != "table":
        print_document(answer, output)
    else:
        print_blocks(_blocks(answer, everything=everything), width)
    return EXIT_OK


_CHANGES: Final = frozenset(
    {"add", "add_node", "drain", "taint", "remove", "scale", "evict", "manifests"}
)


def _change(name: str, value: str, namespace: str, suffix: str) -> Change:
    """One change; `suffix` is that of the names of nodes that are added."""
    match name:
        case "add":
            objects = tuple(described_objects((value,), suffix))
            return AddObjects(f"add {value}", objects, must_be_new=True)
        case "add_node" | "manifests":
            snapshot = snapshot_of_files((value,), KINDS)
            found = tuple((kind, obj) for kind in KINDS for obj in snapshot.of(kind))
            if name == "add_node" and not snapshot.of(resources.NODES):
                raise CommandError(f"--add-node: no Node in {value}")
            return AddObjects(f"add {value}", found, must_be_new=name == "add_node")
    return read_change(name, value, namespace)


# --- text ---


def _blocks(answer: WhatIfAnswer, *, everything: bool) -> Iterator[RenderableType]:
    yield Text(f"If you {', then '.join(answer.changes)}:", "bold")
    yield Text("")
    if not answer.effects:
        yield Text("No pod is affected.")
    else:
        shown = answer.effects if everything else _some_of_each_effect(answer.effects)
        yield table(_COLUMNS, list(_without_repetition(shown)))
        if len(shown) < len(answer.effects):
            yield Text(f"… and {len(answer.effects) - len(shown)} more (--all)")
    yield Text("")
    yield table(_FIGURES, list(_figures(answer)))
    yield from notes(answer.notes)


def _some_of_each_effect(effects: Sequence[PodEffect]) -> Sequence[PodEffect]:
    """Some of each effect, if there are too many."""
    if len(effects) <= _MAX_SHOWN:
        return effects
    kinds = {each.effect for each in effects}
    share = max(_MAX_SHOWN // len(kinds), 1)
    found: list[PodEffect] = []
    seen = dict.fromkeys(kinds, 0)
    for each in effects:
        seen[each.effect] += 1
        if seen[each.effect] <= share:
            found.append(each)
    return found


def _without_repetition(effects: Sequence[PodEffect]) -> Iterator[PodEffect]:
    """A reason that is that of the row above is a ditto mark."""
    last = ""
    for each in effects:
        repeats = each.reason and each.reason == last
        last = each.reason
        yield replace(each, reason='"') if repeats else each


def _sign(row: PodEffect) -> Text:
    sign, color = _SIGNS[row.effect]
    return Text(f"{sign} {row.effect}", color)


def _pod(row: PodEffect) -> str:
    return row.pod.removeprefix("default/")


_COLUMNS: Final = (
    Column("EFFECT", _sign, keeps_whole=True),
    Column("POD", _pod),
    Column("BEFORE", lambda row: row.before),
    Column("AFTER", lambda row: row.after),
    Column("WHY", lambda row: row.reason),
)
_FIGURES: Final = (
    Column("", lambda row: row[0]),
    Column("BEFORE", lambda row: row[1], is_number=True),
    Column("AFTER", lambda row: row[2], is_number=True),
    Column("CHANGE", lambda row: row[3], is_number=True),
)


def _figures(answer: WhatIfAnswer) -> Iterator[tuple[str, str, str, str]]:
    before, after = answer.devices_before, answer.devices_after
    counts = (
        ("pods with a node", answer.running_before, answer.running_after),
        ("pods without a node", answer.waiting_before, answer.waiting_after),
        ("devices", before.devices, after.devices),
        ("devices held", before.held, after.held),
    )
    for name, was, is_ in counts:
        yield name, str(was), str(is_), f"{is_ - was:+}" if is_ != was else ""
    yield from (
        _percentage(name, getattr(before, name), getattr(after, name))
        for name in UsageFigures.__struct_fields__
        if name in ("utilisation", "fragmentation")
    )


def _percentage(name: str, was: float, is_: float) -> tuple[str, str, str, str]:
    change = f"{100 * (is_ - was):+.1f}" if is_ != was else ""
    return name, f"{100 * was:.1f} %", f"{100 * is_:.1f} %", change
