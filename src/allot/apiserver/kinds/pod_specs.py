"""What is known about specs of pods: pods made from one template have equal specs, which are looked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from allot.validation.fields import FieldError

MAX_KNOWN: Final = 256
MAX_BYTES: Final = 4096
"""Larger specs are not remembered."""

_encode: Final = msgspec.json.Encoder().encode


class SpecFacts:
    """What has been found out about one spec, so far."""

    __slots__ = ("_valid", "quality", "warnings")

    def __init__(self) -> None:
        self.quality: str | None = None
        """The quality of service."""
        self.warnings: list[str] | None = None
        """Those of a pod without annotations."""
        self._valid: frozenset[str] = frozenset()

    def errors(
        self, rules: str, validate: Callable[[], Iterable[FieldError]]
    ) -> Iterator[FieldError]:
        """The errors that `validate` finds by these rules; none, without looking, if there are known to be none."""
        if rules in self._valid:
            return
        is_valid = True
        for error in validate():
            is_valid = False
            yield error
        if is_valid:
            self._valid |= {rules}


class KnownPodSpecs:
    """Remembers facts by the text of a spec. When there are too many, all are forgotten."""

    def __init__(self) -> None:
        self._known: dict[bytes, SpecFacts] = {}
        self._last: tuple[object, SpecFacts] = (object(), SpecFacts())

    def facts(self, spec: Mapping[str, Any]) -> SpecFacts:
        """What is known about the spec. A write asks several times, which it is encoded once for."""
        last, facts = self._last
        if spec is last:
            return facts
        text = _encode(spec)
        found = self._known.get(text)
        if found is None:
            found = SpecFacts()
            if len(text) <= MAX_BYTES:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[text] = found
        self._last = (spec, found)
        return found


POD_SPECS: Final = KnownPodSpecs()
