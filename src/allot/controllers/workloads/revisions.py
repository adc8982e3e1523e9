"""ControllerRevisions: the history of the templates of daemon sets and stateful sets.

data      a strategic merge patch that restores the template, used by `kubectl rollout undo`
revision  a counter; a template that is restored gets the next number
name      contains the hash of the data, so that creating it is idempotent
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions
from allot.client.resources import CONTROLLER_REVISIONS, Resource
from allot.controllers.workloads.accessors import (
    Json,
    created_at,
    is_same,
    labels_of,
    name_of,
    namespace_of,
    template_of,
    uid_of,
)
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.names import content_hash
from allot.controllers.workloads.ownership import controller_reference, is_controlled_by
from allot.controllers.workloads.status_writes import write_status

REVISION_HASH: Final = "controller-revision-hash"
"""The label of pods with their revision."""
_HASH_OF_REVISION: Final = "controller.kubernetes.io/hash"


def revision_data(workload: RawObject) -> Json:
    return {"spec": {"template": {**template_of(workload), "$patch": "replace"}}}


def template_in(revision: RawObject) -> Json:
    template: Json = revision.get("data", "spec", "template", default={})
    return {name: value for name, value in template.items() if name != "$patch"}


def number_of(revision: RawObject) -> int:
    return int(revision.get("revision", default=0))


def hash_of(revision: RawObject) -> str:
    labels = labels_of(revision)
    return labels.get(_HASH_OF_REVISION) or labels.get(REVISION_HASH) or ""


def in_order(revisions: Iterable[RawObject]) -> list[RawObject]:
    return sorted(
        revisions, key=lambda found: (number_of(found), created_at(found), name_of(found))
    )


def make_revision(resource: Resource[Any], workload: RawObject, number: int) -> RawObject:
    data = revision_data(workload)
    hash_ = content_hash(data, workload.get("status", "collisionCount"))
    hash_label = REVISION_HASH if resource.kind == "DaemonSet" else _HASH_OF_REVISION
    template_labels = (template_of(workload).get("metadata") or {}).get("labels") or {}
    return RawObject(
        {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": f"{name_of(workload)}-{hash_}",
                "namespace": namespace_of(workload),
                "labels": {**template_labels, hash_label: hash_},
                "ownerReferences": [controller_reference(resource, workload)],
            },
            "data": data,
            "revision": number,
        }
    )


def revisions_to_forget(
    revisions: Sequence[RawObject], in_use: Collection[str], limit: int
) -> list[RawObject]:
    """The oldest revisions beyond the limit; those in use are not counted."""
    unused = [found for found in in_order(revisions) if name_of(found) not in in_use]
    return unused[: max(len(unused) - limit, 0)]


class History(NamedTuple):
    """The revision of the current template, and all revisions, oldest first."""

    update: RawObject
    all: tuple[RawObject, ...]

    def named(self, name: str | None) -> RawObject | None:
        return next((found for found in self.all if name_of(found) == name), None)


class RevisionHistory:
    """Keeps the revisions of workloads of one kind."""

    def __init__(
        self, client: Client, resource: Resource[RawObject], dependents: Dependents[RawObject]
    ) -> None:
        self._client = client
        self._resource = resource
        self._dependents = dependents

    async def of(self, workload: RawObject) -> History:
        """The history, ending with a revision of the current template."""
        known = in_order(await self._dependents.claim(workload))
        data = revision_data(workload)
        same = [found for found in known if is_same(found.get("data"), data)]
        latest = number_of(known[-1]) if known else 0
        if not same:
            update = await self._create(workload, latest + 1)
        elif number_of(same[-1]) < latest:
            update = same[-1].with_value(latest + 1, "revision")
            update = await self._client.update(CONTROLLER_REVISIONS, update)
        else:
            update = same[-1]
        others = (found for found in known if name_of(found) != name_of(update))
        return History(update, (*others, update))

    async def _create(self, workload: RawObject, number: int) -> RawObject:
        wanted = make_revision(self._resource, workload, number)
        try:
            return await self._client.create(CONTROLLER_REVISIONS, wanted)
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise
            found = await self._client.get(CONTROLLER_REVISIONS, wanted.key)
            same = is_same(found.get("data"), wanted.get("data"))
            if same and is_controlled_by(found, workload):
                return found
            collisions = int(workload.get("status", "collisionCount", default=0)) + 1
            await write_status(
                self._client, self._resource, workload, {"collisionCount": collisions}
            )
            raise

    async def forget(self, workload: RawObject, history: History, in_use: Collection[str]) -> None:
        """Delete revisions beyond the history limit."""
        limit = int(workload.get("spec", "revisionHistoryLimit", default=10))
        for found in revisions_to_forget(history.all, in_use, limit):
            try:
                await self._client.delete(
                    CONTROLLER_REVISIONS, found.key, DeleteOptions(uid=uid_of(found))
                )
            except ApiStatusError as error:
                if not (error.is_not_found or error.is_conflict):
                    raise
