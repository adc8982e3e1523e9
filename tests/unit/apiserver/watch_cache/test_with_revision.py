"""Stored JSON with a resourceVersion: inserted, whatever metadata it has."""

from __future__ import annotations

import random

import msgspec
import pytest

from allot.apiserver.watch_cache.stored_objects import type_head, with_revision, with_type

FIELDS = (
    b'"name":"a"',
    b'"generateName":"a-"',
    b'"namespace":"n"',
    b'"uid":"1-2"',
    b'"uid":""',
    b'"labels":{"uid":"x","a":"b"}',
    b'"creationTimestamp":"x"',
)


@pytest.mark.parametrize("seed", range(200))
def test_nothing_but_the_version_is_added(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    fields = b",".join(dice.sample(FIELDS, dice.randrange(1, len(FIELDS))))
    body = b'{"metadata":{%b},"spec":{"uid":"q"}}' % fields

    expected = msgspec.json.decode(body)
    assert with_revision(body, 0) == body
    expected["metadata"]["resourceVersion"] = "77"
    assert msgspec.json.decode(with_revision(body, 77)) == expected
    for revision in (0, 77):
        plain = with_revision(body, revision)
        head = type_head("Pod", "v1")
        framed = with_revision(body, revision, b"before" + head, b"after")
        assert framed == b"before%bafter" % with_type(plain, "Pod", "v1")
