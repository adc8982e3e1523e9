"""Every story runs with each set of components that have the gate off, on each storage.

In the ordinary suite: in memory and virtual time, all components together, and server and scheduler alone. The rest is
slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from allot.testing.cluster import AllotCluster
from tests.gates.story import SKEWS, Off, a_cluster, name_of

STORAGES: Final = ("memory", "rolling", "sqlite", "etcd")
QUICK: Final = (("memory", Off.ALL), ("rolling", Off.SERVER), ("rolling", Off.SCHEDULER))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = metafunc.definition.get_closest_marker("parametrize")
    if "off" not in metafunc.fixturenames or own is not None:
        return
    metafunc.parametrize(
        ("storage", "off"),
        [
            pytest.param(
                storage,
                off,
                id=f"{storage}-{name_of(off)}",
                marks=() if (storage, off) in QUICK else pytest.mark.slow,
            )
            for storage in STORAGES
            for off in (Off.ALL, *SKEWS)
        ],
    )


@pytest.fixture
def cluster(storage: str, tmp_path: Path) -> Iterator[AllotCluster]:
    with a_cluster(storage, tmp_path) as made:
        yield made
