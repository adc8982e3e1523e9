from __future__ import annotations

import os
import uuid

from allot.apiserver.registry.uids import new_uid


def test_a_uid_is_a_random_uuid_and_never_the_same() -> None:
    made = [new_uid() for _ in range(1000)]

    assert len(set(made)) == 1000
    for text in made:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_a_child_makes_uids_of_its_own() -> None:
    new_uid()  # there is randomness left in the pool
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_uid().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)

    assert theirs not in {new_uid() for _ in range(500)}
