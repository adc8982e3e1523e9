"""Objects before and after an update, and how they differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, Protocol

from allot.apiserver.managed_fields.comparison import Comparison
from allot.apiserver.managed_fields.partial_decoding import decode_all_partly
from allot.apiserver.managed_fields.updater import Document
from allot.apiserver.managed_fields.value_types import ValueType

MAX_KNOWN: Final = 256
MAX_KNOWN_BYTES: Final = 256
"""What is longer says more than a finalizer or a label, and is hardly seen again."""


class Differences:
    """Compares what differs between objects at one endpoint. Short differences are remembered."""

    def __init__(
        self,
        compare: Callable[[Document, Document], Comparison],
        ignored: frozenset[str],
        type_: Callable[[], ValueType],
    ) -> None:
        self.of = compare
        """The comparison of documents that have at least the top-level fields that differ."""
        self._type = type_
        self.ignored = ignored
        """Top-level fields that need not be compared."""
        self._known: dict[Hashable, Comparison] = {}

    def of_text(self, text: bytes) -> Comparison:
        """The same for both documents in one text."""
        found = self._known.get(text)
        if found is None:
            found = self.of(*decode_all_partly(text, self._type()))
            if len(text) <= MAX_KNOWN_BYTES:
                self._remember(text, found)
        return found

    def of_shape(self, shape: tuple[bool, ...], text: Callable[[], bytes]) -> Comparison:
        """The same for documents whose shape decides how they differ, and which may have been others."""
        found = self._known.get(shape)
        if found is None:
            found = self.of_text(text())
            self._remember(shape, found)
        return found

    def _remember(self, key: Hashable, comparison: Comparison) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = comparison


class UpdatedObject(Protocol):
    """An object before and after an update."""

    def whole(self) -> tuple[Document, Document]:
        """Both as documents without managedFields."""

    def compared(self, differences: Differences) -> Comparison:
        """How they differ."""


class UpdatedDocument(NamedTuple):
    """An updated object that is given as documents. Parts that are the same object do not differ."""

    live: Document
    new: Document

    def whole(self) -> tuple[Document, Document]:
        return self

    def compared(self, differences: Differences) -> Comparison:
        live, new = self
        names = [name for name in {**live, **new} if name not in differences.ignored]
        names = [name for name in names if live.get(name, new) is not new.get(name, live)]
        return differences.of(
            {name: live[name] for name in names if name in live},
            {name: new[name] for name in names if name in new},
        )
