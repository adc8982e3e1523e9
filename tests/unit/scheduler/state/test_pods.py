from __future__ import annotations

import sys
from typing import Any

import pytest

from allot.scheduler.state.pods import HostPort, PodInfo, VolumeClaimRef
from tests.unit.scheduler.state.objects import REQUIRED, a_container, a_pod_info


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"name": "another"}, id="name"),
        pytest.param({"namespace": "another"}, id="namespace"),
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"priority": 7}, id="priority"),
        pytest.param({"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}, id="claims"),
    ],
)
def test_pods_that_differ_only_in_this_have_one_shape(changes: dict[str, Any]) -> None:
    assert a_pod_info().equivalence_class is a_pod_info(**changes).equivalence_class


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"requests": {"cpu": "1"}}, id="requests"),
        pytest.param({"node": "n"}, id="node-name"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, id="tolerations"),
        pytest.param({"nodeSelector": {"a": "b"}}, id="node-selector"),
        pytest.param(
            {"containers": [a_container(ports=[{"containerPort": 1, "hostPort": 1}])]}, id="ports"
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, id="affinity"
        ),
        pytest.param({"containers": [a_container(), a_container()]}, id="defaults-for-scoring"),
    ],
)
def test_pods_that_differ_in_this_have_different_shapes(changes: dict[str, Any]) -> None:
    assert a_pod_info().equivalence_class is not a_pod_info(**changes).equivalence_class


def test_host_ports_of_containers_and_sidecars() -> None:
    wanted = [{"containerPort": 1, "hostPort": 8080, "hostIP": "10.0.0.1"}, {"containerPort": 2}]
    pod = a_pod_info(
        containers=[a_container(ports=wanted)],
        initContainers=[
            a_container(restartPolicy="Always", ports=[{"hostPort": 53, "protocol": "UDP"}]),
            a_container(ports=[{"hostPort": 99}]),
        ],
    )

    assert pod.host_ports == (HostPort("", "UDP", 53), HostPort("10.0.0.1", "TCP", 8080))


def test_images_get_their_default_tag() -> None:
    images = ["app", "registry:5000/app", "app:v1", "app@sha256:00"]
    pod = a_pod_info(containers=[a_container(image=image) for image in images])

    assert pod.images == ("app:latest", "registry:5000/app:latest", "app:v1", "app@sha256:00")


def test_volume_claims_are_named_or_made_for_the_pod() -> None:
    pod = a_pod_info(
        "web",
        volumes=[
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "ephemeral": {}},
            {"name": "c", "emptyDir": {}},
        ],
    )

    assert pod.volume_claims == (VolumeClaimRef("data", False), VolumeClaimRef("web-b", True))


def test_affinity_terms_mean_the_own_namespace_unless_they_say_otherwise() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    pod = a_pod_info(
        namespace="here",
        affinity={
            "podAffinity": {REQUIRED: [term, term | {"namespaces": ["there"]}]},
            "podAntiAffinity": {REQUIRED: [term | {"namespaceSelector": {}}]},
        },
    )

    assert [one.namespaces for one in pod.affinity] == [{"here"}, {"there"}]
    assert pod.anti_affinity[0].matches("anywhere", {"app": "db"}, {})


def test_label_keys_narrow_the_selector_to_pods_like_this_one() -> None:
    labels = {"app": "web", "pod-template-hash": "1"}
    pod = a_pod_info(
        labels=labels,
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["pod-template-hash", "absent"],
            }
        ],
    )
    selector = pod.spread_constraints[0].selector

    assert selector is not None
    assert selector.matches(labels)
    assert not selector.matches(labels | {"pod-template-hash": "2"})


def test_an_assigned_copy_leaves_the_pod_alone() -> None:
    pod = a_pod_info()

    assert pod.assigned_to("n").node_name == "n"
    assert pod.node_name == ""


# --- later versions ---

WANTING = a_pod_info(
    "pod",
    {"cpu": "1"},
    labels={"app": "a"},
    tolerations=[{"key": "k", "operator": "Exists"}],
    resourceClaims=[{"name": "c", "resourceClaimName": "claim"}],
)


