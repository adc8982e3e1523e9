from __future__ import annotations

from typing import Any

import pytest

from allot.scheduler.state.resources import Resources
from tests.unit.scheduler.state.objects import a_container, a_pod_info

Mi = 1024 * 1024
HALF = {"cpu": "500m", "memory": "1Mi"}
FULL = {"cpu": "1", "memory": "2Mi"}
SIDECAR: dict[str, Any] = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "milli_cpu", "memory"),
    [
        pytest.param(
            {"containers": [a_container(FULL), a_container(HALF)]}, 1500, 3 * Mi, id="sum"
        ),
        pytest.param(
            {"containers": [a_container(HALF)], "initContainers": [a_container(FULL)]},
            1000,
            2 * Mi,
            id="init-container-is-the-peak",
        ),
        pytest.param(
            {
                "containers": [a_container(HALF)],
                "initContainers": [a_container(FULL), a_container(HALF, **SIDECAR)],
            },
            1000,
            2 * Mi,
            id="sidecar-starts-after-the-init-container",
        ),
        pytest.param(
            {
                "containers": [a_container(HALF)],
                "initContainers": [a_container(HALF, **SIDECAR), a_container(FULL)],
            },
            1500,
            3 * Mi,
            id="init-container-runs-beside-the-sidecar-before-it",
        ),
        pytest.param(
            {"containers": [a_container(FULL)], "overhead": {"cpu": "250m"}},
            1250,
            2 * Mi,
            id="overhead-comes-on-top",
        ),
        pytest.param(
            {"containers": [a_container(FULL)], "resources": {"requests": {"cpu": "3"}}},
            3000,
            2 * Mi,
            id="pod-level-requests-replace-the-sum",
        ),
    ],
)
def test_requests(spec: dict[str, Any], milli_cpu: int, memory: int) -> None:
    requests = a_pod_info(**spec).requests

    assert (milli_cpu, memory) == (requests.milli_cpu, requests.memory)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([a_container()], (100, 200 * Mi), id="defaults-for-nothing"),
        pytest.param([a_container({"cpu": "1"})], (1000, 200 * Mi), id="default-memory"),
        pytest.param([a_container(), a_container()], (200, 400 * Mi), id="per-container"),
        pytest.param([a_container({"cpu": "0", "memory": "0"})], (0, 0), id="zero-is-said"),
    ],
)
def test_scoring_takes_containers_to_use_something(
    containers: list[Any], expected: tuple[int, int]
) -> None:
    pod = a_pod_info(containers=containers)

    assert expected == (pod.nonzero_milli_cpu, pod.nonzero_memory)


def test_scalars_are_sorted_and_exclude_what_is_no_node_resource() -> None:
    pod = a_pod_info(
        requests={"vendor/b": 2, "vendor/a": 1, "vendor/none": 0, "hugepages-2Mi": "4Mi", "odd": 1}
    )

    assert pod.requests.scalars == (("hugepages-2Mi", 4 * Mi), ("vendor/a", 1), ("vendor/b", 2))


@pytest.mark.parametrize(
    ("conditions", "milli_cpu"),
    [
        pytest.param([], 2000, id="the-larger-counts-while-shrinking"),
        pytest.param(
            [{"type": "PodResizePending", "reason": "Infeasible"}],
            2000,
            id="refused-resize-leaves-what-is-held",
        ),
    ],
)
def test_resize_of_a_running_pod(conditions: list[Any], milli_cpu: int) -> None:
    held = [{"name": "c", "allocatedResources": {"cpu": "2"}}]
    pod = a_pod_info(
        requests={"cpu": "1"}, status={"containerStatuses": held, "conditions": conditions}
    )

    assert milli_cpu == pod.requests.milli_cpu


def test_a_refused_resize_does_not_count_what_was_asked_for() -> None:
    status = {
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}],
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    }

    assert a_pod_info(requests={"cpu": "64"}, status=status).requests.milli_cpu == 2000


@pytest.mark.parametrize(
    ("more", "exceeds"),
    [
        pytest.param(Resources(1, 1, 1, (("a/b", 1),)), False, id="equal"),
        pytest.param(Resources(2, 0, 0), True, id="cpu"),
        pytest.param(Resources(0, 2, 0), True, id="memory"),
        pytest.param(Resources(0, 0, 2), True, id="storage"),
        pytest.param(Resources(0, 0, 0, (("a/b", 2),)), True, id="scalar"),
        pytest.param(Resources(0, 0, 0, (("a/c", 1),)), True, id="unknown-scalar"),
    ],
)
def test_exceeds(more: Resources, exceeds: bool) -> None:
    assert exceeds is more.exceeds(Resources(1, 1, 1, (("a/b", 1),)))
