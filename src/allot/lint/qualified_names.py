"""How a bare attribute in a constraint is written in full: with the domain of its driver."""

from __future__ import annotations

from allot.cel.device import split_name
from allot.lint.fixes import ReplaceValue
from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import Subject


def qualified_names(
    subject: Subject, path: str, name: str, known: KnownObjects
) -> tuple[str, ReplaceValue | None]:
    """What to write instead, and a fix if it can be one name only."""
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
    driver = _a_driver(subject, known)
    return f'; write it with the domain of its driver: "{driver}/{name}"', None


def _a_driver(subject: Subject, known: KnownObjects) -> str:
    """The driver of devices that the claim asks for, if that is known."""
    for alternative in subject.claim.alternatives() if subject.claim is not None else ():
        for device in known.candidates(alternative) or ():
            return device.id.driver
    return "driver.example.com"
