"""`allot explain --all-pending`: pods that wait for the same reason are one line."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.selectors import labels_selector
from allot.cli.errors import CommandError
from allot.cli.main import allot
from allot.questions.pending import MAX_EXPLAINED, PodSelection, owned_by, pending_pods
from allot.scheduler.explain.explanations import PodState
from allot.testing.builders import (
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_slice,
    an_allocation,
    an_owner,
    manifest,
)
from allot.testing.observed_clusters import observed

AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}
NODE = a_node("node-1", status={"allocatable": AMOUNTS})


def wanting(name: str, cpu: str, **fields: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return a_pod(name, containers=[container], **fields)


def with_claim(name: str, **fields: Any) -> tuple[Pod, Any]:
    return a_pod(name, claims={"gpu": f"{name}-gpu"}, **fields), a_claim(
        name=f"{name}-gpu", uid=name
    )


def test_equal_pods_are_one_group() -> None:
    pods = [wanting(f"pod-{number}", "9") for number in range(3)]

    found = pending_pods(observed(NODE, *pods, wanting("huge", "100")))

    assert found.pods == 4
    assert [(cause.pods, cause.cause) for cause in found.causes] == [
        (3, "1 Insufficient cpu; nearest: cpu: 9 requested, 8 of 8 left"),
        (1, "1 Insufficient cpu; nearest: cpu: 100 requested, 8 of 8 left"),
    ]


def test_names_of_claims_do_not_split_groups() -> None:
    held = a_claim(name="other", allocation=an_allocation("gpu-0"), uid="other")
    pods = [with_claim(f"pod-{number}") for number in range(2)]
    objects = [each for pair in pods for each in pair]

    found = pending_pods(observed(NODE, a_slice(), a_class(), held, *objects))

    (cause,) = found.causes
    assert cause.pods == 2
    assert cause.cause == (
        "1 cannot allocate all claims; nearest: request gpu finds 0 of 1 device:"
        " 1 device held by other claims"
    )
    assert [(help_.change, help_.pods) for help_ in found.helps] == [
        ("1 more device like gpu-0 of gpu.example.com on node node-1", 2),
        ("release claim default/other", 2),
    ]


def test_states() -> None:
    gated = wanting("gated", "1", schedulingGates=[{"name": "wait.example.com"}])
    missing = a_pod("missing", claims={"gpu": "nope"})

    found = pending_pods(observed(NODE, gated, missing, wanting("soon", "1")))

    assert {cause.example: cause.state for cause in found.causes} == {
        "default/gated": PodState.GATED,
        "default/missing": PodState.GATED,
        "default/soon": PodState.FITS,
    }


def test_the_message_alone_after_enough_details() -> None:
    pods = [wanting(f"pod-{number}", str(9 + number)) for number in range(MAX_EXPLAINED + 2)]

    found = pending_pods(observed(NODE, *pods))

    assert (2, "0/1 nodes are available: 1 Insufficient cpu.") in [
        (cause.pods, cause.cause) for cause in found.causes
    ]


def test_selections() -> None:
    replica_set = RawObject(
        manifest_of("ReplicaSet", "web-1", owners=[an_owner("web", kind="Deployment")])
    )
    deployment = RawObject(manifest_of("Deployment", "web"))
    pod = wanting("web-1-x", "9", owners=[an_owner("web-1", kind="ReplicaSet")])
    other = wanting("other", "9", namespace="elsewhere", metadata={"labels": {"a": "b"}})
    running = wanting("running", "1", node="node-1")
    cluster = observed(NODE, replica_set, deployment, pod, other, running)

    def names(selection: PodSelection) -> list[str]:
        return [cause.example for cause in pending_pods(cluster, selection).causes]

    owners = owned_by(cluster, deployment)
    assert names(PodSelection("elsewhere")) == ["elsewhere/other"]
    assert names(PodSelection(labels=labels_selector({"a": "b"}))) == ["elsewhere/other"]
    assert names(PodSelection(owner_uids=owners)) == ["default/web-1-x"]
    (cause,) = pending_pods(cluster, PodSelection(owner_uids=owners)).causes
    assert cause.owners == {"deployment/default/web": 1}


def manifest_of(kind: str, name: str, owners: Any = ()) -> dict[str, Any]:
    metadata = a_pod(name, owners=owners).data["metadata"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {}}


# --- the command ---


def run(*arguments: str, objects: list[Any], tmp_path: Any) -> str:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all(map(manifest, objects)))
    result = CliRunner().invoke(allot, ["explain", "-f", str(file), *arguments])
    if isinstance(result.exception, CommandError):
        raise result.exception
    assert result.exception is None, result.exception
    return result.output


def test_the_command(tmp_path: Any) -> None:
    objects = [NODE, wanting("a", "9"), wanting("b", "9")]

    output = run("--all-pending", objects=objects, tmp_path=tmp_path)

    assert output.splitlines()[0] == "2 pods are pending in namespace default, for 1 cause:"
    assert "pod/a, pod/b" in output
    assert "allot explain pod/a -n default" in output


def test_nothing_is_pending(tmp_path: Any) -> None:
    output = run("--all-pending", "-A", objects=[NODE], tmp_path=tmp_path)

    assert output == "No pod is pending in all namespaces.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["deployment/nope"], "no Deployment nope in namespace default", id="no-such"),
        pytest.param(["-l", "a=b"], "-A and -l go with --all-pending", id="selector-alone"),
        pytest.param([], "or --all-pending", id="nothing"),
        pytest.param(["--all-pending", "-l", "=="], "--selector: ", id="selector"),
    ],
)
def test_bad_input(arguments: list[str], message: str, tmp_path: Any) -> None:
    with pytest.raises(CommandError) as raised:
        run(*arguments, objects=[NODE], tmp_path=tmp_path)

    assert message in str(raised.value)
