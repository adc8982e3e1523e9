"""Scenarios and the files they are kept in: YAML, compressed, a list of scenarios each."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.steps import RawStep, inner_steps, verb_of

SCENARIOS = Path(__file__).parent.parent / "scenarios"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NodeToCreate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node called `${P}-name`."""

    name: str
    labels: dict[str, str] = {}
    resources: dict[str, str] = {}


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A story, with what has to be there before it begins."""

    name: str
    kep: Json = None
    title: str = ""
    features: list[str] = []
    """Feature gates it needs, and scheduler profiles as `profile:NAME`."""
    timeout: float = 40
    """Seconds each wait may take."""
    namespaces: list[str] = []
    """Namespaces besides `${NS}`, each called `${P}-name`."""
    nodes: list[NodeToCreate | str] = []
    manifests: list[dict[str, Json]] = []
    steps: list[RawStep]

    @property
    def needs_kubectl(self) -> bool:
        return any(verb_of(step) == "kubectl" for step in every_step(self.steps))


def every_step(steps: list[RawStep]) -> Iterator[RawStep]:
    """Those inside others, too."""
    for step in steps:
        yield step
        yield from every_step(inner_steps(step))


def load_scenarios(directory: Path = SCENARIOS) -> dict[str, tuple[Scenario, ...]]:
    """The scenarios by the name of their file, without its endings."""
    return {
        path.name.removesuffix(".yaml.gz"): read_scenarios(path)
        for path in sorted(directory.glob("*.yaml.gz"))
    }


def read_scenarios(path: Path) -> tuple[Scenario, ...]:
    with gzip.open(path, "rb") as file:
        documents = yaml.load(file, Loader)  # noqa: S506 - it is a safe one
    return msgspec.convert(documents, tuple[Scenario, ...])
