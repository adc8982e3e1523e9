"""`allot cel`: try an expression on published devices."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from allot.api.identities import DeviceId
from allot.api.messages import no_slice_of_driver
from allot.api.printable_text import printable
from allot.api.similar_names import did_you_mean, similar_names
from allot.api.slices import ResourceSlice
from allot.cel import (
    UNBOUNDED_COST,
    AttributeValue,
    CelCompileError,
    CelDevice,
    EvaluationResult,
    Origin,
    Program,
    cel_device,
    compile_derived,
    compile_selector,
)
from allot.cel.compile_advice import compile_advice
from allot.cel.cost_advice import cost_problem, estimated_cost_text
from allot.cli.answer_lines import print_answer
from allot.cli.at_option import Moment
from allot.cli.cel_jsonl import answer_line, attribute_to_json
from allot.cli.console import PrintableConsole
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.manifests import Unreadable, read_manifests
from allot.cli.snapshots import SnapshotSource, take
from allot.cli.tables import cell_text, print_document
from allot.client import resources
from allot.lint.subjects import slices_among
from allot.rules import RuleSet

_UNLIMITED_WIDTH: Final = 1_000_000


class Row(NamedTuple):
    """The expression on one device."""

    device: DeviceId
    outcome: EvaluationResult


def try_expression(
    *,
    expression: str | None,
    sources: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    at: Moment | None,
    driver: str | None,
    pool: str | None,
    device: str | None,
    derived: bool,
    output: str,
    feature_gates: str,
    rules: RuleSet | None,
    jsonl: bool,
) -> int:
    """The command `allot cel`: evaluates the expression on the selected devices."""
    if jsonl:
        return _answer_lines(sys.stdin.buffer, rules)
    if expression is None:
        raise CommandError("which expression? allot cel EXPRESSION [-f SLICES]")
    compile_ = compile_derived if derived else compile_selector
    try:
        program = compile_(expression, Origin.NEW, gates_from_option(feature_gates, rules))
    except CelCompileError as error:
        PrintableConsole(stderr=True).print(
            f"[bold red]error:[/] {escape(error.text)}", soft_wrap=True
        )
        if advice := compile_advice(error.text):
            echo_text(advice.removeprefix("; "), err=True)
        return EXIT_FINDINGS
    slices = _slices(SnapshotSource(sources, kubeconfig, context, at))
    rows = [
        Row(identity, program.evaluate(prepared))
        for identity, prepared in _devices(slices)
        if _is_wanted(identity, driver, pool, device)
    ]
    if not rows:
        raise CommandError(_why_no_device(slices, driver, pool, device, sources))
    if output == "table":
        _print_table(program, rows, derived)
    else:
        _print_document(program, rows, output)
    is_refused = cost_problem(program) is not None
    return EXIT_FINDINGS if is_refused or any(row.outcome.error for row in rows) else EXIT_OK


def _slices(source: SnapshotSource) -> Sequence[ResourceSlice]:
    """All slices in the files, or in the cluster."""
    if not source.files:
        snapshot = take(source, (resources.RESOURCE_SLICES,), "allot-cel")
        for resource, why in snapshot.unread.items():
            raise CommandError(f"{resource.plural} cannot be read: {why}")
        return snapshot.of(resources.RESOURCE_SLICES)
    source.check()
    manifests = list(read_manifests(source.files))
    for manifest in manifests:
        if isinstance(manifest, Unreadable):
            raise CommandError(f"{manifest.source}:{manifest.line}: {manifest.problem}")
    return tuple(slices_among(manifests))


def _why_no_device(
    slices: Sequence[ResourceSlice],
    driver: str | None,
    pool: str | None,
    device: str | None,
    sources: tuple[str, ...],
) -> str:
    where = "in these files" if sources else "in this cluster"
    drivers = {slice_.spec.driver for slice_ in slices}
    if not drivers:
        return f"no ResourceSlice {where}, so no devices"
    if driver is not None and driver not in drivers:
        return no_slice_of_driver(driver, drivers)
    pools = {slice_.spec.pool.name for slice_ in slices if driver in (None, slice_.spec.driver)}
    if pool is not None and pool not in pools:
        return f"no pool {pool} {where}{did_you_mean(similar_names(pool, pools))}"
    names = {each.name for slice_ in slices for each in slice_.spec.devices or ()}
    hint = did_you_mean(similar_names(device or "", names))
    return f"no device {where} is of that driver, pool and name{hint}"


def _devices(
    slices: Iterable[ResourceSlice],
) -> Iterator[tuple[DeviceId, CelDevice]]:
    for slice_ in slices:
        spec = slice_.spec
        for device in spec.devices or ():
            yield (
                spec.device_id(device),
                cel_device(
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
    is_terminal = sys.stdout.isatty()
    # Where no terminal shows them, no line is too long: another program reads them.
    console = PrintableConsole(width=None if is_terminal else _UNLIMITED_WIDTH)
    table = Table(box=None, pad_edge=False)
    for column in ("DRIVER", "POOL", "DEVICE", "VALUE", "TYPE", "COST", "ERROR"):
        table.add_column(column, overflow="fold", no_wrap=not is_terminal)
    for identity, outcome in rows:
        shown = "" if outcome.error is not None else _text(outcome.value)
        table.add_row(
            *map(cell_text, identity),
            cell_text(shown),
            cell_text(_type_of(outcome)),
            str(outcome.cost),
            Text(printable(outcome.error or ""), "red"),
        )
    for line in console.lines(table):
        click.echo(line)
    cost = estimated_cost_text(program.max_cost)
    limit = f"estimated cost {cost}, static type {program.output_type}"
    console.print(escape(limit), style="dim")
    problem = cost_problem(program)
    if problem is not None:
        console.print(f"[bold red]error:[/] {escape(problem)}")
    if derived:
        _print_groups(console, rows)


def _type_of(outcome: EvaluationResult) -> str:
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
        line = printable(f"  {value}: {', '.join(devices)}")
        console.print(escape(line), soft_wrap=True)


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
    print_document(document, output)


# --- vectors ---


def _answer_lines(file: BinaryIO, rules: RuleSet | None) -> int:
    failed = False
    for line in file:
        if not line.strip():
            continue
        try:
            vector = msgspec.json.decode(line, type=dict[str, Any])
            answer = answer_line(vector, rules or RuleSet.V1_38)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            answer = {"error": f"not a vector: {error}"}
            failed = True
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            answer = {"error": f"not a vector: {type(error).__name__} {error}"}
            failed = True
        print_answer(answer, rules)
    return EXIT_FINDINGS if failed else EXIT_OK
