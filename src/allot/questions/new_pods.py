"""New pods as the API server stores them: with defaults, priority, names and uids, and the claims of their templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import POD_CLAIM_NAME
from allot.api.times import written_time
from allot.apiserver.defaults.pod_priority import Denied, PriorityClasses, resolve_priority
from allot.apiserver.defaults.pods import pod_defaults, tolerate_short_outages
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.controllers.resource_claims.templates import claim_key, claim_statuses_to_write


def priority_classes(objects: Snapshot) -> PriorityClasses:
    """The PriorityClasses of a snapshot."""
    found = objects.of(resources.PRIORITY_CLASSES)
    by_name = {each.metadata.name: each.data for each in found}
    defaults = [each.data for each in found if each.get("globalDefault")]
    default = min(defaults, key=lambda each: each.get("value") or 0, default=None)
    return PriorityClasses(by_name.get, default)


def admitted(pod: Pod, classes: PriorityClasses) -> Pod:
    """The pod with defaults and its priority. A priority that cannot be resolved stays as given."""
    data = pod_defaults(dict(pod.data))
    data = data | {"spec": tolerate_short_outages(data.get("spec") or {})}
    resolved = resolve_priority(data, classes)
    return Pod(data if isinstance(resolved, Denied) else resolved)


def named(pod: Pod, name: str, now: datetime, namespace: str = "") -> Pod:
    """The pod with a name, a uid derived from it, and its time of creation."""
    metadata: Mapping[str, Any] = pod.get("metadata", default={})
    namespace = metadata.get("namespace") or namespace or "default"
    created = {
        **metadata,
        "namespace": namespace,
        "name": name,
        "uid": f"Pod/{namespace}/{name}",
        "creationTimestamp": written_time(now),
    }
    return Pod({**pod.data, "metadata": created})


def missing_template(pod: Pod, objects: Snapshot) -> str:
    """The first ResourceClaimTemplate that the pod names and that does not exist, as a sentence; empty if all do."""
    known = pod.claim_statuses
    for entry in pod.claim_entries:
        if not entry.template_name or entry.name in known:
            continue
        key = ObjectKey(pod.key.namespace, entry.template_name)
        if objects.get(resources.RESOURCE_CLAIM_TEMPLATES, key) is None:
            return f"no ResourceClaimTemplate {key.name} in namespace {key.namespace}"
    return ""


def new_claims(pod: Pod, objects: Snapshot) -> Iterator[tuple[str, ResourceClaim]]:
    """The claims that the controller creates for the pod, by entry. Entries without a template have none."""
    known = pod.claim_statuses
    for entry in pod.claim_entries:
        if not entry.template_name or entry.name in known:
            continue
        key = ObjectKey(pod.key.namespace, entry.template_name)
        template = objects.get(resources.RESOURCE_CLAIM_TEMPLATES, key)
        if template is None:
            continue
        name = claim_key(pod, entry.name)
        metadata = pod.data["metadata"]
        owner = OwnerReference(
            api_version="v1",
            kind="Pod",
            name=metadata["name"],
            uid=metadata["uid"],
            controller=True,
        )
        template_metadata = template.spec.metadata
        yield (
            entry.name,
            ResourceClaim(
                metadata=ObjectMeta(
                    name=name.name,
                    namespace=name.namespace,
                    uid=f"ResourceClaim/{name}",
                    labels=template_metadata.labels,
                    annotations={**template_metadata.annotations, POD_CLAIM_NAME: entry.name},
                    owner_references=(owner,),
                ),
                spec=template.spec.spec,
            ),
        )


def with_claim_names(pod: Pod, claim_by_entry: Mapping[str, str]) -> Pod:
    """The pod with the names of its claims in the status."""
    statuses = claim_statuses_to_write(pod, claim_by_entry)
    return pod if statuses is None else pod.with_value(statuses, "status", "resourceClaimStatuses")
