from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import FilterPlugin
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.plugins.volume_restrictions import VolumeRestrictions
from allot.scheduler.plugins.volume_zone import VolumeZone
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from tests.unit.scheduler.state.objects import (
    HOST,
    ZONE,
    a_cluster,
    a_node_facts,
    a_pod_info,
    answers,
    reasons,
)

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_STORAGE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


def a_volume_claim(
    name: str = "data",
    size: str = "1Gi",
    *,
    volume: str = "",
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> RawObject:
    """A claim of the class `late`, bound if it names its volume."""
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "7"}
    fields = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "volumeName": volume,
    }
    return RawObject(
        {
            "kind": "PersistentVolumeClaim",
            "metadata": meta | done | (metadata or {}),
            "spec": fields | spec,
            "status": status or {},
        }
    )


def a_volume(
    name: str = "pv",
    size: str = "1Gi",
    *,
    node: str = "",
    labels: dict[str, str] | None = None,
    phase: str = "Available",
    **spec: Any,
) -> RawObject:
    fields: dict[str, Any] = {
        "storageClassName": "late",
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
    }
    if node:
        here = {"key": HOST, "operator": "In", "values": [node]}
        terms = [{"matchExpressions": [here]}]
        fields["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return RawObject(
        {
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": fields | spec,
            "status": {"phase": phase},
        }
    )


def a_storage_class(name: str = "late", provisioner: str = "", **fields: Any) -> RawObject:
    mode = "Immediate" if name == "early" else "WaitForFirstConsumer"
    return RawObject(
        {
            "metadata": {"name": name},
            "provisioner": provisioner or "kubernetes.io/no-provisioner",
            "volumeBindingMode": mode,
            **fields,
        }
    )


def volumes(*objects: RawObject, storage_class: RawObject | None = None) -> VolumeState:
    state = VolumeState()
    state.set_class(storage_class or a_storage_class())
    state.set_class(a_storage_class("early"))
    for one in objects:
        if one.kind == "PersistentVolume":
            state.set_volume(one)
        else:
            state.set_claim(one)
    return state


def using(*claims: str, name: str = "pod", **fields: Any) -> PodInfo:
    mounts = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return a_pod_info(name, volumes=mounts, **fields)


def two_nodes(*pods: PodInfo) -> ClusterState:
    return a_cluster(
        [a_node_facts("a", labels={ZONE: "za"}), a_node_facts("b", labels={ZONE: "zb"})], pods
    )


def refusals(
    state: VolumeState, pod: PodInfo | None = None, cluster: ClusterState | None = None
) -> dict[str, str]:
    cluster = cluster or two_nodes()
    return reasons(VolumeBinding(state, cluster), pod or using("data"), cluster)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no-claim"),
        pytest.param(
            [a_volume_claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
            id="deleted",
        ),
        pytest.param([a_volume_claim(storageClassName="early")], IMMEDIATE, id="immediate"),
        pytest.param([a_volume_claim(storageClassName="")], IMMEDIATE, id="no-class"),
        pytest.param(
            [a_volume_claim(volumeName="pv")], IMMEDIATE, id="names-its-volume-but-is-not-bound-yet"
        ),
        pytest.param(
            [a_volume_claim(status={"phase": "Lost"}, volume="pv")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="lost",
        ),
    ],
)
def test_claims_that_fit_nowhere(objects: list[RawObject], expected: str) -> None:
    assert refusals(volumes(*objects)) == {"a": expected, "b": expected}


