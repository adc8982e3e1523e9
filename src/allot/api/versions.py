"""The order of versions: stable before beta before alpha, newer before older, other names last."""

from __future__ import annotations

import re
from typing import Any, Final

_version: Final = re.compile(r"v([1-9][0-9]{0,8})(?:(alpha|beta)([1-9][0-9]{0,8}))?").fullmatch
_STAGES: Final = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[Any, ...]:
    """Sorts the most preferred version first."""
    found = _version(version)
    if found is None:
        return (1, version)
    number, stage, minor = found.groups()
    return (0, _STAGES[stage], -int(number), -int(minor or 0))
