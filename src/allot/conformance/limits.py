"""How long checks wait."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """In seconds."""

    start: float = 30.0
    """For registration and publication after a start."""
    repair: float = 90.0
    """For slices that were deleted or changed by others."""
    call: float = 45.0
    """For a call: the kubelet's deadline."""
    quiet: float = 3.0
    """For how long nothing must happen."""
