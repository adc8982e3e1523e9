"""`allot simulate`: schedules what is in files on what is in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click
import yaml
from rich.console import RenderableType
from rich.text import Text

from allot.allocation.explain.amounts import counted
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.progress import progress_line
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.tables import Column, notes, output_options, print_blocks, print_document, table
from allot.questions.plots import timeline_svg
from allot.questions.simulation import Simulated, SimulationError, documents
from allot.questions.simulation import simulate as run_simulation
from allot.questions.simulation_figures import PlacedPod, SimulationAnswer, SimulationFigures

_AGENT: Final = "allot-simulate"
_PNG_PACKAGE: Final = "cairosvg"
_FIRST, _SECOND = "this", "compared"


@click.command()
@click.option(
    "--compare-scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run it again with this KubeSchedulerConfiguration, and compare.",
)
@click.option(
    "--compare-hardware",
    multiple=True,
    metavar="PROFILE[=N]",
    help="Run it again with this hardware instead of --hardware, and compare.",
)
@click.option(
    "--until",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Stop after this simulated time. Default: when nothing more happens.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw utilisation, waiting pods and fragmentation over time; FILE.png with the extra plots.",
)
@cluster_options(
    "-f",
    "--filename",
    does="Manifests: files or directories, or - for standard input.",
)
@output_options
def simulate(
    cluster: ClusterArguments,
    compare_scheduler_config: Path | None,
    compare_hardware: tuple[str, ...],
    until: float | None,
    plot: Path | None,
    output: str,
    width: int | None,
) -> int:
    """Schedule the pods and workloads in files on the nodes and devices in files.

    Nodes are inferred from ResourceSlices if no Node is given. With the annotations allot.dev/arrival-seconds and
    allot.dev/run-seconds pods come and go in virtual time: a day takes seconds. -o yaml prints all objects at the end,
    which can be simulated again; -o json prints placements and figures. Exit code 1 if a pod stays pending.

    \b
    allot simulate -f manifests/ --hardware gpu-server=4
    allot simulate -f day.yaml --hardware gpu-server=16 --plot day.svg
    allot simulate -f day.yaml --hardware gpu-server=16 --compare-hardware gpu-server=12
    """
    if not cluster.is_offline:
        raise CommandError("say what to simulate: -f FILE, and --hardware PROFILE[=N] for nodes")
    if plot is not None:
        _check_plot(plot)
    found = {_FIRST: _run(cluster, until)}
    if compare_scheduler_config or compare_hardware:
        other = replace(
            cluster,
            scheduler_config=compare_scheduler_config or cluster.scheduler_config,
            hardware=compare_hardware or cluster.hardware,
        )
        found[_SECOND] = _run(other, until)
    first = found[_FIRST]
    if plot is not None:
        _draw(plot, {name: each.answer for name, each in found.items()})
    if output == "yaml":
        text = yaml.safe_dump_all(documents(first.objects), sort_keys=False, allow_unicode=True)
        click.echo(text, nl=False)
    elif output == "json":
        answers = {name: each.answer for name, each in found.items()}
        print_document(first.answer if len(found) == 1 else answers, output)
    else:
        print_blocks(_blocks({name: each.answer for name, each in found.items()}), width)
    return EXIT_FINDINGS if first.answer.pending else EXIT_OK


def _run(cluster: ClusterArguments, until: float | None) -> Simulated:
    observed = cluster.load(_AGENT)
    try:
        with progress_line("pods placed") as progress:
            if until is None:
                return run_simulation(observed, progress)
            return run_simulation(observed, progress, until)
    except SimulationError as error:
        raise CommandError(str(error)) from None


def _check_plot(path: Path) -> None:
    """`CommandError` if the plot cannot be written."""
    if path.suffix not in (".svg", ".png"):
        raise CommandError(f"--plot {path}: say FILE.svg or FILE.png")
    if not path.parent.is_dir():
        raise CommandError(f"--plot {path}: no such directory")
    if path.suffix != ".png":
        return
    advice = f"(pip install 'allot[plots]'); or write {path.stem}.svg"
    if find_spec(_PNG_PACKAGE) is None:
        raise CommandError(f"{path}: PNG needs the package {_PNG_PACKAGE} {advice}")
    try:
        import_module(_PNG_PACKAGE)
    except OSError:
        raise CommandError(
            f"{path}: PNG needs the library cairo of the system (libcairo2); or write {path.stem}.svg"
        ) from None


def _draw(path: Path, answers: Mapping[str, SimulationAnswer]) -> None:
    if not any(answer.timeline for answer in answers.values()):
        raise CommandError(
            "--plot: nothing happens over time; pods need the annotations allot.dev/arrival-seconds"
            " or allot.dev/run-seconds"
        )
    drawn = timeline_svg(
        {name: answer.timeline for name, answer in answers.items()}, f"allot simulate: {path.stem}"
    )
    try:
        if path.suffix == ".png":
            import_module(_PNG_PACKAGE).svg2png(bytestring=drawn.encode(), write_to=str(path))
        else:
            path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


# --- text ---


def _blocks(answers: Mapping[str, SimulationAnswer]) -> Iterator[RenderableType]:
    answer = answers[_FIRST]
    if len(answers) == 1:
        if answer.placed:
            yield table(_PLACED, answer.placed)
        if answer.pending:
            yield Text(f"\n{counted(len(answer.pending), 'pod')} cannot be placed:", "bold red")
            yield table(_PENDING, _without_repetition(answer))
        if not answer.placed and not answer.pending:
            yield Text("No pod to schedule.")
    yield Text("")
    yield table(_figure_columns(list(answers)), list(_figures(answers)))
    yield from notes(answer.notes)


def _without_repetition(answer: SimulationAnswer) -> Iterator[tuple[str, str]]:
    """A reason that is that of the row above is a ditto mark."""
    last = ""
    for each in answer.pending:
        yield each.pod.removeprefix("default/"), '"' if each.reason == last else each.reason
        last = each.reason


def _devices(row: PlacedPod) -> str:
    """The devices of the pod, without driver and pool where the pool is the node's."""
    shown = []
    for text in row.devices:
        request, _, device = text.partition(": ")
        pool, _, name = device.partition("/")[2].partition("/")
        shown.append(f"{request}={name if pool == row.node else device}")
    return ", ".join(shown)


