"""Semantic versions, as version attributes and CEL use them.

Two rules differ on purpose, as in Kubernetes: an attribute is checked against the grammar of
semver.org alone (`is_version_attribute`), while `Semver.parse` also requires numbers that fit uint64.
"""

from __future__ import annotations

import json
import re
from functools import total_ordering
from typing import Final, NamedTuple

_MAX_UINT64: Final = 2**64 - 1

_IDENTIFIER_CHARACTERS: Final = frozenset(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"
)
_DIGITS: Final = frozenset("0123456789")

_NUMBER = r"(?:0|[1-9][0-9]*)"
_ATTRIBUTE: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


def is_version_attribute(text: str) -> bool:
    """Whether a device may carry `text` as a version; its length is checked elsewhere."""
    return _ATTRIBUTE.fullmatch(text) is not None


class SemverError(ValueError):
    """The string is not a semantic version. CEL users see the message."""


class _Prerelease(NamedTuple):
    """One dotted part of a prerelease. Numbers sort before words, numbers by value."""

    is_word: bool
    number: int
    word: str


@total_ordering
class Semver:
    """A version with semver precedence: build metadata is kept but neither compared nor hashed."""

    __slots__ = ("_key", "build", "major", "minor", "patch", "prerelease")

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        prerelease: tuple[str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        self.major = major
        self.minor = minor
        self.patch = patch
        self.prerelease = prerelease
        self.build = build
        parts = tuple(
            _Prerelease(False, int(part), "") if _is_number(part) else _Prerelease(True, 0, part)
            for part in prerelease
        )
        # A release comes after all its prereleases, hence the extra flag.
        self._key = (major, minor, patch, not prerelease, parts)

    @staticmethod
    def parse(text: str) -> Semver:
        """The version in `text`; `SemverError` if it is not one."""
        if not text:
            raise SemverError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise SemverError("No Major.Minor.Patch elements found")
        major = _core_number(parts[0], "Major", "major")
        minor = _core_number(parts[1], "Minor", "minor")
        rest = parts[2]
        rest, has_build, build_text = rest.partition("+")
        patch_text, has_prerelease, prerelease_text = rest.partition("-")
        patch = _core_number(patch_text, "Patch", "patch")
        prerelease = tuple(prerelease_text.split(".")) if has_prerelease else ()
        for part in prerelease:
            _check_prerelease(part)
        build = tuple(build_text.split(".")) if has_build else ()
        for part in build:
            if not part:
                raise SemverError("Build meta data is empty")
            if not set(part) <= _IDENTIFIER_CHARACTERS:
                raise SemverError(
                    f'Invalid character(s) found in build meta data "{_go_text(part)}"'
                )
        return Semver(major, minor, patch, prerelease, build)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _go_text(text: str) -> str:
    """As Go shows it between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _is_number(part: str) -> bool:
    return set(part) <= _DIGITS


def _core_number(text: str, title: str, name: str) -> int:
    if not set(text) <= _DIGITS:
        raise SemverError(f'Invalid character(s) found in {name} number "{_go_text(text)}"')
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f'{title} number must not contain leading zeroes "{text}"')
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _MAX_UINT64:
        raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _check_prerelease(part: str) -> None:
    if not part:
        raise SemverError("Prerelease is empty")
    if _is_number(part):
        if len(part) > 1 and part[0] == "0":
            raise SemverError(
                f'Numeric PreRelease version must not contain leading zeroes "{part}"'
            )
        _uint64(part)
    elif not set(part) <= _IDENTIFIER_CHARACTERS:
        raise SemverError(f'Invalid character(s) found in prerelease "{_go_text(part)}"')