def test_an_ephemeral_claim_must_be_made_for_this_very_pod() -> None:
    pod = a_pod_info(volumes=[{"name": "scratch", "ephemeral": {}}])
    waiting = refusals(volumes(), pod)["a"]
    stranger = refusals(volumes(a_volume_claim("pod-scratch")), pod)["a"]
    owner = {"ownerReferences": [{"uid": pod.uid, "controller": True}]}
    ours = volumes(a_volume_claim("pod-scratch", metadata=owner), a_volume())

    assert waiting == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-scratch"'
    )
    assert "was not created for pod" in stranger
    assert refusals(ours, pod) == {}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([a_volume_claim(volume="pv"), a_volume()], {}, id="reachable-from-everywhere"),
        pytest.param(
            [a_volume_claim(volume="pv"), a_volume(node="a")],
            {"b": OUT_OF_REACH},
            id="local-volume",
        ),
        pytest.param(
            [a_volume_claim(volume="pv")], {"a": MISSING, "b": MISSING}, id="volume-is-gone"
        ),
    ],
)
def test_bound_claims(objects: list[RawObject], expected: dict[str, str]) -> None:
    assert expected == refusals(volumes(*objects))


NOWHERE = {"a": NO_VOLUME, "b": NO_VOLUME}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([a_volume_claim()], NOWHERE, id="no-volume"),
        pytest.param([a_volume_claim(), a_volume(node="a")], {"b": NO_VOLUME}, id="local-volume"),
        pytest.param([a_volume_claim(size="2Gi"), a_volume()], NOWHERE, id="too-small"),
        pytest.param([a_volume_claim(volumeMode="Block"), a_volume()], NOWHERE, id="other-mode"),
        pytest.param(
            [a_volume_claim(accessModes=["ReadWriteMany"]), a_volume()], NOWHERE, id="access"
        ),
        pytest.param([a_volume_claim(), a_volume(storageClassName="x")], NOWHERE, id="other-class"),
        pytest.param([a_volume_claim(), a_volume(phase="Released")], NOWHERE, id="released"),
        pytest.param(
            [a_volume_claim(), a_volume(claimRef={"namespace": "default", "name": "other"})],
            NOWHERE,
            id="of-another-claim",
        ),
        pytest.param(
            [a_volume_claim(), a_volume(claimRef={"namespace": "default", "name": "data"})],
            {},
            id="meant-for-us",
        ),
        pytest.param(
            [a_volume_claim(selector={"matchLabels": {"disk": "ssd"}}), a_volume()],
            NOWHERE,
            id="selector",
        ),
        pytest.param(
            [
                a_volume_claim(selector={"matchLabels": {"disk": "ssd"}}),
                a_volume(labels={"disk": "ssd"}),
            ],
            {},
            id="selected",
        ),
        pytest.param(
            [a_volume_claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "a"}})],
            NOWHERE,
            id="promised-to-a-node-without-a-provisioner",
        ),
    ],
)
def test_volumes_are_found_for_the_first_pod(
    objects: list[RawObject], expected: dict[str, str]
) -> None:
    assert expected == refusals(volumes(*objects))


def test_two_claims_need_two_volumes() -> None:
    claims = [a_volume_claim("one"), a_volume_claim("two")]
    pod = using("one", "two")

    assert refusals(volumes(*claims, a_volume("x")), pod) == NOWHERE
    assert refusals(volumes(*claims, a_volume("x"), a_volume("y")), pod) == {}


ONLY_ZB = [{"matchLabelExpressions": [{"key": ZONE, "values": ["zb"]}]}]


@pytest.mark.parametrize(
    ("storage_class", "expected"),
    [
        pytest.param(a_storage_class(provisioner="csi.x"), {}, id="made-anywhere"),
        pytest.param(
            a_storage_class(provisioner="csi.x", allowedTopologies=ONLY_ZB),
            {"a": NO_VOLUME},
            id="made-in-one-zone",
        ),
    ],
)
def test_volumes_are_made(storage_class: RawObject, expected: dict[str, str]) -> None:
    assert expected == refusals(volumes(a_volume_claim(), storage_class=storage_class))


