"""The pods that manifests describe: pods themselves, and the templates of workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.controllers.workloads.accessors import Json, namespace_of, replicas_of, template_of
from allot.controllers.workloads.job.spec import read_spec
from allot.questions.workload_model import WORKLOADS, with_defaults

DEFAULT_NAMESPACE: Final = "default"


class PodTemplate(NamedTuple):
    """A pod to be created any number of times."""

    name: str
    """As kubectl writes it: `deployment/web`."""
    pod: Pod
    replicas: int
    """How many of it its workload has at a time."""


def pod_templates(objects: Snapshot) -> Iterator[PodTemplate]:
    """All pods and workloads of manifests; pods and ReplicaSets of workloads among them are left out."""
    for pod in objects.of(resources.PODS):
        if not any(owner.controller for owner in pod.metadata.owner_references):
            yield PodTemplate(f"pod/{pod.metadata.name}", _unplaced(pod), 1)
    for resource in WORKLOADS:
        for workload in objects.of(resource):
            if not any(owner.controller for owner in workload.metadata.owner_references):
                yield template_of_workload(with_defaults(workload))


def template_of_workload(workload: RawObject) -> PodTemplate:
    """The template, without the names and labels that the controller adds to each pod."""
    template = template_of(workload)
    metadata: Json = dict(template.get("metadata") or {})
    metadata["namespace"] = namespace_of(workload) or DEFAULT_NAMESPACE
    metadata["name"] = workload.metadata.name
    pod = Pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": template.get("spec") or {},
        }
    )
    replicas = replicas_of(workload)
    if workload.kind == "Job":
        spec = read_spec(workload)
        replicas = min(spec.parallelism, spec.completions or spec.parallelism)
    return PodTemplate(f"{workload.kind.lower()}/{workload.metadata.name}", pod, replicas)


def _unplaced(pod: Pod) -> Pod:
    """The pod as it was created: without a node, status and identity."""
    metadata: Json = dict(pod.get("metadata", default={}))
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(field, None)
    spec: Json = dict(pod.get("spec", default={}))
    spec.pop("nodeName", None)
    return Pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def claim_templates_into(objects: Snapshot, given: Snapshot) -> Snapshot:
    """The cluster's objects with those that given manifests bring along: claim templates, claims, classes."""
    found = objects.copy()
    kinds: Iterable[resources.Resource] = (  # type: ignore[type-arg]
        resources.RESOURCE_CLAIM_TEMPLATES,
        resources.RESOURCE_CLAIMS,
        resources.DEVICE_CLASSES,
        resources.PRIORITY_CLASSES,
        resources.RESOURCE_QUOTAS,
    )
    for kind in kinds:
        for obj in given.of(kind):
            found.put(kind, obj)
    return found