def assert_equal(one: PodInfo, other: PodInfo) -> None:
    for field in PodInfo.__struct_fields__:
        if field != "shape":
            assert getattr(one, field) == getattr(other, field), field


@pytest.mark.parametrize(
    ("change", "parsed_again"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"node": "n"}, False, id="bound"),
        pytest.param({"status": {"phase": "Running", "startTime": "now"}}, False, id="it-runs"),
        pytest.param({"status": {"phase": "Failed"}}, False, id="it-failed"),
        pytest.param({"status": {"nominatedNodeName": "n"}}, False, id="nominated"),
        pytest.param(
            {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}]}},
            False,
            id="its-claim-was-made",
        ),
        pytest.param({"metadata": {"deletionTimestamp": "now"}}, False, id="it-goes"),
        pytest.param({"labels": {"app": "b"}}, True, id="other-labels"),
        pytest.param({"labels": {}}, True, id="no-labels"),
        pytest.param({"tolerations": []}, True, id="other-tolerations"),
        pytest.param({"requests": {"cpu": "2"}}, True, id="other-requests"),
        pytest.param({"priority": 7}, True, id="more-in-the-spec"),
        pytest.param(
            {
                "status": {
                    "containerStatuses": [
                        {"name": "c", "resources": {"requests": {"cpu": "3"}}, "ready": True}
                    ]
                }
            },
            True,
            id="it-holds-more-than-it-asks-for",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}},
            True,
            id="a-resize-is-under-way",
        ),
    ],
)
def test_a_later_version_is_what_it_would_be_alone(
    change: dict[str, Any], parsed_again: bool
) -> None:
    given: dict[str, Any] = {
        "requests": {"cpu": "1"},
        "labels": {"app": "a"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "claim"}],
    }
    alone = a_pod_info(**given | change)

    later = PodInfo.of(alone.pod, WANTING)

    assert_equal(later, alone)
    assert (later.tolerations is not WANTING.tolerations) is parsed_again
    assert (later.shape is not WANTING.shape) is parsed_again


def test_a_version_after_a_resize_is_parsed_again() -> None:
    resizing = a_pod_info(
        requests={"cpu": "1"},
        status={"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]},
    )
    alone = a_pod_info(requests={"cpu": "1"})

    later = PodInfo.of(alone.pod, resizing)

    assert_equal(later, alone)
    assert later.shape is not resizing.shape


# --- pods that are similar ---

NEAR_OTHERS = {"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
SCRATCH = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]


@pytest.mark.parametrize(
    ("common", "change", "parsed_again"),
    [
        pytest.param({}, {}, False, id="equal"),
        pytest.param({}, {"status": {"nominatedNodeName": "n"}}, False, id="in-its-status"),
        pytest.param({}, {"node": "n"}, False, id="bound"),
        pytest.param({}, {"labels": {"app": "b"}}, True, id="other-labels"),
        pytest.param({}, {"requests": {"cpu": "2"}}, True, id="other-requests"),
        pytest.param({"node": "n"}, {"node": "m"}, False, id="both-bound"),
        pytest.param({"affinity": NEAR_OTHERS}, {}, False, id="of-one-namespace"),
        pytest.param({"affinity": NEAR_OTHERS}, {"namespace": "b"}, True, id="of-two-namespaces"),
        pytest.param({"volumes": SCRATCH}, {}, True, id="with-volumes-of-their-own"),
    ],
)
def test_a_pod_like_another_is_what_it_would_be_alone(
    common: dict[str, Any], change: dict[str, Any], parsed_again: bool
) -> None:
    given = {"tolerations": [{"key": "k", "operator": "Exists"}], **common}
    other = a_pod_info("other", **given)
    alone = a_pod_info("pod", **given | change)

    similar = PodInfo.of(alone.pod, None, other)

    assert_equal(similar, alone)
    assert (similar.tolerations is not other.tolerations) is parsed_again
    assert (similar.shape is not other.shape) is parsed_again


def test_an_older_spec_is_not_kept_beside_the_latest_one() -> None:
    before = a_pod_info("pod")
    older = before.pod.data["spec"]["containers"]
    after = PodInfo.of(a_pod_info("pod", node="n").pod, before)
    del before

    assert after.node_name == "n"
    assert sys.getrefcount(older) == 2  # here, and as the argument
