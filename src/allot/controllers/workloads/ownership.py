"""Controller references, adoption and release.

An object has at most one controller. For an owner and an object:

    controlled by the owner, selected       claimed
    controlled by the owner, not selected   released
    orphan, selected                        adopted, unless one of both is being deleted
    controlled by another owner             ignored
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from allot.api.raw import RawObject
from allot.api.selectors import EVERYTHING, LabelSelector, label_selector
from allot.client.resources import Resource
from allot.controllers.workloads.accessors import (
    Json,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    selector_of,
    uid_of,
)

RawT = TypeVar("RawT", bound=RawObject)

BY_CONTROLLER: Final = "controller uid"
ORPHANS: Final = "label of orphans"
BY_SELECTOR: Final = "selected label"


class ControllerReference(NamedTuple):
    """The owner that controls an object."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def is_of(self, resource: Resource[Any]) -> bool:
        """Whether it is of this kind, in any version."""
        return self.kind == resource.kind and self.group == resource.group


def controller_of(obj: RawObject) -> ControllerReference | None:
    for reference in obj.data["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return ControllerReference(
                reference.get("apiVersion", ""),
                reference.get("kind", ""),
                reference.get("name", ""),
                reference.get("uid", ""),
            )
    return None


def is_unchanged_orphan(old: RawObject, new: RawObject) -> bool:
    """Whether neither version has owners, and their labels are the same: most updates of pods without a workload."""
    before, after = old.data["metadata"], new.data["metadata"]
    has_owners = before.get("ownerReferences") or after.get("ownerReferences")
    return not has_owners and before.get("labels") == after.get("labels")


def is_controlled_by(obj: RawObject, owner: RawObject) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller.uid == uid_of(owner)


def controller_reference(resource: Resource[Any], owner: RawObject) -> Json:
    """The controller reference to `owner`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


# --- indexes ---


def controller_uid(obj: RawObject) -> Iterable[str]:
    """Index function: objects by uid of their controller."""
    controller = controller_of(obj)
    return (controller.uid,) if controller else ()


def orphan_labels(obj: RawObject) -> Iterable[str]:
    """Index function: orphans by each label and by namespace."""
    if controller_of(obj) is not None:
        return ()
    namespace = namespace_of(obj)
    return (
        _place(namespace),
        *(_place(namespace, key, value) for key, value in labels_of(obj).items()),
    )


def selected_label(owner: RawObject) -> Iterable[str]:
    """Index function: owners by one label of their selector, or by namespace if it has none."""
    return (_selected_place(owner),)


def places_of_orphans(owner: RawObject) -> str:
    """The value in the index of orphans that covers all objects `owner` may select."""
    return _selected_place(owner)


def _selected_place(owner: RawObject) -> str:
    labels: Mapping[str, str] = selector_of(owner).get("matchLabels") or {}
    first = min(labels.items(), default=None)
    namespace = namespace_of(owner)
    return _place(namespace, *first) if first else _place(namespace)


def _place(namespace: str, key: str = "", value: str = "") -> str:
    return f"{namespace}/{key}={value}" if key else f"{namespace}/"


# --- claiming ---


class ClaimedObjects(NamedTuple, Generic[RawT]):
    """Objects that an owner has claimed, must adopt and must release."""

    mine: tuple[RawT, ...]
    to_adopt: tuple[RawT, ...]
    to_release: tuple[RawT, ...]


def classify_objects(
    owner: RawObject, controlled: Iterable[RawT], orphans: Iterable[RawT]
) -> ClaimedObjects[RawT]:
    """Classify the objects that `owner` controls, and orphans."""
    selector, going = label_selector(selector_of(owner)), is_deleting(owner)
    mine: list[RawT] = []
    released: list[RawT] = []
    for obj in controlled:
        (mine if _matches(selector, obj) else released).append(obj)
    if going:
        return ClaimedObjects(tuple(mine), (), ())
    adopted = (
        ()
        if selector in (None, EVERYTHING)
        else tuple(obj for obj in orphans if not is_deleting(obj) and _matches(selector, obj))
    )
    return ClaimedObjects(tuple(mine), adopted, tuple(released))


def _matches(selector: LabelSelector | None, obj: RawObject) -> bool:
    return selector is not None and selector.matches(labels_of(obj))


def adoption(resource: Resource[Any], owner: RawObject, obj: RawObject) -> Json:
    """A strategic merge patch by which `owner` adopts `obj`, with its uid as a precondition."""
    reference = controller_reference(resource, owner)
    return {"metadata": {"uid": uid_of(obj), "ownerReferences": [reference]}}


def release(owner: RawObject, obj: RawObject) -> Json:
    """A strategic merge patch by which `owner` releases `obj`."""
    reference = {"$patch": "delete", "uid": uid_of(owner)}
    return {"metadata": {"uid": uid_of(obj), "ownerReferences": [reference]}}
