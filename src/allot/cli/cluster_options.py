"""What was asked of `allot up`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Asked(NamedTuple):
    """The cluster that shall run, as the command line says it."""

    data_dir: Path
    port: int
    storage: str
    hardware: tuple[str, ...]
    scheduler_config: Path | None
    feature_gates: str
    controllers: str
    """Empty: none run."""
    has_scheduler: bool
    has_nodes: bool
    all_nodes: bool
    complete_annotation: str
    verbose: int
