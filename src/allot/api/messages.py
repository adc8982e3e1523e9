"""Messages that several components share, and messages with a length limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.similar_names import did_you_mean, similar_names

_ELLIPSIS: Final = "..."


def shortened(text: str, limit: int) -> str:
    """At most `limit` bytes: whole words, and three dots if some are cut off.

    A first word that is longer is cut between characters.
    """
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    kept = encoded[: limit - len(_ELLIPSIS)].decode(errors="ignore")
    if not text[len(kept)].isspace():
        words, space, _ = kept.rpartition(" ")
        kept = words if space and words.strip() else kept
    return kept.rstrip(" ,;:") + _ELLIPSIS


def no_slice_of_driver(driver: str, drivers: Iterable[str]) -> str:
    """The message that no slice is of this driver, with similar driver names."""
    return f"no ResourceSlice is of driver {driver}{did_you_mean(similar_names(driver, drivers))}"
