"""Which objects count for which: directories may hold manifests for different clusters.

Files that are named on the command line, and those at the top of a directory that is, count for all.
A file further down sees what is in its own directory and in those above. If all slices are in one
directory they count for all, and so for every other kind. An object anywhere satisfies a reference.

    lint/                 given as a directory
      classes.yaml        counts for all
      lab/slices.yaml     counts for lab/, and for all if no other directory has slices
      prod/slices.yaml    counts for prod/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import Subject


class KnownByScope:
    """What is known in each directory."""

    def __init__(self, subjects: Iterable[Subject], new_known: Callable[[], KnownObjects]) -> None:
        self._subjects = tuple(subjects)
        self._new_known = new_known
        self._known: dict[str, KnownObjects] = {}
        scopes_by_kind: dict[str, set[str]] = {}
        for subject in self._subjects:
            scopes_by_kind.setdefault(subject.gvk.kind, set()).add(subject.manifest.scope)
        self._kinds_in_one_place = {
            kind for kind, scopes in scopes_by_kind.items() if len(scopes - {""}) == 1
        }

    def of(self, subject: Subject) -> KnownObjects:
        scope = subject.manifest.scope
        known = self._known.get(scope)
        if known is None:
            known = self._known[scope] = self._made(scope)
        return known

    def _made(self, scope: str) -> KnownObjects:
        known = self._new_known()
        visible = [each for each in self._subjects if self._counts(each, scope)]
        others = {id(each) for each in self._subjects} - {id(each) for each in visible}
        known.add_references(each for each in self._subjects if id(each) in others)
        known.add_subjects(visible)
        return known

    def _counts(self, subject: Subject, scope: str) -> bool:
        theirs = subject.manifest.scope
        return (
            not theirs
            or theirs == scope
            or scope.startswith(f"{theirs}/")
            or subject.gvk.kind in self._kinds_in_one_place
        )
