"""`allot what-if`: the difference that changes make; `tests/integration` compares it with a cluster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from allot.api.core import ResourceQuota
from allot.api.raw import RawObject
from allot.apiserver.yaml_documents import YamlLocation
from allot.cli.errors import CommandError
from allot.cli.main import allot
from allot.client import resources
from allot.lint.manifests import Manifest
from allot.public.loading import objects_in
from allot.questions.changes import AddObjects, ChangeError, DrainNode
from allot.questions.cluster_clone import clone_cluster
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.simulation import simulate
from allot.questions.what_if import Effect, WhatIfAnswer, what_if
from allot.questions.written_changes import read_eviction, read_removal, read_scale, read_taint
from allot.testing.builders import (
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    an_allocation,
    an_owner,
    manifest,
)
from allot.testing.observed_clusters import a_claim_template, observed, resource_of

AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}
MODEL = 'device.attributes["gpu.example.com"].model == "H100"'


def a_deployment(name: str, replicas: int, **spec: Any) -> RawObject:
    pod = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
    } | spec
    return RawObject(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            },
        }
    )


def the_cluster(*more: Any) -> list[Any]:
    """Two nodes with two devices each, of two models."""
    return [
        *(a_node(name, status={"allocatable": AMOUNTS}) for name in ("node-1", "node-2")),
        a_slice(*(a_device(f"gpu-{i}", {"model": "H100"}) for i in range(2)), name="s1"),
        a_slice(
            *(a_device(f"gpu-{i}", {"model": "A100"}) for i in range(2)), name="s2", node="node-2"
        ),
        a_class(),
        a_claim_template("gpus"),
        *more,
    ]


def asked(*changes: Any, cluster: list[Any]) -> WhatIfAnswer:
    return what_if(observed(*cluster), changes)


def effects(answer: WhatIfAnswer) -> list[tuple[str, str, str]]:
    return [(str(each.effect), each.before, each.after) for each in answer.effects]


def test_a_drained_node() -> None:
    answer = asked(DrainNode("drain", "node-1"), cluster=the_cluster(a_deployment("web", 3)))

    assert effects(answer) == [("moves", "node-1", "node-2"), ("waits", "node-1", "")]
    waiting = answer.effects[-1]
    assert "request gpu finds 0 of 1 device: 2 devices held by other claims" in waiting.reason
    assert (answer.running_before, answer.running_after) == (3, 2)
    assert answer.devices_before.held == 3
    assert answer.devices_after.utilisation == 0.5


def test_a_pod_that_is_created_anew_with_its_name() -> None:
    """The uid tells it from the one before, also where manifests have no uids."""
    stateful_set = a_deployment("db", 1).with_value("StatefulSet", "kind")
    first = what_if(
        observed(*the_cluster(stateful_set)), [read_scale("statefulset/db=1", "default")]
    )
    assert first.effects == ()
    pod = a_pod(
        "db-0",
        uid="Pod/default/db-0",
        node="node-1",
        owners=[an_owner("db", kind="StatefulSet", api_version="apps/v1")],
        metadata={"labels": {"app": "db"}},
    )

    answer = asked(DrainNode("drain", "node-1"), cluster=the_cluster(stateful_set, pod))

    assert effects(answer) == [("moves", "node-1", "node-2")]


def test_a_pod_without_a_workload_is_not_replaced() -> None:
    answer = asked(DrainNode("drain", "node-1"), cluster=the_cluster(a_pod("alone", node="node-1")))

    (effect,) = answer.effects
    assert (effect.effect, effect.reason) == (Effect.EVICTED, "node node-1 is drained")


def test_a_disruption_budget_protects_a_pod() -> None:
    budget = RawObject(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1},
        }
    )
    pod = a_pod(
        "alone",
        node="node-1",
        phase="Running",
        conditions={"Ready": "True"},
        metadata={"labels": {"app": "x"}},
    )

    answer = asked(DrainNode("drain", "node-1"), cluster=the_cluster(budget, pod))

    assert answer.effects == ()
    assert "pod default/alone stays" in answer.notes[0]


def test_tainted_devices() -> None:
    answer = asked(read_taint(MODEL), cluster=the_cluster(a_deployment("web", 3)))

    assert {each.effect for each in answer.effects} == {Effect.MOVES, Effect.WAITS}
    assert answer.running_after == 2


def test_a_taint_without_eviction() -> None:
    change = read_taint("true:NoSchedule")

    answer = asked(
        change,
        read_scale("deployment/web=4", "default"),
        cluster=the_cluster(a_deployment("web", 3)),
    )

    assert [each.effect for each in answer.effects] == [Effect.WAITS]


def test_scaling_within_a_quota() -> None:
    quota = ResourceQuota(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {"pods": "2"}},
        }
    )

    answer = asked(
        read_scale("deployment/web=4", "default"),
        cluster=the_cluster(a_deployment("web", 1), quota),
    )

    assert effects(answer) == [("starts", "", answer.effects[0].after)]
    assert "deployment/web" in answer.notes[0] or "replicaset/web" in answer.notes[0]
    assert "exceeded quota: few" in answer.notes[0]


def test_a_removed_claim_lets_others_start() -> None:
    held = [
        a_claim(
            name=f"held-{i}",
            uid=f"held-{i}",
            allocation=an_allocation("gpu-0", "gpu-1", pool=f"node-{i}"),
        )
        for i in (1, 2)
    ]

    answer = asked(
        read_removal("claim/held-1", "default"), cluster=the_cluster(*held, a_deployment("web", 1))
    )

    assert effects(answer) == [("starts", "", "node-1")]


def test_preemption() -> None:
    important = a_deployment("important", 0, priority=1000, resourceClaims=[])
    important = important.with_value(
        [{"name": "c", "resources": {"requests": {"cpu": "8"}}}],
        "spec", "template", "spec", "containers",
    )  # fmt: skip
    weak = [
        a_pod(
            f"weak-{i}",
            node=f"node-{i}",
            containers=[{"name": "c", "resources": {"requests": {"cpu": "5"}}}],
        )
        for i in (1, 2)
    ]

    answer = asked(
        read_scale("deployment/important=1", "default"), cluster=the_cluster(important, *weak)
    )

    assert [each.effect for each in answer.effects] == [Effect.STARTS, Effect.EVICTED]
    assert "preempted by pod default/important-" in answer.effects[1].reason


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(lambda: read_scale("deployment/x", "n"), "expected kind/NAME=N", id="scale"),
        pytest.param(lambda: read_scale("pod/x=3", "n"), "a Pod cannot be scaled", id="scale-pod"),
        pytest.param(lambda: read_eviction("node/x", "n"), "only pods can be evicted", id="evict"),
        pytest.param(lambda: read_removal("thing/x", "n"), "expected kind/NAME", id="kind"),
        pytest.param(lambda: read_removal("claim", "n"), "expected kind/NAME", id="no-name"),
        pytest.param(
            lambda: read_taint("device/a/b"), "expected device/DRIVER/POOL/DEVICE", id="device"
        ),
    ],
)
def test_changes_that_are_not_understood(read: Any, message: str) -> None:
    with pytest.raises(ChangeError, match=message):
        read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(DrainNode("drain", "node-3"), "no Node node-3; did you mean", id="node"),
        pytest.param(
            read_removal("claim/x", "default"),
            "no ResourceClaim x in namespace default",
            id="claim",
        ),
        pytest.param(read_taint("device.driver =="), "taint device.driver ==: ", id="expression"),
        pytest.param(read_taint("false"), "selects no device", id="nothing"),
    ],
)
def test_changes_that_cannot_be_made(change: Any, message: str) -> None:
    with pytest.raises(ChangeError, match=message):
        asked(change, cluster=the_cluster())


# --- the command ---


def run(*arguments: str) -> str:
    result = CliRunner().invoke(allot, ["what-if", *arguments])
    if isinstance(result.exception, CommandError):
        raise result.exception
    assert result.exception is None, result.exception
    return result.output


def test_the_order_of_changes(tmp_path: Any) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(map(manifest, the_cluster(a_deployment("web", 1)))))

    output = run(
        "--cluster", str(file), "--scale", "deployment/web=2", "--drain", "node-1",
        "--scale=deployment/web=1", "-o", "json",
    )  # fmt: skip

    changes = yaml.safe_load(output)["changes"]
    assert changes == ["scale deployment/web=2", "drain node-1", "scale deployment/web=1"]


def test_added_hardware(tmp_path: Any) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(map(manifest, the_cluster(a_deployment("web", 9)))))

    output = run("--cluster", str(file), "--add", "gpu-server=1")

    assert "gpu-server-new-0" in output
    assert "pods with a node 4 9 +5" in " ".join(output.split())


def test_nothing_to_change() -> None:
    with pytest.raises(CommandError, match="say what would change"):
        run("--hardware", "gpu-server=1")


def test_pods_are_values() -> None:
    """The observed cluster does not change."""
    cluster = observed(*the_cluster(a_deployment("web", 3)))

    first = what_if(cluster, [DrainNode("drain", "node-1")])
    second = what_if(cluster, [DrainNode("drain", "node-1")])

    assert first == second
    assert cluster.objects.of(resources.PODS) == ()


# --- manifests of what is there already ---


def settled(*workloads: RawObject, is_clone: bool) -> ObservedCluster:
    """A cluster in which these workloads run, or its clone."""
    simulated = simulate(observed(*the_cluster(*workloads)))
    if not is_clone:
        return ObservedCluster(simulated.objects)
    documents = list(clone_cluster(simulated.objects))
    written = [
        Manifest("clone", each, msgspec.json.encode(each), YamlLocation()) for each in documents
    ]
    return ObservedCluster(objects_in(written, KINDS))


def a_workload_with_an_image(kind: str, image: str = "web:1", cpu: str = "1") -> RawObject:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    workload = a_deployment("web", 2, containers=[container])
    return workload.with_value(kind, "kind")


def added(workload: RawObject) -> AddObjects:
    return AddObjects("add", ((resource_of(workload), workload),))


@pytest.mark.parametrize("is_clone", [False, True])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_workload_that_is_there_already_is_not_replaced(kind: str, is_clone: bool) -> None:
    workload = a_workload_with_an_image(kind)
    cluster = settled(workload, is_clone=is_clone)

    answer = what_if(cluster, [added(workload)])

    assert answer.running_before == 2
    assert answer.effects == ()


@pytest.mark.parametrize("is_clone", [False, True])
def test_a_changed_template_replaces_pods(is_clone: bool) -> None:
    cluster = settled(a_workload_with_an_image("Deployment"), is_clone=is_clone)

    larger = what_if(cluster, [added(a_workload_with_an_image("Deployment", cpu="2"))])
    newer = what_if(cluster, [added(a_workload_with_an_image("Deployment", image="web:2"))])

    assert len(larger.effects) == 4
    assert larger.running_after == 2
    assert len(newer.effects) == (0 if is_clone else 4), "a clone has no images"


def test_hashes_of_templates_may_collide() -> None:
    """A set with the name of the new one, and another template, is another set."""
    cluster = settled(a_workload_with_an_image("Deployment"), is_clone=False)
    (old,) = cluster.objects.of(resources.REPLICA_SETS)
    template = old.get("spec", "template")
    other = {**template, "spec": {**template["spec"], "priority": 7}}
    cluster.objects.put(resources.REPLICA_SETS, old.with_value(other, "spec", "template"))

    answer = what_if(cluster, [added(a_workload_with_an_image("Deployment"))])

    assert answer.running_after == 2
    assert answer.waiting_after == 0


def test_pods_of_new_workloads_are_spread_by_default() -> None:
    """As in a cluster, where the scheduler sees the new ReplicaSet; by resources both nodes are equal."""
    status = {"allocatable": {**AMOUNTS, "cpu": "1000"}}
    nodes = [a_node(name, labels={"kubernetes.io/hostname": name}, status=status) for name in "ab"]

    answer = asked(added(a_deployment("plain", 4, resourceClaims=[])), cluster=nodes)

    assert sorted(each.after for each in answer.effects) == ["a", "a", "b", "b"]


def test_a_missing_template_is_named() -> None:
    cluster = [each for each in the_cluster() if type(each).__name__ != "ResourceClaimTemplate"]

    answer = asked(added(a_deployment("web", 1)), cluster=cluster)

    assert [each.reason for each in answer.effects] == [
        "no ResourceClaimTemplate gpus in namespace default"
    ]


def test_a_taint_that_is_no_expression() -> None:
    with pytest.raises(ChangeError) as caught:
        asked(read_taint("device.foo =="), cluster=the_cluster())

    assert str(caught.value).count("taint device.foo") == 1
