"""ServiceCIDRs are ready, and stay while addresses of theirs are in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster

KIND = "ServiceCIDR"
NETWORKING = "networking.k8s.io/v1"


@pytest.fixture
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        yield running


def a_service_cidr(name: str, *cidrs: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": NETWORKING, "kind": KIND, "metadata": metadata, "spec": {"cidrs": cidrs}}


def an_address(address: str) -> dict[str, Any]:
    parent = {"resource": "services", "namespace": "default", "name": "s"}
    return {
        "apiVersion": NETWORKING,
        "kind": "IPAddress",
        "metadata": {"name": address},
        "spec": {"parentRef": parent},
    }


def find(cluster: VirtualTimeCluster, name: str) -> dict[str, Any] | None:
    found = (each for each in cluster.list(KIND) if each["metadata"]["name"] == name)
    return next(found, None)


def ready(service_cidr: dict[str, Any] | None) -> tuple[str, str]:
    assert service_cidr is not None
    (condition,) = service_cidr["status"]["conditions"]
    return condition["status"], condition["reason"]


def test_a_new_range_is_ready(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_service_cidr("mine", "10.7.0.0/24"))
    cluster.advance(1)

    found = find(cluster, "mine")
    assert ready(found) == ("True", "")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]


def test_an_unused_range_goes(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_service_cidr("mine", "10.7.0.0/24"))
    cluster.advance(1)

    cluster.delete(KIND, "mine")
    cluster.advance(1)

    assert find(cluster, "mine") is None


def test_a_range_in_use_stays_until_another_one_has_its_addresses(
    cluster: VirtualTimeCluster,
) -> None:
    cluster.apply(a_service_cidr("mine", "10.7.0.0/24"), an_address("10.7.0.5"))
    cluster.advance(1)

    cluster.delete(KIND, "mine")
    cluster.advance(1)
    assert ready(find(cluster, "mine")) == ("False", "Terminating")

    cluster.apply(a_service_cidr("wider", "10.7.0.0/16"))
    cluster.advance(1)
    assert find(cluster, "mine") is None
    assert ready(find(cluster, "wider")) == ("True", "")
