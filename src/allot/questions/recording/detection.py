"""Telling recordings from other files, without loading what reads them (`lines`, `reader`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

KIND: Final = "ClusterRecording"
_HEAD: Final = b'{"apiVersion":"allot.dev/'


def is_recording(path: Path) -> bool:
    """Whether a file begins as recordings do."""
    try:
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return head.startswith(_HEAD) and f'"kind":"{KIND}"'.encode() in head
