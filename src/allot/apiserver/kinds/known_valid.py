"""Specs that have been validated: objects made from one template have equal specs, which are validated once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final

import msgspec

from allot.api.decoding import to_builtin
from allot.validation.fields import FieldError

MAX_KNOWN: Final = 256
MAX_BYTES: Final = 4096
"""Larger specs are always validated."""

_encode: Final = msgspec.json.Encoder(enc_hook=to_builtin).encode


class KnownValid:
    """Remembers values without errors by their content, and by what else their validation depends on.

    When there are too many, all are forgotten.
    """

    def __init__(self, max_known: int = MAX_KNOWN) -> None:
        self._max_known = max_known
        self._known: set[Hashable] = set()
        self._last: tuple[Any, tuple[Hashable, ...]] = (object(), ())
        """The value that was found last, and what it depends on: equal specs are often the same object."""

    def errors(
        self, value: Any, validate: Callable[[], Iterable[FieldError]], *depends_on: Hashable
    ) -> Iterator[FieldError]:
        """The errors that `validate` finds in the value; none, without looking, if it is known to have none."""
        last, depended_on = self._last
        if value is last and depends_on == depended_on:
            return
        content = _encode(value)
        key = (content, *depends_on)
        if key in self._known:
            self._last = value, depends_on
            return
        is_valid = True
        for error in validate():
            is_valid = False
            yield error
        if is_valid and len(content) <= MAX_BYTES:
            if len(self._known) >= self._max_known:
                self._known.clear()
            self._known.add(key)
