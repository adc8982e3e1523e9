"""Maximum sizes of the parts of a device, from the API's limits."""

from __future__ import annotations

from typing import Final

from allot.cel.sizes import Range

DOMAIN: Final = 63
IDENTIFIER: Final = 32
ENTRIES: Final = 32
VALUE: Final = 64
NAME: Final = 63

_FIELDS: Final = {"driver": DOMAIN, "name": NAME, "allowMultipleAllocations": 1}
_MAPS: Final = ("attributes", "capacity")
_EMPTY: Final = Range(0, 0)


def size_at(place: tuple[str, ...]) -> Range | None:
    """The size of the value at a place such as `device.attributes.@values`; None if unknown.

    An entry of a map goes by its name where it is selected (`.x`), and by `@values` where it is
    indexed (`["x"]`). Domains are only known by the latter.
    """
    if not place or place[0] != "device":
        return None
    match place[1:]:
        case ():
            return _EMPTY
        case (field,) if field in _FIELDS:
            return Range(0, _FIELDS[field])
        case (field, *rest) if field in _MAPS:
            return _size_in_map(
                field, tuple("@values" if step == "@items" else step for step in rest)
            )
        case _:
            return None


def _size_in_map(field: str, steps: tuple[str, ...]) -> Range | None:
    match steps:
        case () | ("@values",):
            return Range(0, ENTRIES)
        case ("@keys",):
            return Range(0, DOMAIN)
        case ("@values", "@keys"):
            return Range(0, IDENTIFIER)
        case ("@values", _) if field == "attributes":
            return Range(0, VALUE)
        case ("@values", "@values"):
            return _EMPTY
        case _:
            return None
