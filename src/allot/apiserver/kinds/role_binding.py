"""RoleBindings."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, change_each, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import age_of, joined, text_at
from allot.validation import rbac
from allot.validation.core_names import path_segment_problems

RBAC: Final = "rbac.authorization.k8s.io"


def role_binding_defaults(binding: Data) -> Data:
    binding = change(binding, "roleRef", lambda reference: fill(reference, apiGroup=RBAC))
    return change_each(binding, "subjects", _subject_defaults)


def _subject_defaults(subject: Data) -> Data:
    return fill(subject, apiGroup=RBAC) if subject.get("kind") in ("User", "Group") else subject


def _binding_row(binding: RawObject, age: Age) -> list[Cell]:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.get("subjects", default=[]):
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.get(kind, []).append(name)
    return [
        binding.metadata.name,
        f"{text_at(binding, 'roleRef', 'kind')}/{text_at(binding, 'roleRef', 'name')}",
        age_of(binding, age),
        *(joined(names, ", ") for names in subjects.values()),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            path_segment_problems, rbac.validate_role_binding, rbac.validate_role_binding_update
        ),
    ),
    defaults=role_binding_defaults,
    table=Table(
        (NAME, Column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")),
        _binding_row,
    ),
    is_created_by_update=True,
)
