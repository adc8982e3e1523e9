"""Texts for people that several components say: with a limit, or about names that nothing has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.similar_names import did_you_mean, similar_names

_ELLIPSIS: Final = "..."


def shortened(text: str, limit: int) -> str:
    """As many whole words as fit into `limit` bytes, and three dots if some did not.

    A first word that is longer than that is cut between characters.
    """
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    kept = encoded[: limit - len(_ELLIPSIS)].decode(errors="ignore")
    if not text[len(kept)].isspace():
        words, space, _ = kept.rpartition(" ")
        kept = words if space and words.strip() else kept
    return kept.rstrip(" ,;:") + _ELLIPSIS


def without_slices(driver: str, drivers: Iterable[str]) -> str:
    """That no slice is of this driver, though some are of others."""
    return f"no ResourceSlice is of driver {driver}{did_you_mean(similar_names(driver, drivers))}"
