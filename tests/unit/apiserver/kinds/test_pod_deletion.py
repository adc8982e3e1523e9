"""Graceful deletion of pods: grace periods, second deletes, finalizers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.api.core import Pod
from allot.apiserver.kinds.pod_deletion import PodDeletion, graceful_delete
from allot.testing.builders import a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_deleted_pod(grace_seconds: int) -> Pod:
    """A pod on a node that is being deleted since NOW."""
    metadata = {"deletionGracePeriodSeconds": grace_seconds}
    return a_pod(node="n", deleting=True, metadata=metadata)


@pytest.mark.parametrize(
    ("pod", "asked", "seconds"),
    [
        pytest.param(a_pod(node="n"), None, 30, id="default"),
        pytest.param(a_pod(node="n", terminationGracePeriodSeconds=5), None, 5, id="its-own"),
        pytest.param(a_pod(node="n"), 3, 3, id="asked-for"),
        pytest.param(a_pod(node="n"), 0, 0, id="now"),
        pytest.param(a_pod(node="n"), -1, 1, id="negative"),
        pytest.param(a_pod(), 60, 0, id="runs-nowhere"),
        pytest.param(a_pod(node="n", phase="Failed"), 60, 0, id="finished"),
    ],
)
def test_graceful_delete(pod: Pod, asked: int | None, seconds: int) -> None:
    expected = PodDeletion(NOW + timedelta(seconds=seconds), seconds, delete_now=seconds == 0)

    assert graceful_delete(pod, asked, NOW) == expected


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        pytest.param(None, PodDeletion(NOW, 30, False), id="nothing-new"),
        pytest.param(60, PodDeletion(NOW, 30, False), id="longer"),
        pytest.param(10, PodDeletion(NOW - timedelta(seconds=20), 10, False), id="shorter"),
        pytest.param(0, PodDeletion(NOW - timedelta(seconds=30), 0, True), id="at-once"),
    ],
)
def test_a_second_delete_only_shortens(asked: int | None, left: PodDeletion) -> None:
    pod = a_deleted_pod(30)

    assert graceful_delete(pod, asked, NOW) == left


@pytest.mark.parametrize("asked", [None, 0, 30])
def test_a_pod_that_only_its_finalizers_held_can_go(asked: int | None) -> None:
    pod = a_deleted_pod(0)

    assert graceful_delete(pod, asked, NOW) == PodDeletion(NOW, 0, delete_now=True)
