"""`allot fit`: the answer beyond the number, which `tests/property/test_fit.py` compares with scheduling."""

from __future__ import annotations

from typing import Any

import yaml
from click.testing import CliRunner

from allot.api.core import Pod, ResourceQuota
from allot.cli.main import allot
from allot.questions.fit import FitAnswer, FitItem, fit
from allot.questions.pod_templates import PodTemplate
from allot.testing.builders import (
    a_class,
    a_device,
    a_node,
    a_pod,
    a_request,
    a_selector,
    a_slice,
    an_alternative,
)
from allot.testing.observed_clusters import a_claim_template, observed

AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}
CLAIM = {"name": "gpu", "resourceClaimTemplateName": "gpus"}


def a_trainer(cpu: str = "1", **spec: Any) -> Pod:
    resources = {"requests": {"cpu": cpu}}
    return a_pod(
        "trainer",
        containers=[{"name": "main", "resources": resources}],
        resourceClaims=[CLAIM],
        **spec,
    )


def nodes_with(number: int, devices: int) -> list[Any]:
    found: list[Any] = []
    for index in range(number):
        name = f"node-{index}"
        found.append(a_node(name, status={"allocatable": AMOUNTS}))
        published = [a_device(f"gpu-{each}", {"model": "small"}) for each in range(devices)]
        found.append(a_slice(*published, name=name, node=name))
    return [*found, a_class()]


def fitting(pod: Pod, *objects: Any, **arguments: Any) -> FitAnswer:
    return fit(observed(*objects), [FitItem(PodTemplate("pod/trainer", pod, 1))], **arguments)


def test_devices_run_out() -> None:
    answer = fitting(a_trainer(), *nodes_with(3, 2), a_claim_template("gpus"))

    assert answer.rounds == 6
    assert answer.items[0].nodes == {"node-0": 2, "node-1": 2, "node-2": 2}
    (limit,) = answer.runs_out
    assert (limit.reason, limit.nodes) == ("cannot allocate all claims", 3)
    assert "held" in limit.detail or "device" in limit.detail


def test_cpu_runs_out_first() -> None:
    answer = fitting(a_trainer(cpu="5"), *nodes_with(2, 4), a_claim_template("gpus"))

    assert answer.rounds == 2
    assert answer.runs_out[0].reason == "Insufficient cpu"
    assert answer.runs_out[0].detail == "cpu: 5 requested, 3 of 8 left"


def test_which_alternatives() -> None:
    large = a_selector('device.attributes["gpu.example.com"].model == "large"')
    request = a_request(
        first_available=(an_alternative("large", selectors=(large,)), an_alternative("any"))
    )
    objects = nodes_with(1, 2)
    objects[1] = a_slice(
        a_device("a", {"model": "large"}), a_device("b", {"model": "small"}), node="node-0"
    )

    answer = fitting(a_trainer(), *objects, a_claim_template("gpus", request))

    assert answer.items[0].alternatives == {"gpu/large": 1, "gpu/any": 1}


def test_pending_pods_get_their_places_first() -> None:
    pending = a_trainer().with_value("earlier", "metadata", "name")

    answer = fitting(a_trainer(), *nodes_with(1, 3), a_claim_template("gpus"), pending)

    assert (answer.rounds, answer.placed_before) == (2, 1)


def test_nothing_is_preempted() -> None:
    important = a_trainer(priority=1000)
    other = a_pod(
        "other", node="node-0", containers=[{"name": "c", "resources": {"requests": {"cpu": "8"}}}]
    )

    answer = fitting(important, *nodes_with(1, 1), a_claim_template("gpus"), other)

    assert answer.rounds == 0


def test_a_quota_ends_the_count() -> None:
    quota = ResourceQuota(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {"pods": "2"}},
        }
    )

    answer = fitting(a_trainer(), *nodes_with(1, 4), a_claim_template("gpus"), quota)

    assert answer.rounds == 2
    assert "exceeded quota: few" in answer.quota


def test_the_limit() -> None:
    answer = fitting(a_trainer(), *nodes_with(2, 4), a_claim_template("gpus"), limit=3)

    assert (answer.rounds, answer.is_limited) == (3, True)


def test_the_command(tmp_path: Any) -> None:
    file = tmp_path / "web.yaml"
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "40"}}}],
                },
            },
        },
    }
    file.write_text(yaml.safe_dump(deployment))

    result = CliRunner().invoke(allot, ["fit", "-f", str(file), "--hardware", "gpu-server=2"])

    assert result.output.splitlines()[0] == (
        "4 more pods of deployment/web (1 whole) fit; then: cpu: 40 requested, 16 of 96 left."
    )


def test_a_ratio_of_nothing() -> None:
    from allot.cli.errors import CommandError
    from allot.cli.fit import weighted

    template = PodTemplate("pod/trainer", a_trainer(), 1)
    assert [item.weight for item in weighted([template], ["trainer=4"])] == [4]
    for text, message in (("x=2", "no x in the files"), ("x", "is not NAME=N")):
        try:
            weighted([template], [text])
        except CommandError as error:
            assert message in str(error)  # noqa: PT017 - two messages
        else:
            raise AssertionError(text)
