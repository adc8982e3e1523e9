"""A rule or a pool that concerns very many claims is looked at in steps."""

from __future__ import annotations

from typing import Any

from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.core import Pod
from allot.api.meta import ObjectMeta
from allot.api.resource import DeviceTaint
from allot.api.slices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.client.cooperative import Steps, finish
from allot.client.informer import Informer
from allot.client.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.controllers.device_taint_eviction.affected import CLAIMS_AT_ONCE, Affected
from allot.controllers.device_taint_eviction.rule_status import Reach
from tests.unit.client.fakes import scripted

COUNT = 20 * CLAIMS_AT_ONCE
RULE = DeviceTaintRule(
    ObjectMeta(name="r", uid="rule"),
    DeviceTaintRuleSpec(DeviceTaintSelector(driver="d"), DeviceTaint(key="k", effect="NoExecute")),
)


def a_pod(number: int) -> Pod:
    metadata = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"}
    claims = [{"name": "r", "resourceClaimName": f"c{number}"}]
    return Pod({"metadata": metadata, "spec": {"nodeName": "n", "resourceClaims": claims}})


def a_claim(number: int) -> ResourceClaim:
    result = DeviceRequestAllocationResult(driver="d", pool="p", device=f"x{number}")
    consumer = ResourceClaimConsumerReference(resource="pods", name=f"p{number}", uid=f"u{number}")
    status = ResourceClaimStatus(
        allocation=AllocationResult(DeviceAllocationResult((result,))), reserved_for=(consumer,)
    )
    return ResourceClaim(ObjectMeta(name=f"c{number}", namespace="ns"), status=status)


def a_slice(start: int, generation: int = 2) -> ResourceSlice:
    taint = DeviceTaint(key="k", effect="NoExecute")
    devices = tuple(Device(name=f"x{start + each}", taints=(taint,)) for each in range(10))
    spec = ResourceSliceSpec(driver="d", pool=ResourcePool("p", generation, 1), devices=devices)
    return ResourceSlice(ObjectMeta(name=f"s{start}-{generation}"), spec)


def the_cluster() -> Affected:
    client, _, _ = scripted()
    pods, claims = Informer(client, PODS), Informer(client, RESOURCE_CLAIMS)
    slices = Informer(client, RESOURCE_SLICES)
    affected = Affected(pods, claims, slices, None)
    for number in range(COUNT):
        list(pods.store.put(a_pod(number)))
        list(claims.store.put(a_claim(number)))
    for start in range(0, COUNT, 10):
        list(slices.store.put(a_slice(start)))
    list(slices.store.put(a_slice(0, generation=1)))
    return affected


def pauses(steps: Steps[Any]) -> int:
    return sum(1 for _ in steps)


def test_a_rule() -> None:
    affected = the_cluster()
    assert pauses(affected.finding_pods_of(RULE)) == 20
    assert len(finish(affected.finding_pods_of(RULE))) == COUNT
    assert pauses(affected.measuring_reach_of(RULE)) == 20
    assert pauses(affected.measuring_reach_of(RULE, count_devices=True)) >= 40 + COUNT // 10
    reach = finish(affected.measuring_reach_of(RULE, count_devices=True))
    assert reach == Reach(COUNT, 1, COUNT, COUNT)


def test_a_pool() -> None:
    affected = the_cluster()
    assert pauses(affected.finding_pods_of_pool("d", "p", ())) >= 20
    assert len(finish(affected.finding_pods_of_pool("d", "p", ()))) == COUNT
    assert finish(affected.finding_pods_of_pool("d", "other", ())) == []
