"""What is said about a DeviceClass that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from allot.api.similar_names import did_you_mean, similar_names


class UnknownClassError(LookupError):
    """No DeviceClass has this name."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        names = sorted(names)
        listed = f"available: {', '.join(names)}" if names else "the cluster has no DeviceClass"
        hint = did_you_mean(similar_names(name, names)) or f"; {listed}"
        super().__init__(f"no DeviceClass {name}{hint}")
