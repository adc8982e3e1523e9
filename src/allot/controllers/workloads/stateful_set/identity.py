"""The identity of a pod of a stateful set: name, labels and volume claims by ordinal."""

from __future__ import annotations

import re
from typing import Final

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.resources import STATEFUL_SETS
from allot.controllers.workloads.accessors import (
    Json,
    name_of,
    namespace_of,
    replicas_of,
    selector_of,
)
from allot.controllers.workloads.pod_templates import pod_from_template, with_metadata_entries
from allot.controllers.workloads.revisions import REVISION_HASH, template_in

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"

_numbered: Final = re.compile(r"(.+)-(0|[1-9][0-9]*)").fullmatch


def ordinals_of(stateful_set: RawObject) -> range:
    """The ordinals of its pods."""
    start = int(stateful_set.get("spec", "ordinals", "start", default=0))
    return range(start, start + replicas_of(stateful_set))


def pod_name(stateful_set: RawObject, ordinal: int) -> str:
    return f"{name_of(stateful_set)}-{ordinal}"


def ordinal_of(stateful_set: RawObject, pod: RawObject) -> int | None:
    """The ordinal in a pod's name, if the name is one of this set."""
    match = _numbered(name_of(pod))
    if match is None or match[1] != name_of(stateful_set):
        return None
    return int(match[2])


def claim_templates_of(stateful_set: RawObject) -> list[Json]:
    templates: list[Json] = stateful_set.get("spec", "volumeClaimTemplates", default=[])
    return templates


def claim_name(template: Json, pod: str) -> str:
    return f"{(template.get('metadata') or {}).get('name', '')}-{pod}"


def make_pod(stateful_set: RawObject, ordinal: int, revision: RawObject) -> Pod:
    """The pod with this ordinal, from a revision of the set."""
    name = pod_name(stateful_set, ordinal)
    pod = pod_from_template(template_in(revision), STATEFUL_SETS, stateful_set)
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), REVISION_HASH: name_of(revision)}
    pod = pod.with_value(f"{name_of(stateful_set)}-", "metadata", "generateName")
    pod = with_metadata_entries(pod.with_value(name, "metadata", "name"), "labels", labels)
    pod = pod.with_value(name, "spec", "hostname")
    service = stateful_set.get("spec", "serviceName")
    if service:
        pod = pod.with_value(service, "spec", "subdomain")
    volumes = _volumes(stateful_set, name, pod.get("spec", "volumes", default=[]))
    return pod.with_value(volumes, "spec", "volumes") if volumes else pod


def _volumes(stateful_set: RawObject, name: str, others: list[Json]) -> list[Json]:
    """Volumes of the pod's claims, then the template's other volumes; claims override volumes of the same name."""
    own = [
        {
            "name": (template.get("metadata") or {}).get("name", ""),
            "persistentVolumeClaim": {"claimName": claim_name(template, name)},
        }
        for template in claim_templates_of(stateful_set)
    ]
    taken = {volume["name"] for volume in own}
    return [*own, *(volume for volume in others if volume.get("name") not in taken)]


def make_claims(stateful_set: RawObject, ordinal: int) -> list[RawObject]:
    """The volume claims of the pod with this ordinal."""
    labels = selector_of(stateful_set).get("matchLabels") or {}
    claims = []
    for template in claim_templates_of(stateful_set):
        metadata = template.get("metadata") or {}
        claims.append(
            RawObject(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {
                        **metadata,
                        "name": claim_name(template, pod_name(stateful_set, ordinal)),
                        "namespace": namespace_of(stateful_set),
                        "labels": {**(metadata.get("labels") or {}), **labels},
                    },
                    "spec": template.get("spec") or {},
                }
            )
        )
    return claims
