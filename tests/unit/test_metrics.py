"""What all components register: each metric is written by some code, and the operator's page lists it."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from prometheus_client import CollectorRegistry

from allot.apiserver.http.metrics import Metrics
from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.in_process import InProcessTransport
from allot.client.informer import InformerFactory
from allot.controllers.binding import BindingMetrics
from allot.controllers.controller import ControllerContext
from allot.controllers.registry import CONTROLLERS
from allot.kubelet.metrics import KubeletMetrics
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.testing.servers import TOKEN, LocalServer

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "allot"
PAGE: Final = ROOT / "docs" / "operations.md"
KINDS: Final = ("Counter", "Gauge", "Histogram")
MAKERS: Final = ("_counter", "_histogram")
"""Methods that register a metric and return it."""
WRITES: Final = frozenset(("inc", "dec", "set", "observe", "set_function", "labels"))


class Registered(NamedTuple):
    """A metric as a page shows it."""

    name: str
    type: str
    labels: tuple[str, ...]


def registered(registry: CollectorRegistry) -> Iterator[Registered]:
    collectors: list[Any] = list(registry._collector_to_names)
    for collector in collectors:
        if type(collector).__name__ in KINDS:
            name, type_ = collector._name, collector._type
            suffix = "_total" if type_ == "counter" else ""
            yield Registered(name + suffix, type_, tuple(collector._labelnames))
        elif type(collector).__name__ != "ProcessCollector":
            for family in collector.collect():
                suffix = "_total" if family.type == "counter" else ""
                yield Registered(family.name + suffix, family.type, tuple(family._labelnames))


def registries() -> dict[str, CollectorRegistry]:
    scheduler = SchedulerMetrics()
    scheduler.collect_queue(dict, dict)
    return {
        "API server": Metrics().registry,
        "scheduler": scheduler.registry,
        "controllers": asyncio.run(registry_of_controllers()),
        "nodes": KubeletMetrics().registry,
        "binding controllers": BindingMetrics().registry,
    }


async def registry_of_controllers() -> CollectorRegistry:
    client = Client(InProcessTransport(LocalServer().server.app, TOKEN))
    recorder = EventRecorder(client, "test", "test")
    context = ControllerContext(client, InformerFactory(client), recorder)
    for entry in CONTROLLERS.values():
        entry.factory(context)
    return context.registry


def documented() -> Iterator[tuple[str, Registered]]:
    """The rows of the table in the operator's page, by component."""
    rows = PAGE.read_text(encoding="utf-8").split("### All metrics", 1)[1].split("\n## ", 1)[0]
    component = ""
    for line in rows.splitlines():
        if line.startswith("#### "):
            component = line.removeprefix("#### ")
        elif line.startswith("| `"):
            name, type_, labels, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            assert meaning, line
            listed = tuple(label.strip("` ") for label in labels.split(",") if label.strip())
            yield component, Registered(name.strip("`"), type_, listed)


def test_the_page_lists_every_metric_with_type_and_labels() -> None:
    found = [
        (component, each)
        for component, registry in registries().items()
        for each in registered(registry)
    ]

    assert sorted(documented()) == sorted(found)


def assigned_metrics(tree: ast.AST) -> Iterator[str]:
    """The attributes that hold a metric after `self.x = Counter(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = node.value.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            has_text = bool(node.value.args) and len(node.value.args) > 1
            if (name in KINDS and has_text) or name in MAKERS:
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        yield target.attr


def written_attributes(tree: ast.AST) -> Iterator[str]:
    """The attributes on which something is called that writes a metric, or passed on to be called."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in WRITES
            and isinstance(node.value, ast.Attribute)
        ):
            yield node.value.attr


def aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Attribute and other attribute after `self.x = metrics.y`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield node.value.attr, target.attr


def test_every_metric_is_written_somewhere() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    assigned = {name for tree in trees for name in assigned_metrics(tree)}
    written = {name for tree in trees for name in written_attributes(tree)}

    written |= {name for tree in trees for name, alias in aliases(tree) if alias in written}
    assert len(assigned) > 40
    assert assigned - written == set()


@pytest.mark.parametrize("text", ["self.x = Counter('a', 'text', registry=r)\nself.y = 1"])
def test_a_metric_without_a_writer_is_noticed(text: str) -> None:
    tree = ast.parse(text)

    assert set(assigned_metrics(tree)) - set(written_attributes(tree)) == {"x"}
