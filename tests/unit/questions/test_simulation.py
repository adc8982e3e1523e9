"""`allot simulate`: files on files, at once or in virtual time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner, Result

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.cli.errors import CommandError
from allot.cli.main import allot
from allot.client import resources
from allot.questions.plots import timeline_svg
from allot.questions.simulation import SimulationError, lifetime, simulate
from allot.questions.simulation_figures import MAX_SAMPLES, Sample, SimulationAnswer
from allot.testing.builders import a_class, a_device, a_pod, a_slice, manifest
from allot.testing.observed_clusters import a_claim_template, observed

ARRIVAL, RUN = "allot.dev/arrival-seconds", "allot.dev/run-seconds"
CLAIM = {"name": "gpu", "resourceClaimTemplateName": "gpus"}


def a_job_pod(name: str, arrival: float = 0, run: float = 0, **spec: Any) -> Pod:
    annotations = {ARRIVAL: str(arrival)} if arrival else {}
    annotations |= {RUN: str(run)} if run else {}
    spec = {"restartPolicy": "Never", "resourceClaims": [CLAIM]} | spec
    return a_pod(name, metadata={"annotations": annotations}, containers=[{"name": "main"}], **spec)


def the_devices(number: int) -> list[Any]:
    """One node that only its slice names."""
    return [
        a_slice(*(a_device(f"gpu-{index}") for index in range(number))),
        a_class(),
        a_claim_template("gpus"),
    ]


def simulated(*objects: Any) -> SimulationAnswer:
    return simulate(observed(*objects).with_inferred_nodes()).answer


def test_without_time() -> None:
    answer = simulated(*the_devices(2), *(a_job_pod(f"pod-{i}") for i in range(3)))

    assert [(each.pod, each.node, each.devices) for each in answer.placed] == [
        ("default/pod-0", "node-1", ("gpu: gpu.example.com/node-1/gpu-0",)),
        ("default/pod-1", "node-1", ("gpu: gpu.example.com/node-1/gpu-1",)),
    ]
    (pending,) = answer.pending
    assert pending.pod == "default/pod-2"
    assert "request gpu finds 0 of 1 device" in pending.reason
    assert answer.timeline == ()
    assert "inferred from ResourceSlices" in answer.notes[0]


def test_pods_come_and_go() -> None:
    answer = simulated(
        *the_devices(1), a_job_pod("a", run=100), a_job_pod("b", arrival=10.5, run=50)
    )

    assert [(each.pod, each.at_seconds, each.waited_seconds) for each in answer.placed] == [
        ("default/a", 0.0, 0.0),
        ("default/b", 100.0, 89.5),
    ]
    assert [(each.seconds, each.waiting, each.utilisation) for each in answer.timeline] == [
        (0.0, 0, 1.0),
        (10.5, 1, 1.0),
        (100.0, 0, 1.0),
        (150.0, 0, 0.0),
    ]
    figures = answer.figures
    assert (figures.pods_finished, figures.seconds, figures.peak_waiting) == (2, 150.0, 1)
    assert figures.mean_utilisation == 1.0


def test_equal_pods_that_wait_start_in_order() -> None:
    pods = [a_job_pod(f"pod-{i}", run=10) for i in range(5)]

    answer = simulated(*the_devices(1), *pods)

    assert [each.at_seconds for each in answer.placed] == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert [each.pod for each in answer.placed] == [f"default/pod-{i}" for i in range(5)]


def test_a_job_runs_to_its_end() -> None:
    job = RawObject(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job", "namespace": "default"},
            "spec": {
                "parallelism": 2,
                "completions": 5,
                "template": {
                    "metadata": {"annotations": {RUN: "60"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main"}],
                        "resourceClaims": [CLAIM],
                    },
                },
            },
        }
    )

    answer = simulated(*the_devices(2), job)

    assert answer.figures.pods_finished == 5
    assert answer.figures.seconds == 180.0
    assert answer.pending == ()


def test_an_important_pod_preempts() -> None:
    weak = a_job_pod("weak", run=1000, resourceClaims=[], priority=0)
    big = {"name": "main", "resources": {"requests": {"cpu": "1000"}}}
    weak = weak.with_value([big], "spec", "containers")
    strong = a_job_pod("strong", arrival=10, run=10, resourceClaims=[])
    strong = strong.with_value([big], "spec", "containers")
    strong = strong.with_value("system-cluster-critical", "spec", "priorityClassName")

    answer = simulated(*the_devices(1), weak, strong)

    assert answer.figures.preemptions == 1
    assert answer.placed[-1].pod == "default/strong"
    assert answer.placed[-1].at_seconds == 10.0


@pytest.mark.parametrize(
    ("annotations", "policy", "expected"),
    [
        pytest.param({RUN: "5"}, "Never", (5.0, "Succeeded"), id="succeeds"),
        pytest.param({RUN: "5", "allot.dev/exit-code": "1"}, "Never", (5.0, "Failed"), id="fails"),
        pytest.param(
            {RUN: "5", "allot.dev/exit-code": "1,1,0"},
            "OnFailure",
            (15.0, "Succeeded"),
            id="retried",
        ),
        pytest.param({RUN: "5"}, "Always", (None, "Succeeded"), id="restarts"),
        pytest.param({}, "Never", (None, ""), id="for-ever"),
        pytest.param(
            {RUN: "5", "allot.dev/start-seconds": "2"}, "Never", (7.0, "Succeeded"), id="starts"
        ),
    ],
)
def test_lifetimes(annotations: dict[str, str], policy: str, expected: Any) -> None:
    pod = a_pod(
        metadata={"annotations": annotations}, restartPolicy=policy, containers=[{"name": "main"}]
    )

    assert lifetime(pod) == expected


def test_a_wrong_annotation() -> None:
    pod = a_job_pod("late").with_value({ARRIVAL: "soon"}, "metadata", "annotations")

    with pytest.raises(SimulationError, match=r"pod/late: .*'soon' is not a number of seconds"):
        simulated(pod)


def test_long_timelines_are_thinned() -> None:
    pods = [
        a_job_pod(f"pod-{i}", arrival=i + 1, resourceClaims=[]) for i in range(MAX_SAMPLES + 500)
    ]

    answer = simulated(*the_devices(1), *pods)

    assert len(answer.timeline) <= MAX_SAMPLES + 1
    assert answer.timeline[-1].seconds == MAX_SAMPLES + 500


# --- the command ---


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(allot, ["simulate", *arguments], standalone_mode=False)
    if isinstance(result.exception, CommandError):
        raise result.exception
    assert result.exception is None, result.exception
    return result


def written(tmp_path: Path, *objects: Any) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(map(manifest, objects)))
    return str(file)


def test_the_objects_can_be_fed_back_in(tmp_path: Path) -> None:
    """Nothing is left to do: the same pods are where they were."""
    deployment = RawObject(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main"}], "resourceClaims": [CLAIM]},
                },
            },
        }
    )
    file = written(tmp_path, *the_devices(2), deployment)

    first = run("-f", file, "-o", "yaml")
    again = tmp_path / "again.yaml"
    again.write_text(first.output)
    second = run("-f", str(again), "-o", "yaml")

    def nodes(result: Result) -> dict[str, str]:
        found = yaml.safe_load_all(result.output)
        pods = (each for each in found if each["kind"] == "Pod")
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}

    assert sorted(nodes(first).values()) == ["", "node-1", "node-1"]
    assert nodes(second) == nodes(first)
    assert (first.return_value, second.return_value) == (1, 1)


def test_comparison(tmp_path: Path) -> None:
    file = written(
        tmp_path, *(a_job_pod(f"pod-{i}", run=60) for i in range(12)), a_claim_template("gpus")
    )

    result = run(
        "-f", file, "--hardware", "gpu-server=1", "--compare-hardware", "gpu-server=2", "-o", "json"
    )

    answers = json.loads(result.output)
    assert answers["this"]["figures"]["seconds"] == 120.0
    assert answers["compared"]["figures"]["seconds"] == 60.0


def test_the_plot(tmp_path: Path) -> None:
    file = written(tmp_path, *the_devices(1), a_job_pod("a", run=60))
    plot = tmp_path / "day.svg"

    run("-f", file, "--plot", str(plot))

    root = ElementTree.fromstring(plot.read_text())  # noqa: S314 - ours
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 3


def test_a_plot_of_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, *the_devices(1), a_job_pod("a"))

    with pytest.raises(CommandError, match="nothing happens over time"):
        run("-f", file, "--plot", str(tmp_path / "x.svg"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x.gif", "say FILE.svg or FILE.png"),
        ("nowhere/x.svg", "no such directory"),
        ("x.png", "PNG needs the package cairosvg"),
    ],
)
def test_plots_that_cannot_be_drawn(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allot.cli.simulate.find_spec", lambda _name: None)
    file = written(tmp_path, *the_devices(1), a_job_pod("a", run=60))

    with pytest.raises(CommandError, match=says):
        run("-f", file, "--plot", str(tmp_path / name))


def test_names_in_a_plot_are_escaped() -> None:
    ElementTree.fromstring(timeline_svg({"<a>": (), "b&c": ()}, "x < y"))  # noqa: S314 - ours


@pytest.mark.parametrize(
    ("end", "labels"),
    [
        (7800.0, ["0 min", "30 min", "60 min", "90 min", "120 min"]),
        (86400.0, ["0 h", "4 h", "8 h", "12 h", "16 h", "20 h", "24 h"]),
        (3.0, ["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s", "3 s"]),
    ],
)
def test_times_of_a_plot_are_round(end: float, labels: list[str]) -> None:
    sample = Sample(seconds=end)

    drawn = timeline_svg({"this": [Sample(), sample]}, "day")

    texts = re.findall(r'text-anchor="middle"[^>]*>([^<]*)<', drawn)
    assert texts[: len(labels)] == labels
    assert len(texts) == 3 * len(labels)


def test_no_files() -> None:
    with pytest.raises(CommandError, match="say what to simulate"):
        run()


def test_the_table(tmp_path: Path) -> None:
    file = written(tmp_path, *the_devices(1), a_job_pod("a"), a_job_pod("b"))

    output = run("-f", file, "--width", "80").output

    assert "a    node-1  gpu=gpu-0" in output
    assert "1 pod cannot be placed:" in output
    assert max(map(len, output.splitlines())) <= 80


def test_the_cluster_does_not_change() -> None:
    cluster = observed(*the_devices(1), a_job_pod("a")).with_inferred_nodes()

    simulate(cluster)

    (pod,) = cluster.objects.of(resources.PODS)
    assert not pod.node_name