def test_a_claim_promised_to_a_node_stays_there() -> None:
    claim = a_volume_claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "a"}})
    state = volumes(claim, storage_class=a_storage_class(provisioner="csi.x"))

    assert refusals(state) == {"b": NO_VOLUME}


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        pytest.param({"capacity": "5Gi"}, {"b": NO_STORAGE}, id="enough-on-a"),
        pytest.param({"capacity": "1Mi"}, {"a": NO_STORAGE, "b": NO_STORAGE}, id="too-little"),
        pytest.param(
            {"capacity": "5Gi", "maximumVolumeSize": "1Mi"},
            {"a": NO_STORAGE, "b": NO_STORAGE},
            id="volumes-cannot-be-that-large",
        ),
    ],
)
def test_drivers_that_tell_their_capacity(
    capacity: dict[str, str], expected: dict[str, str]
) -> None:
    state = volumes(a_volume_claim(), storage_class=a_storage_class(provisioner="csi.x"))
    state.set_csi_driver(
        RawObject({"metadata": {"name": "csi.x"}, "spec": {"storageCapacity": True}})
    )
    where = {"matchLabels": {HOST: "a"}}
    state.set_capacity(
        RawObject(
            {
                "metadata": {"namespace": "kube-system", "name": "cap"},
                "storageClassName": "late",
                "nodeTopology": where,
                **capacity,
            }
        )
    )

    assert expected == refusals(state)


class FakeApi:
    """Writes into the state as an informer would, and binds what was asked for."""

    def __init__(self, state: VolumeState, *, binds: bool = True) -> None:
        self.state = state
        self.binds = binds
        self.written: list[RawObject] = []

    async def update(self, changed: RawObject) -> RawObject:
        self.written.append(changed)
        return changed

    async def wait_until(self, is_done: Callable[[], bool], timeout_seconds: float) -> bool:
        assert not is_done()
        if self.binds:
            for one in self.written:
                volume = one.metadata.name
                claim = one.get("spec", "claimRef", "name")
                if claim is None:
                    claim, volume = one.metadata.name, "made"
                    self.state.set_volume(a_volume("made"))
                self.state.set_claim(a_volume_claim(claim, volume=volume))
        return is_done()


def decide(plugin: VolumeBinding, pod: PodInfo, cluster: ClusterState, node: str) -> CycleState:
    """The cycle up to reserve."""
    state = CycleState()
    plugin.pre_filter(state, pod, cluster)
    for one in cluster.nodes:
        plugin.filter(state, pod, one)
    assert plugin.reserve(state, pod, node).is_success
    return state


def test_the_smallest_volume_is_reserved_written_and_waited_for() -> None:
    state = volumes(a_volume_claim(), a_volume("large", "9Gi"), a_volume("small", "2Gi"))
    cluster, api = two_nodes(), FakeApi(state)
    plugin, pod = VolumeBinding(state, cluster, api), using("data")
    cycle = decide(plugin, pod, cluster, "a")
    assert state.reserved_volumes == {"small": ObjectKey("default", "data")}
    assert plugin.needs_pre_bind(cycle, pod, "a")

    status = asyncio.run(plugin.pre_bind(cycle, pod, "a"))

    assert status.is_success
    (written,) = api.written
    assert written.metadata.name == "small"
    assert written.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert written.get("spec", "claimRef") == {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "data",
        "uid": "uid-data",
        "resourceVersion": "7",
    }
    assert not state.reserved_volumes


def test_a_volume_to_be_made_is_asked_for_on_the_claim() -> None:
    state = volumes(a_volume_claim(), storage_class=a_storage_class(provisioner="csi.x"))
    cluster, api = two_nodes(), FakeApi(state)
    plugin, pod = VolumeBinding(state, cluster, api), using("data")
    cycle = decide(plugin, pod, cluster, "b")

    assert asyncio.run(plugin.pre_bind(cycle, pod, "b")).is_success

    (written,) = api.written
    assert written.metadata.annotations == {"volume.kubernetes.io/selected-node": "b"}


def test_waiting_ends_with_an_error_when_time_runs_out() -> None:
    state = volumes(a_volume_claim(), a_volume())
    cluster = two_nodes()
    plugin = VolumeBinding(state, cluster, FakeApi(state, binds=False))
    cycle = decide(plugin, using("data"), cluster, "a")

    assert asyncio.run(plugin.pre_bind(cycle, using("data"), "a")).code is Code.ERROR


