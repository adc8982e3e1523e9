from __future__ import annotations

import uuid

from allot.apiserver.registry.uids import new_uid


def test_a_uid_is_a_random_uuid_and_never_the_same() -> None:
    made = [new_uid() for _ in range(1000)]

    assert len(set(made)) == 1000
    for text in made:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
