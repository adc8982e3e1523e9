"""SECURITY.md says what the data directory contains, and how it is protected."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from allot.testing.cluster import ClusterSettings, RealTimeCluster
from tests.docs.terminal import PROJECT

SECURITY = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
OTHERS = stat.S_IRWXG | stat.S_IRWXO
PUBLIC = {".crt"}


def test_data_directory_is_described_and_private(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with RealTimeCluster(directory, ClusterSettings(), storage="sqlite"):
        files = [path for path in directory.rglob("*") if path.is_file()]
        modes = {path.relative_to(directory).as_posix(): path.stat().st_mode for path in files}
        assert not directory.stat().st_mode & OTHERS

    assert modes
    readable = [
        name for name, mode in modes.items() if mode & OTHERS and Path(name).suffix not in PUBLIC
    ]
    assert readable == []
    keys = [name for name in modes if name.endswith((".key", ".token", "kubeconfig", ".db"))]
    assert len(keys) > 4
    assert [name for name in keys if f"`{name}`" not in SECURITY] == []


def test_it_has_all_parts() -> None:
    headings = set(re.findall(r"^## (.+)$", SECURITY, re.MULTILINE))

    assert {"Threat model", "What is stored in clear", "How to report"} <= headings
