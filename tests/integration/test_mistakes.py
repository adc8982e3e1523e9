"""Common mistakes: what is said about them is what docs/mistakes.md shows, and says what to change."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from rich.console import Console

from allot import features
from allot.api.identities import ObjectKey
from allot.cli.manifests import read_manifests
from allot.client import resources
from allot.client.snapshot_lists import take_snapshot
from allot.features import DEFAULTS
from allot.lint.linter import Linter
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.explanation_text import pod_lines, wrapped
from allot.scheduler.explain.explanations import PodExplanation
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import DEVICE_KINDS, StaticScheduler
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from tests.docs.comparison import is_as_said, normal
from tests.docs.pages import Command, read_page

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "mistakes.md"
MISTAKES = PROJECT / "examples" / "mistakes"
HARDWARE = ("gpu-server=2", "shared-nic", "fabric")
"""As `scripts/up` has it."""
WIDTH = 80
SECONDS = 60
"""In virtual time, for an event to come."""
QUOTA = MISTAKES / "team-a.yaml"
"""What over-quota.yaml needs to be there before."""
NAMES = sorted(path.stem for path in MISTAKES.glob("*.yaml") if path != QUOTA)
LINTED = {
    "never-match-each-other": "constraint-values",
    "no-alternative": "not-enough-devices",
    "not-everywhere": "selector-error",
    "other-types": "constraint-types",
    "too-much": "capacity-request",
    "typo-in-cel": "unknown-attribute",
    "typo-in-template": "missing-template",
    "wrong-class": "missing-class",
}
"""What lint finds with the devices of the cluster. The others depend on what runs, or on devices together."""


class Told(NamedTuple):
    """What users see of one mistake."""

    events: list[str]
    explanation: PodExplanation
    lines: list[str]


def _commands(word: str) -> dict[str, Command]:
    """The commands of the page that contain a word, by the mistake they are about."""
    found = {}
    for command in read_page(PAGE).commands:
        if word in command.text and (pod := re.search(r"pod/([\w-]+)", command.text)):
            found[pod[1]] = command
    return found


DESCRIBED, EXPLAINED = _commands("kubectl describe"), _commands("allot explain")


def _namespace(name: str) -> str:
    documents = yaml.safe_load_all((MISTAKES / f"{name}.yaml").read_text())
    pod = next(each for each in documents if each["kind"] == "Pod")
    return str(pod["metadata"].get("namespace", "default"))


class Scene:
    """One cluster in which all mistakes are made, one after the other as on the page."""

    def __init__(self, cluster: VirtualTimeCluster) -> None:
        self._cluster = cluster
        self.told: dict[str, Told] = {}

    def make_all(self) -> None:
        self._cluster.apply(QUOTA)
        self._cluster.wait_for(
            "ResourceQuota", "gpus", lambda quota: quota and quota["status"].get("used"), "team-a"
        )
        for name in EXPLAINED:
            self._cluster.apply(MISTAKES / f"{name}.yaml")
            self.told[name] = self._cluster.run(self._look(name))
            if name == "tainted":
                for kind in ("Pod", "ResourceClaim"):
                    self._cluster.delete(kind, name)
                self._cluster.delete("DeviceTaintRule", "maintenance")

    async def _look(self, name: str) -> Told:
        wanted = _words(DESCRIBED[name].expected)
        for _ in range(SECONDS):
            events = [note async for note in self._notes(name)]
            if any(wanted in normal(note) for note in events):
                break
            await asyncio.sleep(1)
        explanation = await self._explained(name)
        now = self._cluster.client.clock.today()
        console = Console(width=WIDTH)
        lines = [
            text.plain
            for line in pod_lines(explanation, now)
            for text in wrapped(line, console, WIDTH)
        ]
        return Told(events, explanation, lines)

    async def _notes(self, name: str) -> Any:
        snapshot = await take_snapshot(self._cluster.client, [resources.EVENTS])
        for event in snapshot.of(resources.EVENTS):
            if event.get("regarding", "name") == name:
                yield event.get("note", default="")

    async def _explained(self, name: str) -> PodExplanation:
        kinds = (*DEVICE_KINDS, resources.EVENTS, resources.RESOURCE_QUOTAS)
        client = self._cluster.client
        snapshot = await take_snapshot(client, kinds)
        model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, client.clock.today)
        pod = model.pods[ObjectKey(_namespace(name), name)]
        return ObjectExplainer(model, Effort()).of_pod(pod)

    def devices(self) -> str:
        """The classes and slices of the cluster as manifests."""
        kinds = {"ResourceSlice": "resourceslices.v1.resource.k8s.io", "DeviceClass": "DeviceClass"}
        objects = [
            each | {"apiVersion": "resource.k8s.io/v1", "kind": kind}
            for kind, listed in kinds.items()
            for each in self._cluster.list(listed)
            if each["metadata"]["name"] != "anything"
        ]
        return yaml.safe_dump_all(objects)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with VirtualTimeCluster(ClusterSettings(hardware=HARDWARE)) as cluster:
        scene = Scene(cluster)
        scene.make_all()
        yield scene


def _words(lines: tuple[str, ...]) -> str:
    """What the page shows of a string, up to what it leaves out."""
    return normal(" ".join(lines).partition("…")[0])


def test_the_page_shows_every_mistake() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert sorted(EXPLAINED) == sorted(DESCRIBED) == NAMES
    for path in MISTAKES.glob("*.yaml"):
        assert f"```yaml\n{path.read_text()}```" in text, path


@pytest.mark.parametrize("name", NAMES)
def test_events_are_as_the_page_shows_them(scene: Scene, name: str) -> None:
    wanted = _words(DESCRIBED[name].expected)
    events = [normal(note) for note in scene.told[name].events]
    found = [note for note in events if wanted in note]

    assert found, events
    if wanted.startswith("On node"):
        assert "What would help: " in found[0].removeprefix(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_as_the_page_shows_them(scene: Scene, name: str) -> None:
    lines = scene.told[name].lines

    assert max(map(len, lines)) <= WIDTH
    assert is_as_said(EXPLAINED[name].expected, lines), "\n".join(lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_is_two_sentences_and_says_what_to_change(scene: Scene, name: str) -> None:
    verdict = scene.told[name].explanation.verdict

    first, *rest = re.split(r"(?<=[.?]) (?=[A-Z])", verdict)
    assert len(rest) == 1, verdict
    assert first.startswith("Pod ")
    assert re.match(r"What would help: |Create |Raise |The controller ", rest[0]), verdict


@pytest.mark.parametrize("name", NAMES)
def test_lint_finds_what_can_be_seen_without_a_cluster(
    scene: Scene, name: str, tmp_path: Path
) -> None:
    devices = tmp_path / "devices.yaml"
    devices.write_text(scene.devices())
    files = [str(MISTAKES / f"{name}.yaml"), str(devices)]

    report = Linter(features.DEFAULTS).check(read_manifests(files))

    wanted = {LINTED[name]} if name in LINTED else set()
    assert {finding.rule for finding in report.findings} == wanted
