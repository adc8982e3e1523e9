"""Scopes: which objects are visible to which, because directories may hold manifests for different clusters.

Files named on the command line, and those at the top of a named directory, are visible to all. A file
further down sees its own directory and those above. If all objects of a kind are in one directory, they
are visible to all. An object in any directory satisfies a reference.

    lint/                 given as a directory
      classes.yaml        visible to all
      lab/slices.yaml     visible to lab/, and to all if no other directory has slices
      prod/slices.yaml    visible to prod/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import LintSubject


class KnownByScope:
    """The known objects of each directory."""

    def __init__(
        self, subjects: Iterable[LintSubject], new_known: Callable[[], KnownObjects]
    ) -> None:
        self._subjects = tuple(subjects)
        self._new_known = new_known
        self._known: dict[str, KnownObjects] = {}
        scopes_by_kind: dict[str, set[str]] = {}
        for subject in self._subjects:
            scopes_by_kind.setdefault(subject.gvk.kind, set()).add(subject.manifest.scope)
        self._kinds_in_one_place = {
            kind for kind, scopes in scopes_by_kind.items() if len(scopes - {""}) == 1
        }

    def of(self, subject: LintSubject) -> KnownObjects:
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

    def _counts(self, subject: LintSubject, scope: str) -> bool:
        theirs = subject.manifest.scope
        return (
            not theirs
            or theirs == scope
            or scope.startswith(f"{theirs}/")
            or subject.gvk.kind in self._kinds_in_one_place
        )
