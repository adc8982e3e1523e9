"""Objects without managedFields."""

from __future__ import annotations

from allot.api.claims import ResourceClaim
from allot.api.managed_fields import without_managed_fields
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject

ENTRY = {"manager": "m", "operation": "Update"}


def test_raw_objects() -> None:
    obj = RawObject({"kind": "Pod", "metadata": {"name": "a", "managedFields": [ENTRY]}})
    bare = without_managed_fields(obj)
    assert bare.data == {"kind": "Pod", "metadata": {"name": "a"}}
    assert obj.data["metadata"]["managedFields"] == [ENTRY]
    assert without_managed_fields(bare) is bare


def test_typed_objects() -> None:
    obj = ResourceClaim(metadata=ObjectMeta(name="a", managed_fields=(ENTRY,)))
    bare = without_managed_fields(obj)
    assert bare == ResourceClaim(metadata=ObjectMeta(name="a"))
    assert without_managed_fields(bare) is bare


def test_anything_else() -> None:
    assert without_managed_fields("text") == "text"
