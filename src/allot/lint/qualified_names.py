"""How a bare attribute in a constraint is written in full: with the domain of its driver."""

from __future__ import annotations

from allot.cel.device import split_name
from allot.lint.fixes import ReplaceValue
from allot.lint.known_objects import KnownObjects


def qualified_names(path: str, name: str, known: KnownObjects) -> tuple[str, ReplaceValue | None]:
    """The qualified name to suggest, if devices publish it, and a fix if only one name is possible."""
    published = sorted(
        {
            "/".join(split_name(each, device.id.driver))
            for device in known.devices
            for each in device.device.attributes
            if split_name(each, device.id.driver)[1] == name
        }
    )
    if published:
        written = " or ".join(f'"{each}"' for each in published)
        fix = ReplaceValue(path, published[0]) if len(published) == 1 else None
        return f"; write {written}", fix
    return "", None
