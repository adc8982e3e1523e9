"""Changes of objects as watch events. Each of their encodings is made once for all watches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from allot.api.protobuf.envelope import in_envelope, watch_event
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.representations import REPRESENTATIONS
from allot.apiserver.watch_cache.stored_objects import StoredObject, with_revision

_HEADS: Final = {
    type_: b'{"type":"%b","object":' % type_.encode()
    for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}
"""How the lines of events begin."""


class ObjectChange:
    """One change of one object. Its encodings are kept for all watches.

    A line that copies what is stored is kept when a second watch asks for it: mostly there is only one.
    """

    __slots__ = ("_copied", "_lines", "new", "old", "revision", "size", "type")

    def __init__(
        self, revision: int, old: StoredObject | None, new: StoredObject | None, size: int = 0
    ) -> None:
        self.revision = revision
        self.old = old
        self.new = new
        self.type = "ADDED" if old is None else "DELETED" if new is None else "MODIFIED"
        """What watchers without a selector see."""
        self.size = size
        """The bytes of the objects that nothing else in the window has."""
        self._lines: dict[Hashable, bytes] | None = None
        self._copied: Hashable = None
        """The form of the last line that was made and not kept."""

    def shown(self, type_: str) -> StoredObject:
        """The state an event shows: an object that is gone, or left a selection, as it was last."""
        shown = self.old if type_ == "DELETED" else self.new
        assert shown is not None
        return shown

    def line(self, type_: str, codec: Codec, version: str, head: bytes) -> bytes:
        """The event as a line of a watch stream; `head` is how its object begins (`type_head`)."""
        key = (type_, codec, version)
        lines = self._lines
        line = lines.get(key) if lines is not None else None
        if line is None:
            shown = self.shown(type_)
            is_copy = codec is shown.codec and version == codec.storage_version
            body = shown.entry.value if is_copy else shown.without_revision(codec, version)
            line = with_revision(body, self.revision, _HEADS[type_] + head, b"}\n")
            if is_copy and key != self._copied:
                self._copied = key
            else:
                self._keep(key, line)
        return line

    def frame(self, type_: str, codec: Codec, version: str) -> bytes:
        """The event as a frame of a watch stream in protobuf."""
        key = (type_, codec, version, "protobuf")
        lines = self._lines
        frame = lines.get(key) if lines is not None else None
        if frame is None:
            shown = self.shown(type_)
            if type_ == "DELETED":
                message = shown.message_at(self.revision, codec, version)
            else:
                message = shown.message(codec, version)
            gvk = codec.resource.gvk(version)
            frame = watch_event(type_, in_envelope(message, str(gvk.group_version), gvk.kind))
            self._keep(key, frame)
        return frame

    def _keep(self, form: Hashable, line: bytes) -> None:
        if self._lines is None:
            self._lines = {}
        self._lines[form] = line
        REPRESENTATIONS.keep(self, form, len(line))

    @property
    def key(self) -> str:
        shown = self.new or self.old
        assert shown is not None
        return shown.key

    @property
    def codec(self) -> Codec:
        shown = self.new or self.old
        assert shown is not None
        return shown.codec

    def forget(self, form: Hashable) -> None:
        if self._lines is not None:
            self._lines.pop(form, None)


def event_line(type_: str, body: bytes) -> bytes:
    return b"%b%b}\n" % (_HEADS[type_], body)
