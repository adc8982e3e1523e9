"""The replica sets of a deployment: the new one, the old ones, and their annotations.

deployment.kubernetes.io/revision           counts versions; used by rollback and history
deployment.kubernetes.io/revision-history   earlier revisions of a set that became the new one again
deployment.kubernetes.io/desired-replicas   the deployment's replicas when the set was last scaled
deployment.kubernetes.io/max-replicas       the same with the surge
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from allot.api.raw import RawObject
from allot.client.resources import DEPLOYMENTS
from allot.controllers.workloads.accessors import (
    Json,
    annotations_of,
    counted,
    created_at,
    generation_of,
    is_deleting,
    is_same,
    min_ready_seconds_of,
    name_of,
    namespace_of,
    replicas_of,
    selector_of,
    template_of,
)
from allot.controllers.workloads.deployment.sizes import surge_of
from allot.controllers.workloads.names import content_hash
from allot.controllers.workloads.ownership import controller_reference

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)
_HISTORY_LIMIT: Final = 2000


def _without_hash(template: Mapping[str, Any]) -> Json:
    metadata = dict(template.get("metadata") or {})
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH
    }
    metadata["labels"] = labels
    return {**template, "metadata": metadata}


def has_template_of(replica_set: RawObject, deployment: RawObject) -> bool:
    """Whether the set has the deployment's current template."""
    wanted = _without_hash(template_of(deployment))
    return is_same(_without_hash(template_of(replica_set)), wanted)


def by_age(sets: Iterable[RawObject]) -> list[RawObject]:
    """Oldest first."""
    return sorted(sets, key=lambda found: (created_at(found), name_of(found)))


def find_new_set(deployment: RawObject, sets: Iterable[RawObject]) -> RawObject | None:
    """The set with the deployment's template; of several the oldest, so that the choice is stable."""
    matching = (found for found in sets if has_template_of(found, deployment))
    return next(iter(by_age(matching)), None)


def revision_of(obj: RawObject) -> int:
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def next_revision(old_sets: Iterable[RawObject]) -> int:
    return max(map(revision_of, old_sets), default=0) + 1


# --- annotations ---


def size_annotations(deployment: RawObject) -> dict[str, str]:
    desired = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + surge_of(deployment))}


def with_annotations(obj: RawObject, annotations: Mapping[str, str]) -> RawObject:
    """The object with these additional annotations; itself if it has them."""
    known = annotations_of(obj)
    if annotations.items() <= known.items():
        return obj
    return obj.with_value({**known, **annotations}, "metadata", "annotations")


def copied_annotations(deployment: RawObject) -> dict[str, str]:
    """The deployment's annotations that are copied to the set, such as the change cause."""
    return {
        name: value for name, value in annotations_of(deployment).items() if name not in _NOT_COPIED
    }


def as_new_set(deployment: RawObject, replica_set: RawObject, revision: int) -> RawObject:
    """The set as the new one: with the deployment's revision, annotations and minReadySeconds."""
    annotations = copied_annotations(deployment)
    had = revision_of(replica_set)
    if had < revision:
        annotations[REVISION] = str(revision)
        if had:
            history = annotations_of(replica_set).get(REVISION_HISTORY, "")
            entries = [*filter(None, history.split(",")), str(had)]
            while len(",".join(entries)) > _HISTORY_LIMIT:
                entries.pop(0)
            annotations[REVISION_HISTORY] = ",".join(entries)
    updated = with_annotations(replica_set, annotations)
    min_ready = min_ready_seconds_of(deployment)
    if min_ready_seconds_of(replica_set) != min_ready:
        updated = updated.with_value(min_ready, "spec", "minReadySeconds")
    return updated


def resized(deployment: RawObject, replica_set: RawObject, replicas: int) -> RawObject:
    """The set with this number of replicas; itself if nothing changes."""
    updated = with_annotations(replica_set, size_annotations(deployment))
    if replicas_of(replica_set) != replicas:
        updated = updated.with_value(replicas, "spec", "replicas")
    return updated


# --- a set for a new template ---


def template_hash(deployment: RawObject) -> str:
    collisions = deployment.get("status", "collisionCount")
    return content_hash(template_of(deployment), collisions)


def make_new_set(deployment: RawObject, replicas: int, revision: int) -> RawObject:
    """A set for the deployment's template. Its name contains the hash, so that creating it is idempotent."""
    hash_ = template_hash(deployment)
    template = template_of(deployment)
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), TEMPLATE_HASH: hash_}
    selector = selector_of(deployment)
    selected = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: hash_}
    spec: Json = {
        "replicas": replicas,
        "selector": {**selector, "matchLabels": selected},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    min_ready = min_ready_seconds_of(deployment)
    if min_ready:
        spec["minReadySeconds"] = min_ready
    return RawObject(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name_of(deployment)}-{hash_}",
                "namespace": namespace_of(deployment),
                "labels": labels,
                "annotations": {
                    **copied_annotations(deployment),
                    **size_annotations(deployment),
                    REVISION: str(revision),
                },
                "ownerReferences": [controller_reference(DEPLOYMENTS, deployment)],
            },
            "spec": spec,
        }
    )


# --- history ---


def sets_to_forget(deployment: RawObject, old_sets: Sequence[RawObject]) -> list[RawObject]:
    """Old sets beyond the history limit that have no replicas; oldest revision first."""
    limit = deployment.get("spec", "revisionHistoryLimit")
    if limit is None:
        return []
    kept = [found for found in old_sets if not is_deleting(found)]
    beyond = sorted(kept, key=revision_of)[: max(len(kept) - limit, 0)]
    return [found for found in beyond if _is_empty(found)]


def _is_empty(replica_set: RawObject) -> bool:
    return (
        replicas_of(replica_set) == 0
        and counted(replica_set, "replicas") == 0
        and generation_of(replica_set) <= counted(replica_set, "observedGeneration")
    )
