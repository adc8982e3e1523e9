"""Clusters as values, for tests of questions: `observed(a_node(), a_slice(), a_pod(), …)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.base import ApiObject
from allot.api.claims import DeviceRequest, ResourceClaimTemplate, ResourceClaimTemplateSpec
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.client.resources import RESOURCES, Resource
from allot.client.snapshot import Snapshot
from allot.features import DEFAULTS, FeatureGates
from allot.public.loading import completed
from allot.questions.observed_cluster import ObservedCluster
from allot.scheduler.configuration import SchedulerConfiguration
from allot.testing.builders import NAMESPACE, a_claim

_BY_KIND: Final[Mapping[str, Resource[Any]]] = {each.kind: each for each in reversed(RESOURCES)}


def resource_of(obj: ApiObject | RawObject) -> Resource[Any]:
    """The resource of an object, by its kind or type."""
    return _BY_KIND[obj.kind if isinstance(obj, RawObject) else type(obj).__name__]


def snapshot_of(*objects: ApiObject | RawObject) -> Snapshot:
    """A snapshot of these objects. A missing namespace or uid is filled in."""
    snapshot = Snapshot()
    for number, obj in enumerate(objects):
        resource = resource_of(obj)
        snapshot.put(resource, completed(obj, resource, number))
    return snapshot


def a_claim_template(
    name: str, *requests: DeviceRequest, namespace: str = NAMESPACE
) -> ResourceClaimTemplate:
    """A template for claims with these requests; without any, for one GPU."""
    spec = a_claim(*requests).spec
    return ResourceClaimTemplate(
        ObjectMeta(name=name, namespace=namespace), ResourceClaimTemplateSpec(spec=spec)
    )


def observed(
    *objects: ApiObject | RawObject,
    gates: FeatureGates = DEFAULTS,
    configuration: SchedulerConfiguration | None = None,
) -> ObservedCluster:
    """A cluster of these objects."""
    return ObservedCluster(
        snapshot_of(*objects),
        gates,
        configuration=configuration or SchedulerConfiguration(),
    )
