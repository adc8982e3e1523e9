"""What a recording must not have, and its recorder needs to go on: the salt of hashes, and names with their aliases.

It is a file of JSON lines beside the recording, for its owner only. Without it an anonymized recording cannot be read
back into names, and cannot be continued.
"""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path
from typing import Final

import msgspec

from allot.questions.cluster_clone import Aliases
from allot.questions.recording.files import append_durably, replace_file
from allot.questions.recording.lines import RecordingError

SUFFIX: Final = ".private"


class _Line(msgspec.Struct, omit_defaults=True):
    salt: str = ""
    name: str = ""
    alias: str = ""
    numbers: dict[str, int] = {}


_decoder: Final = msgspec.json.Decoder(_Line)
_encoder: Final = msgspec.json.Encoder()


class PrivateFile:
    """The file beside a recording."""

    def __init__(self, recording: Path, salt: bytes, aliases: Aliases) -> None:
        self._path = private_path(recording)
        self.salt = salt
        self.aliases = aliases

    @classmethod
    def create(cls, recording: Path, salt: bytes) -> PrivateFile:
        made = cls(recording, salt, Aliases())
        replace_file(made._path, [_encoded(_Line(salt=salt.hex()))])
        return made

    @classmethod
    def load(cls, recording: Path) -> PrivateFile:
        """`RecordingError` if it cannot be read. A last line that is not complete is left out."""
        path = private_path(recording)
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from error
        salt, known = "", []
        numbers: dict[str, int] = {}
        whole = 0
        for line in lines:
            try:
                found = _decoder.decode(line)
            except msgspec.DecodeError:
                break
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            salt = found.salt or salt
            numbers |= found.numbers
            if found.name:
                known.append((found.name, found.alias))
        if not salt:
            raise RecordingError(f"{path} is damaged: it has no salt")
        if whole < sum(map(len, lines)):
            os.truncate(path, whole)
        return cls(recording, bytes.fromhex(salt), Aliases(known, numbers))

    def save_new(self) -> None:
        """Append the aliases that are new; durable when this returns."""
        new = self.aliases.take_new()
        if new:
            append_durably(
                self._path, [_encoded(_Line(name=name, alias=alias)) for name, alias in new]
            )

    def keep_only(self, used: Container[str]) -> None:
        """Forget aliases that are no longer used; their numbers are not given again."""
        kept = [(name, alias) for name, alias in self.aliases.items() if alias in used]
        numbers = dict(self.aliases.numbers)
        head = [_Line(salt=self.salt.hex()), _Line(numbers=numbers)]
        lines = [*head, *(_Line(name=name, alias=alias) for name, alias in kept)]
        replace_file(self._path, map(_encoded, lines))
        self.aliases.keep_only(used)


def private_path(recording: Path) -> Path:
    return recording.with_name(recording.name + SUFFIX)


def _encoded(line: _Line) -> bytes:
    return _encoder.encode(line) + b"\n"