def test_a_reserved_volume_is_taken_until_unreserve() -> None:
    state = volumes(a_volume_claim(), a_volume_claim("other"), a_volume())
    cluster = two_nodes()
    plugin = VolumeBinding(state, cluster)
    cycle = decide(plugin, using("data"), cluster, "a")
    state.set_volume(a_volume(labels={"touched": "yes"}))  # news do not undo a promise
    assert refusals(state, using("other")) == NOWHERE

    plugin.unreserve(cycle, using("data"), "a")

    assert refusals(state, using("other")) == {}


def test_a_promised_node_is_kept_until_it_is_given_back() -> None:
    state = volumes(a_volume_claim(), storage_class=a_storage_class(provisioner="csi.x"))
    cluster = two_nodes()
    plugin = VolumeBinding(state, cluster)
    cycle = decide(plugin, using("data"), cluster, "a")
    assert refusals(state) == {"b": NO_VOLUME}

    plugin.unreserve(cycle, using("data"), "a")

    assert refusals(state) == {}


def test_pods_without_claims_are_not_looked_at() -> None:
    plugin = VolumeBinding(volumes(), two_nodes())

    assert plugin.pre_filter(CycleState(), a_pod_info(), two_nodes()).status.is_skip
    assert plugin.reserve(CycleState(), a_pod_info(), "a").is_success
    assert not plugin.needs_pre_bind(CycleState(), a_pod_info(), "a")


# --- restrictions, limits, zones ---

IN_USE = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"


def test_read_write_once_pod_means_one_pod_in_the_cluster() -> None:
    state = volumes(a_volume_claim(accessModes=["ReadWriteOncePod"]))
    user = using("data", name="user", node="a")
    cluster = two_nodes(user)
    plugin, pod, cycle = VolumeRestrictions(state), using("data"), CycleState()
    assert reasons(plugin, pod, cluster) == {"a": IN_USE, "b": IN_USE}

    plugin.pre_filter(cycle, pod, cluster)
    node = cluster.nodes[0]
    plugin.remove_pod(cycle, pod, user, node)

    assert plugin.filter(cycle, pod, node).is_success


def disk(kind: str, read_only: bool = False, **source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "d", kind: {"readOnly": read_only, **source}}]}


RBD: dict[str, Any] = {"image": "i", "monitors": ["m1", "m2"]}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        pytest.param(
            disk("gcePersistentDisk", pdName="x"), disk("gcePersistentDisk", pdName="x"), True,
            id="gce",
        ),
        pytest.param(
            disk("gcePersistentDisk", True, pdName="x"), disk("gcePersistentDisk", True, pdName="x"),
            False, id="gce-both-read-only",
        ),
        pytest.param(
            disk("gcePersistentDisk", pdName="x"), disk("gcePersistentDisk", pdName="y"), False,
            id="gce-other-disk",
        ),
        pytest.param(
            disk("awsElasticBlockStore", True, volumeID="x"),
            disk("awsElasticBlockStore", True, volumeID="x"), True, id="ebs-even-read-only",
        ),
        pytest.param(disk("iscsi", iqn="x"), disk("iscsi", True, iqn="x"), True, id="iscsi"),
        pytest.param(disk("rbd", **RBD), disk("rbd", pool="rbd", **RBD), True, id="rbd-pool-default"),
        pytest.param(
            disk("rbd", **RBD), disk("rbd", image="i", monitors=["m3"]), False, id="rbd-other-cluster"
        ),
        pytest.param(disk("iscsi", iqn="x"), disk("rbd", **RBD), False, id="other-kinds"),
    ],
)  # fmt: skip
def test_inline_disks(mine: dict[str, Any], theirs: dict[str, Any], conflict: bool) -> None:
    cluster = two_nodes(a_pod_info("there", node="a", **theirs))
    expected = {"a": "node(s) had no available disk"} if conflict else {}

    assert expected == reasons(VolumeRestrictions(volumes()), a_pod_info(**mine), cluster)


