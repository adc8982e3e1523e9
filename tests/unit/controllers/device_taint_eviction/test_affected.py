"""A rule or a pool that concerns very many claims is looked at in steps."""

from __future__ import annotations

from typing import Any

from allot.api.claims import (
    ResourceClaim,
)
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.core import Pod
from allot.api.meta import ObjectMeta
from allot.api.resource import DeviceTaint
from allot.api.slices import ResourcePool, ResourceSlice
from allot.client.informer import Informer
from allot.client.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.client.steps import Steps, finish
from allot.controllers.device_taint_eviction.affected import CLAIMS_AT_ONCE, Affected
from allot.controllers.device_taint_eviction.rule_status import Reach
from allot.testing.builders import a_claim, a_consumer, a_device, a_pod, a_slice, an_allocation
from tests.unit.client.fakes import scripted

COUNT = 20 * CLAIMS_AT_ONCE
RULE = DeviceTaintRule(
    ObjectMeta(name="r", uid="rule"),
    DeviceTaintRuleSpec(DeviceTaintSelector(driver="d"), DeviceTaint(key="k", effect="NoExecute")),
)


def numbered_pod(number: int) -> Pod:
    return a_pod(f"p{number}", node="n", claims={"r": f"c{number}"})


def numbered_claim(number: int) -> ResourceClaim:
    allocation = an_allocation(f"x{number}", driver="d", pool="p")
    return a_claim(
        name=f"c{number}", allocation=allocation, reserved_for=[a_consumer(f"p{number}")]
    )


def tainted_slice(start: int, generation: int = 2) -> ResourceSlice:
    taint = DeviceTaint(key="k", effect="NoExecute")
    devices = [a_device(f"x{start + each}", taints=(taint,)) for each in range(10)]
    pool = ResourcePool("p", generation, 1)
    return a_slice(*devices, name=f"s{start}-{generation}", driver="d", pool=pool)


def the_cluster() -> Affected:
    client, _, _ = scripted()
    pods, claims = Informer(client, PODS), Informer(client, RESOURCE_CLAIMS)
    slices = Informer(client, RESOURCE_SLICES)
    affected = Affected(pods, claims, slices, None)
    for number in range(COUNT):
        put(pods, numbered_pod(number))
        put(claims, numbered_claim(number))
    for start in range(0, COUNT, 10):
        put(slices, tainted_slice(start))
    put(slices, tainted_slice(0, generation=1))
    return affected


def put(informer: Informer[Any], obj: Any) -> None:
    informer.store.put(obj.key, obj)


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
