"""Frames of the search with forward checking."""

from __future__ import annotations

from collections.abc import Hashable

from allot.allocation.constraints import Constraint
from allot.allocation.requests import Alternative
from allot.allocation.search.backtracking import SearchFrame
from allot.allocation.search.domains import Token


class ConflictFrame(SearchFrame):
    """A frame with its conflict set and the equivalence classes tried."""

    __slots__ = (
        "choices",
        "conflicts",
        "deepest",
        "entered",
        "last",
        "relevant",
        "signature",
        "tried",
        "values_left",
    )

    def __init__(
        self, request: int, alternative: Alternative | None, nth: int, start: int, choices: int
    ) -> None:
        super().__init__(request, alternative, nth, start)
        self.choices = choices
        """The frames that chose an alternative for the same claim."""
        self.entered = False
        """Whether the frame was checked for a dead end."""
        self.conflicts = 0
        """The conflict set, as a bit mask of earlier frames."""
        self.deepest = request
        """The last request with a part in the failures here."""
        self.last: int | None = None
        """The device that was picked last."""
        self.tried: dict[Hashable, int] = {}
        """By equivalence class: a device of it that failed."""
        self.signature: Hashable = None
        """The residual state, by which dead ends are recognized."""
        self.relevant = 0
        """The earlier frames that shape the residual state."""
        self.values_left: dict[Constraint, frozenset[Token]] = {}
        """By constraint: the values with which bounds do not rule out a solution."""
