"""Drivers that run on while a gate of the API server is switched: what it drops comes back."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Final

import pytest

from allot.features import BINDING_CONDITIONS, CONSUMABLE_CAPACITY
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from tests.gates.rolling import RollingCluster

PROFILES: Final = [
    pytest.param("shared-nic", CONSUMABLE_CAPACITY, "allowMultipleAllocations", id="shared-nic"),
    pytest.param("fabric", BINDING_CONDITIONS, "bindingConditions", id="fabric"),
]


def slices(cluster: VirtualTimeCluster) -> list[dict[str, Any]]:
    return cluster.list("ResourceSlice")


def has_field(cluster: VirtualTimeCluster, field: str) -> bool:
    return any(field in device for each in slices(cluster) for device in each["spec"]["devices"])


@pytest.mark.parametrize(("profile", "gate", "field"), PROFILES)
def test_fields_come_back_with_the_gate(
    profile: str, gate: str, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    off = ClusterSettings(hardware=[profile], feature_gates={gate: False})
    with caplog.at_level(logging.WARNING), RollingCluster(off) as cluster:
        cluster.advance(1)
        before = slices(cluster)
        assert before
        assert not has_field(cluster, field)
        cluster.advance(600)
        assert slices(cluster) == before
        assert sum("the server drops" in record.message for record in caplog.records) == 1

        cluster.restart(replace(off, feature_gates={gate: True}))
        cluster.advance(120)
        assert has_field(cluster, field)
        assert len(cluster.list("DeviceClass")) == 1
        after = slices(cluster)

        cluster.restart(off)
        cluster.advance(600)
        assert slices(cluster) == after


def test_a_class_that_is_refused_does_not_keep_nodes_from_working(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The class of the profile asks for `device.allowMultipleAllocations`."""
    off = ClusterSettings(hardware=["shared-nic"], feature_gates={CONSUMABLE_CAPACITY: False})
    with caplog.at_level(logging.ERROR), VirtualTimeCluster(off) as cluster:
        cluster.advance(600)
        assert cluster.list("DeviceClass") == []
        (record,) = caplog.records
        assert 'DeviceClass.resource.k8s.io "shared-nic.example.com" is invalid' in record.message

        cluster.restart(ClusterSettings(hardware=["shared-nic"]))
        assert len(cluster.list("DeviceClass")) == 1
        caplog.clear()
        cluster.restart(off)
        assert len(cluster.list("DeviceClass")) == 1
        assert not caplog.records