_PLACED: Final = (
    Column("POD", lambda row: row.pod.removeprefix("default/")),
    Column("NODE", lambda row: row.node),
    Column("DEVICES", _devices),
    Column("AT", lambda row: f"{row.at_seconds:g} s" if row.at_seconds else "", is_number=True),
    Column(
        "WAITED",
        lambda row: f"{row.waited_seconds:g} s" if row.waited_seconds else "",
        is_number=True,
    ),
    Column("", lambda row: "waits for its devices" if row.waits_for_devices else ""),
)
_PENDING: Final = (Column("POD", lambda row: row[0]), Column("WHY", lambda row: row[1]))
_NAMES: Final[tuple[tuple[str, str, str], ...]] = (
    ("pods placed", "pods_placed", ""),
    ("pods pending at the end", "pods_pending", ""),
    ("pods finished", "pods_finished", ""),
    ("preemptions", "preemptions", ""),
    ("time", "seconds", " s"),
    ("mean utilisation", "mean_utilisation", "%"),
    ("peak utilisation", "peak_utilisation", "%"),
    ("mean fragmentation", "mean_fragmentation", "%"),
    ("mean waiting pods", "mean_waiting", ""),
    ("peak waiting pods", "peak_waiting", ""),
    ("median wait", "median_wait_seconds", " s"),
    ("99th percentile of waits", "p99_wait_seconds", " s"),
    ("longest wait", "longest_wait_seconds", " s"),
)


def _figure_columns(names: list[str]) -> tuple[Column, ...]:
    def text_of(number: int) -> Any:
        return lambda row: row[number]

    first = Column("", text_of(0))
    heading = "" if len(names) == 1 else None
    return (
        first,
        *(
            Column(name.upper() if heading is None else "", text_of(number), is_number=True)
            for number, name in enumerate(names, 1)
        ),
    )


def _figures(answers: Mapping[str, SimulationAnswer]) -> Iterator[tuple[str, ...]]:
    all_figures: list[SimulationFigures] = [answer.figures for answer in answers.values()]
    has_time = any(answer.timeline for answer in answers.values())
    for name, field, unit in _NAMES:
        values = [getattr(figures, field) for figures in all_figures]
        timed = field not in (
            "pods_placed",
            "pods_pending",
            "mean_utilisation",
            "mean_fragmentation",
        )
        if timed and not has_time:
            continue
        label = name if has_time else name.removeprefix("mean ").removesuffix(" at the end")
        yield (label, *(_shown(value, unit) for value in values))


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit == "%" else f"{value:g}{unit}"
