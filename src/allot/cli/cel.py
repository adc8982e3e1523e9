"""`allot cel`: try an expression on published devices."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import click
import msgspec
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from allot.api.identities import DeviceId
from allot.cel import (
    UNBOUNDED_COST,
    AttributeValue,
    CelCompileError,
    Origin,
    Outcome,
    PreparedDevice,
    Program,
    answer_line,
    compile_derived,
    compile_selector,
    prepare_device,
)
from allot.cel.cost_advice import cost_problem, estimated_cost_text
from allot.cel.jsonl import attribute_to_json
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.gate_options import gate_options, gates_from_option
from allot.cli.manifests import Unreadable, read_manifests
from allot.lint.subjects import slices_among
from allot.rules import RuleSet


class Row(NamedTuple):
    """The expression on one device."""

    device: DeviceId
    outcome: Outcome


@click.command()
@click.argument("expression", required=False)
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    metavar="FILE",
    help="ResourceSlices: files, directories, or - for standard input.",
)
@click.option("--driver", help="Only devices of this driver.")
@click.option("--pool", help="Only devices of this pool.")
@click.option("--device", help="Only devices of this name.")
@click.option("--derived", is_flag=True, help="The expression derives an attribute.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
)
@gate_options("seeds, with --jsonl v1.38")
@click.option("--jsonl", is_flag=True, help="Answer test vectors: JSON lines in, JSON lines out.")
def cel(
    expression: str | None,
    sources: tuple[str, ...],
    driver: str | None,
    pool: str | None,
    device: str | None,
    derived: bool,
    output: str,
    feature_gates: str,
    rules: RuleSet | None,
    jsonl: bool,
) -> int:
    """Try a CEL expression on every device in the given slices.

    Shows the value, its type and what it cost; with --derived also the groups of devices that a
    matchAttribute constraint would see. Exits 1 if the expression does not compile, costs too much, or
    fails on a device: a claim with such a selector would be refused, or not be scheduled.
    """
    if jsonl:
        return _answer_lines(sys.stdin.buffer, rules)
    if expression is None:
        raise CommandError("which expression? allot cel EXPRESSION -f SLICES")
    if not sources:
        raise CommandError("on which devices? name ResourceSlices with -f FILE")
    compile_ = compile_derived if derived else compile_selector
    try:
        program = compile_(expression, Origin.NEW, gates_from_option(feature_gates, rules))
    except CelCompileError as error:
        Console(stderr=True, highlight=False).print(
            f"[bold red]error:[/] {escape(error.text)}", soft_wrap=True
        )
        return EXIT_FINDINGS
    rows = [
        Row(identity, program.evaluate(prepared))
        for identity, prepared in _devices(sources)
        if _is_wanted(identity, driver, pool, device)
    ]
    if not rows:
        raise CommandError("no device in these files is of that driver, pool and name")
    if output == "table":
        _print_table(program, rows, derived)
    else:
        _print_document(program, rows, output)
    is_refused = cost_problem(program) is not None
    return EXIT_FINDINGS if is_refused or any(row.outcome.error for row in rows) else EXIT_OK


def _devices(sources: tuple[str, ...]) -> Iterator[tuple[DeviceId, PreparedDevice]]:
    manifests = list(read_manifests(sources))
    for manifest in manifests:
        if isinstance(manifest, Unreadable):
            raise CommandError(f"{manifest.source}:{manifest.line}: {manifest.problem}")
    for slice_ in slices_among(manifests):
        spec = slice_.spec
        for device in spec.devices or ():
            yield (
                DeviceId(spec.driver, spec.pool.name, device.name),
                prepare_device(
                    spec.driver,
                    device.name,
                    device.attributes,
                    device.capacity,
                    device.allow_multiple_allocations,
                ),
            )


def _is_wanted(
    identity: DeviceId, driver: str | None, pool: str | None, device: str | None
) -> bool:
    return (
        driver in (None, identity.driver)
        and pool in (None, identity.pool)
        and device in (None, identity.device)
    )


# --- output ---


def _plain(value: Any) -> Any:
    if isinstance(value, AttributeValue):
        (inner,) = attribute_to_json(value).values() or ([],)
        return inner
    return value


def _text(value: Any) -> str:
    return msgspec.json.encode(_plain(value)).decode()


def _estimate(program: Program) -> int | str:
    return "max" if program.max_cost == UNBOUNDED_COST else program.max_cost


def _print_table(program: Program, rows: list[Row], derived: bool) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in ("DRIVER", "POOL", "DEVICE", "VALUE", "TYPE", "COST", "ERROR"):
        table.add_column(column, overflow="fold")
    for identity, outcome in rows:
        shown = "" if outcome.error is not None else _text(outcome.value)
        table.add_row(
            *map(escape, identity),
            escape(shown),
            escape(_type_of(outcome)),
            str(outcome.cost),
            f"[red]{escape(outcome.error)}[/]" if outcome.error else "",
        )
    console.print(table)
    cost = estimated_cost_text(program.max_cost)
    limit = f"estimated cost {cost}, static type {program.output_type}"
    console.print(escape(limit), style="dim")
    problem = cost_problem(program)
    if problem is not None:
        console.print(f"[bold red]error:[/] {escape(problem)}")
    if derived:
        _print_groups(console, rows)


def _type_of(outcome: Outcome) -> str:
    if outcome.error is not None:
        return ""
    value = outcome.value
    if isinstance(value, AttributeValue):
        return next(iter(attribute_to_json(value)), "strings")
    return "bool"


def _print_groups(console: Console, rows: list[Row]) -> None:
    """Devices by value: what a matchAttribute constraint would let together."""
    groups: dict[str, list[str]] = {}
    for identity, outcome in rows:
        if outcome.error is None:
            groups.setdefault(_text(outcome.value), []).append(str(identity))
    console.print(f"\n{len(groups)} group{'' if len(groups) == 1 else 's'}:")
    for value, devices in groups.items():
        console.print(f"  {escape(value)}: {escape(', '.join(devices))}", soft_wrap=True)


def _print_document(program: Program, rows: list[Row], output: str) -> None:
    document = {
        "type": str(program.output_type),
        "maxCost": _estimate(program),
        "problem": cost_problem(program),
        "devices": [
            {**identity._asdict(), "cost": outcome.cost}
            | (
                {"error": outcome.error}
                if outcome.error is not None
                else {"value": _plain(outcome.value), "type": _type_of(outcome)}
            )
            for identity, outcome in rows
        ],
    }
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)


# --- vectors ---


def _answer_lines(file: BinaryIO, rules: RuleSet | None) -> int:
    failed = False
    for line in file:
        if not line.strip():
            continue
        try:
            vector = msgspec.json.decode(line, type=dict[str, Any])
            answer = answer_line(vector)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            answer = {"error": f"not a vector: {error}"}
            failed = True
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            answer = {"error": f"not a vector: {type(error).__name__} {error}"}
            failed = True
        if rules is RuleSet.SEEDS:
            answer["rules"] = rules
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    return EXIT_FINDINGS if failed else EXIT_OK