def limited(state: VolumeState, count: int) -> VolumeState:
    drivers = [{"name": "csi.x", "allocatable": {"count": count}}]
    state.set_csi_node(RawObject({"metadata": {"name": "a"}, "spec": {"drivers": drivers}}))
    return state


def csi(name: str) -> RawObject:
    return a_volume(name, csi={"driver": "csi.x", "volumeHandle": f"h-{name}"})


TOO_MANY = {"a": "node(s) exceed max volume count"}


@pytest.mark.parametrize(
    ("limit", "wanted", "expected"),
    [
        pytest.param(2, ["two"], {}, id="one-more-fits"),
        pytest.param(1, ["two"], TOO_MANY, id="one-too-many"),
        pytest.param(1, ["one"], {}, id="the-same-volume-counts-once"),
        pytest.param(0, ["one"], {}, id="a-node-over-its-limit-takes-what-it-has"),
        pytest.param(2, ["two", "late"], TOO_MANY, id="volumes-to-be-made-count"),
    ],
)
def test_volume_limits(limit: int, wanted: list[str], expected: dict[str, str]) -> None:
    claims = [
        a_volume_claim("one", volume="v1"),
        a_volume_claim("two", volume="v2"),
        a_volume_claim("late"),
    ]
    state = volumes(
        *claims, csi("v1"), csi("v2"), storage_class=a_storage_class(provisioner="csi.x")
    )
    cluster = two_nodes(using("one", name="there", node="a"))

    assert expected == reasons(NodeVolumeLimits(limited(state, limit)), using(*wanted), cluster)


def test_attached_volumes_count_without_a_pod() -> None:
    state = limited(volumes(a_volume_claim("two", volume="v2"), csi("v1"), csi("v2")), 1)
    source = {"persistentVolumeName": "v1"}
    spec = {"nodeName": "a", "attacher": "csi.x", "source": source}
    state.set_attachment(RawObject({"metadata": {"name": "att"}, "spec": spec}))
    assert reasons(NodeVolumeLimits(state), using("two"), two_nodes()) == TOO_MANY

    state.remove_attachment("att")

    assert reasons(NodeVolumeLimits(state), using("two"), two_nodes()) == {}


WRONG_ZONE = "node(s) had no available volume zone"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, {}, id="no-labels"),
        pytest.param({ZONE: "za"}, {"b": WRONG_ZONE}, id="zone"),
        pytest.param({ZONE: "za__zb"}, {}, id="several-zones"),
        pytest.param(
            {"failure-domain.beta.kubernetes.io/zone": "zb"}, {"a": WRONG_ZONE}, id="old-label"
        ),
        pytest.param(
            {"topology.kubernetes.io/region": "r"}, {"a": WRONG_ZONE, "b": WRONG_ZONE}, id="region"
        ),
    ],
)
def test_volume_zone(labels: dict[str, str], expected: dict[str, str]) -> None:
    state = volumes(a_volume_claim(volume="pv"), a_volume(labels=labels))

    assert expected == reasons(VolumeZone(state), using("data"), two_nodes())


def test_a_cluster_without_zones_takes_every_volume() -> None:
    state = volumes(a_volume_claim(volume="pv"), a_volume(labels={ZONE: "za"}))

    assert reasons(VolumeZone(state), using("data"), a_cluster([a_node_facts()])) == {}


@pytest.mark.parametrize(
    ("plugin", "objects"),
    [
        pytest.param(VolumeZone, [a_volume_claim(storageClassName="early")], id="zone-unknown"),
        pytest.param(VolumeZone, [], id="zone-of-no-claim"),
        pytest.param(VolumeRestrictions, [], id="restriction-of-no-claim"),
    ],
)
def test_what_cannot_be_judged_fits_nowhere(
    plugin: Callable[[VolumeState], FilterPlugin], objects: list[RawObject]
) -> None:
    found = answers(plugin(volumes(*objects)), using("data"), two_nodes())

    assert {status.code for status in found.values()} == {Code.UNRESOLVABLE}
