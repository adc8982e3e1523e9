"""What is known about specs of pods: pods made from one template have equal specs, which are looked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from allot.apiserver.known_results import KnownResults
from allot.validation.fields import FieldError


class SpecFacts:
    """What has been found out about one spec, so far."""

    __slots__ = ("quality", "valid", "warnings")

    def __init__(self) -> None:
        self.quality: str | None = None
        """The quality of service."""
        self.warnings: list[str] | None = None
        """Those of a pod without annotations."""
        self.valid: frozenset[str] = frozenset()
        """The rules by which it has no errors."""

    def errors(
        self, rules: str, validate: Callable[[], Iterable[FieldError]]
    ) -> Iterator[FieldError]:
        """The errors that `validate` finds by these rules; none, without looking, if there are known to be none."""
        if rules in self.valid:
            return
        is_valid = True
        for error in validate():
            is_valid = False
            yield error
        if is_valid:
            self.valid |= {rules}


class KnownPodSpecs:
    """Facts about recent specs."""

    def __init__(self) -> None:
        self._known: KnownResults[SpecFacts] = KnownResults()
        self._last: tuple[object, SpecFacts] = (object(), SpecFacts())

    def facts(self, spec: Mapping[str, Any]) -> SpecFacts:
        """What is known about the spec. A write asks several times, which it is encoded once for."""
        last, facts = self._last
        if spec is last:
            return facts
        found = self._known.get(spec, SpecFacts)
        self._last = (spec, found)
        return found


POD_SPECS: Final = KnownPodSpecs()
