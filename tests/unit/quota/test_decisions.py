"""Which writes fit, what is used then, and counting from scratch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Pod, ResourceQuota
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.quantity import Quantity, quantity_from_json
from allot.api.raw import RawObject
from allot.quota import claims, pods
from allot.quota.decisions import (
    Charge,
    Exceeded,
    Excess,
    charge,
    covers,
    is_in_force,
    total_usage,
    with_usage,
)
from allot.quota.evaluators import (
    GroupResource,
    ObjectCountEvaluator,
    PersistentVolumeClaimEvaluator,
    PodEvaluator,
    ResourceClaimEvaluator,
    ServiceEvaluator,
    object_count_resources,
)
from allot.testing.builders import GPU, a_claim, a_pod

PODS = PodEvaluator(datetime(2026, 1, 1, tzinfo=UTC))
CONFIG_MAPS = ObjectCountEvaluator(GroupResource("", "configmaps"))
JOBS = ObjectCountEvaluator(GroupResource("batch", "jobs"))


def a_quota(
    name: str = "q",
    used: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    **hard: str,
) -> ResourceQuota:
    limits = {entry.replace("__", "/").replace("_", "."): amount for entry, amount in hard.items()}
    counted = dict.fromkeys(limits, "0") if used is None else used
    return ResourceQuota(
        {
            "metadata": {"name": name},
            "spec": {"hard": limits, **(spec or {})},
            "status": {"hard": limits, "used": counted},
        }
    )


def pod_requesting(cpu: str = "1", **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return a_pod("p", containers=[container], **spec)


def test_only_entries_that_a_write_counts_towards_are_read(monkeypatch: Any) -> None:
    read: list[str] = []

    def noted(value: str) -> Quantity:
        read.append(value)
        return quantity_from_json(value)

    monkeypatch.setattr("allot.quota.amounts.quantity_from_json", noted)
    others: dict[str, Any] = {f"count__kinds{number}": "1000" for number in range(60)}
    quotas = [a_quota(f"q{number}", pods="5", **others) for number in range(20)]
    charged = charge(quotas, PODS, a_pod("p"))
    assert isinstance(charged, list)
    assert len(read) <= 2 * len(quotas)  # the limit and the usage of `pods`
    assert [quota.used["pods"] for quota in charged] == [Quantity.of(1)] * 20
    assert all(quota.used.keys() == quota.hard.keys() for quota in charged)


def test_device_classes_are_looked_through_once_for_all_quotas(monkeypatch: Any) -> None:
    looked = 0
    extended = claims.extended_resource_names

    def noted(classes: Any) -> dict[str, str]:
        nonlocal looked
        looked += 1
        return extended(classes)

    monkeypatch.setattr(claims, "extended_resource_names", noted)
    evaluator = ResourceClaimEvaluator(
        [DeviceClass(ObjectMeta(name=GPU.device_class_name))], lambda _: None
    )
    hard: dict[str, Any] = {f"{GPU.device_class_name}.deviceclass.resource.k8s.io/devices": "5"}
    quotas = [a_quota(f"q{number}", **hard) for number in range(20)]
    charged = charge(quotas, evaluator, a_claim())
    assert isinstance(charged, list)
    assert len(charged) == 20
    assert looked == 1


def test_containers_are_examined_once_for_all_quotas(monkeypatch: Any) -> None:
    asked: list[frozenset[str]] = []
    missing = pods.missing_amounts

    def noted(pod: RawObject, names: frozenset[str]) -> str:
        asked.append(names)
        return missing(pod, names)

    monkeypatch.setattr(pods, "missing_amounts", noted)
    quotas = [a_quota(f"q{number}", requests_cpu="5") for number in range(20)]
    assert isinstance(charge(quotas, PODS, pod_requesting()), list)
    assert asked == [{"requests.cpu"}]


def test_what_fits_is_counted() -> None:
    quotas = [a_quota(pods="2", requests_cpu="3"), a_quota("other", services="1")]

    charged = charge(quotas, PODS, pod_requesting())

    assert isinstance(charged, list)
    assert [quota.used for quota in charged] == [
        a_quota(used={"pods": "1", "requests.cpu": "1"}).used
    ]
    assert quotas[0].used == a_quota(pods="2", requests_cpu="3").used


def test_only_what_is_exceeded_is_named() -> None:
    quota = a_quota(pods="5", requests_cpu="3", used={"pods": "1", "requests.cpu": "2500m"})

    assert charge([quota], PODS, pod_requesting()) == Exceeded(
        "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2500m, "
        "limited: requests.cpu=3",
        "q",
        (Excess("requests.cpu", *map(Quantity.parse, ("1", "2500m", "3"))),),
    )


def test_quota_with_unknown_status_is_exceeded() -> None:
    assert charge([a_quota(pods="5", used={})], PODS, pod_requesting()) == Exceeded(
        "status unknown for quota: q, resources: pods"
    )


def test_quotas_of_other_scopes_do_not_mind() -> None:
    scoped = a_quota(pods="0", spec={"scopes": ["Terminating"]})
    requirement = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    high = a_quota(pods="0", spec={"scopeSelector": {"matchExpressions": [requirement]}})
    claims = a_quota(count__configmaps="0", spec={"scopes": ["Terminating"]})

    assert charge([scoped, high], PODS, pod_requesting()) == []
    assert charge([claims], CONFIG_MAPS, RawObject({})) == []
    assert isinstance(charge([scoped], PODS, pod_requesting(activeDeadlineSeconds=1)), Exceeded)
    assert isinstance(charge([high], PODS, pod_requesting(priorityClassName="high")), Exceeded)


def test_updates_are_charged_for_growth_only() -> None:
    full = a_quota(requests_cpu="3", used={"requests.cpu": "3"})

    assert charge([full], PODS, pod_requesting("1"), pod_requesting("2")) == []
    assert isinstance(charge([full], PODS, pod_requesting("2"), pod_requesting("1")), Exceeded)
    silent = RawObject({"spec": {"containers": [{"name": "c"}]}})
    assert charge([full], PODS, silent, silent) == []
    assert isinstance(charge([full], PODS, silent), Exceeded)


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(0, 10))
def test_charging_one_by_one_is_counting_at_once(amounts: list[int], limit: int) -> None:
    """Nothing is exceeded, and the count kept by writes is the count from scratch."""
    quota = a_quota(requests_cpu=str(limit), pods="5")
    passed = []
    for amount in amounts:
        pod = pod_requesting(str(amount))
        outcome = charge([quota], PODS, pod)
        if not isinstance(outcome, Exceeded):
            (quota,) = outcome
            passed.append(pod)

    counted = total_usage(quota, PODS, passed)

    assert counted == quota.used
    assert all(amount <= quota.hard[name] for name, amount in counted.items())
    assert with_usage(quota, counted) is quota


def test_a_new_quota_comes_into_force_with_its_count() -> None:
    new = ResourceQuota({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "3"}}})
    assert not is_in_force(new)

    counted = with_usage(new, total_usage(new, CONFIG_MAPS, [RawObject({})] * 2))

    assert is_in_force(counted)
    assert counted.get("status") == {"hard": {"configmaps": "3"}, "used": {"configmaps": "2"}}
    assert charge([counted], CONFIG_MAPS, RawObject({})) == [
        counted.with_value({"configmaps": "3"}, "status", "used")
    ]


def test_a_claim_for_extended_resources_is_paid_for_by_its_pod() -> None:
    """The pod was charged when it was created; the claim that the scheduler makes for it costs nothing more."""
    resource = f"deviceclass.resource.kubernetes.io/{GPU.device_class_name}"
    entry = f"requests.{resource}"
    container = {"name": "c", "resources": {"requests": {resource: "1"}}}
    pod = Pod({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [container]}})
    plain = a_claim()
    metadata = replace(
        plain.metadata,
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        owner_references=(OwnerReference("v1", "Pod", "p", "u", controller=True),),
    )
    made = replace(plain, metadata=metadata)
    classes = [DeviceClass(ObjectMeta(name=GPU.device_class_name))]

    def used(claim: ResourceClaim, pods: dict[ObjectKey, Pod]) -> int:
        usage = ResourceClaimEvaluator(classes, pods.get).usage(claim)
        return usage[entry].value() if entry in usage else 0

    key = ObjectKey(plain.metadata.namespace, "p")
    assert used(made, {key: pod}) == 0
    assert used(made, {}) == used(plain, {key: pod}) == 1
    assert PODS.usage(pod)[entry].value() == 1


def test_entries_name_what_they_count() -> None:
    names = ["count/jobs.batch", "secrets", "count/pods", "pods", "requests.cpu"]

    assert object_count_resources(names) == {
        GroupResource("batch", "jobs"),
        GroupResource("", "secrets"),
    }
    assert JOBS.names(names) == ["count/jobs.batch"]


def test_services_and_volume_claims() -> None:
    ports = [{"nodePort": 30000}, {}]
    spec = {"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": False}
    service = ServiceEvaluator().usage(RawObject({"spec": spec}))
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}
    volume = PersistentVolumeClaimEvaluator().usage(RawObject({"spec": spec}))

    assert {name: str(amount) for name, amount in service.items()} == {
        "count/services": "1",
        "services": "1",
        "services.nodeports": "1",
        "services.loadbalancers": "1",
    }
    assert {name: str(amount) for name, amount in volume.items()} == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "5Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
    }
    assert PersistentVolumeClaimEvaluator().names(volume) == list(volume)
    assert ServiceEvaluator().names(service) == list(service)


def test_equal_scopes_are_looked_at_once() -> None:
    looked: list[str] = []

    class Noticing(ObjectCountEvaluator):
        def matches_scope(self, obj: Any, scope: str, operator: str, values: Any) -> bool:
            looked.append(scope)
            return True

    evaluator = Noticing(GroupResource("", "configmaps"))
    scopes = [{"scopeName": "BestEffort", "operator": "Exists"}] * 100
    quota = ResourceQuota(
        {
            "metadata": {"name": "q"},
            "spec": {"scopeSelector": {"matchExpressions": scopes}},
            "status": {"hard": {"configmaps": "9"}, "used": {"configmaps": "0"}},
        }
    )
    charge_of_one = Charge(evaluator, object())

    assert isinstance(charge_of_one.to(quota), ResourceQuota)
    assert isinstance(charge_of_one.to(quota), ResourceQuota)
    assert looked == ["BestEffort"]
    assert covers(quota, evaluator, object())
    assert looked == ["BestEffort"] * 2
