"""An index of roles and bindings by namespace and subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from allot.apiserver.auth.authentication import SERVICE_ACCOUNT_PREFIX, User
from allot.apiserver.auth.rbac.rules import PolicyRule
from allot.apiserver.auth.rbac.stored_role import StoredRole
from allot.validation.parts import part, parts, text

Document = Mapping[str, Any]
MANY_SUBJECTS: Final = 256
FEW_GROUPS: Final = 32
"""Of a user in more groups, those without a binding are left out first: a review may name a hundred thousand."""


class Subject(NamedTuple):
    """A subject of a binding. A service account is the user with its name."""

    is_group: bool
    name: str


class RoleRef(NamedTuple):
    """A role; the namespace is empty for a ClusterRole."""

    namespace: str
    name: str

    @property
    def kind(self) -> str:
        return "Role" if self.namespace else "ClusterRole"

    @property
    def not_found(self) -> str:
        return f'{self.kind.lower()}.rbac.authorization.k8s.io "{self.name}" not found'


class RoleBinding(NamedTuple):
    """A RoleBinding, or a ClusterRoleBinding if it has no namespace."""

    namespace: str
    name: str
    role: RoleRef
    users: Mapping[str, Document]
    """The first subject with each name. Service accounts are users."""
    groups: Mapping[str, Document]

    @classmethod
    def from_document(cls, document: Document) -> RoleBinding:
        metadata = part(document, "metadata")
        namespace = text(metadata, "namespace")
        users: dict[str, Document] = {}
        groups: dict[str, Document] = {}
        # Without calls and new objects: a binding may have tens of thousands of subjects.
        for subject in parts(document, "subjects"):
            kind, name = subject.get("kind"), subject.get("name") or ""
            if kind == "User":
                users.setdefault(name, subject)
            elif kind == "Group":
                groups.setdefault(name, subject)
            elif kind == "ServiceAccount":
                home = subject.get("namespace") or namespace
                if home:
                    users.setdefault(f"{SERVICE_ACCOUNT_PREFIX}{home}:{name}", subject)
        return cls(namespace, text(metadata, "name"), role_of(document), users, groups)

    @property
    def is_large(self) -> bool:
        return len(self.users) + len(self.groups) > MANY_SUBJECTS

    def subjects(self) -> Iterator[Subject]:
        for name in self.users:
            yield Subject(False, name)
        for name in self.groups:
            yield Subject(True, name)

    def first_of(self, user: str, groups: Mapping[str, int]) -> Subject | None:
        """The first that it is about: the user, or one of the groups, which come with their places."""
        if user in self.users:
            return Subject(False, user)
        found = self.groups.keys() & groups.keys()
        return Subject(True, min(found, key=groups.__getitem__)) if found else None

    def granted(self, subject: Subject) -> str:
        """Why a request is allowed, in Kubernetes' wording."""
        shown = self._shown((self.groups if subject.is_group else self.users)[subject.name])
        named = f"{self.name}/{self.namespace}" if self.namespace else self.name
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        return (
            f'RBAC: allowed by {kind} "{named}" of {self.role.kind} "{self.role.name}" to {shown}'
        )

    def _shown(self, subject: Document) -> str:
        kind, name = subject["kind"], text(subject, "name")
        if kind == "ServiceAccount":
            name = f"{name}/{text(subject, 'namespace') or self.namespace}"
        return f'{kind} "{name}"'


def role_of(document: Document) -> RoleRef:
    """The role that a binding is about."""
    ref = part(document, "roleRef")
    home = text(part(document, "metadata"), "namespace") if ref.get("kind") == "Role" else ""
    return RoleRef(home, text(ref, "name"))


class BoundRole(NamedTuple):
    """A role of a user, None if it does not exist, and the binding that grants it."""

    binding: RoleBinding
    subject: Subject
    role: StoredRole | None


class PolicyIndex:
    """All roles, and all bindings by namespace and subject."""

    def __init__(self) -> None:
        self._roles: dict[RoleRef, StoredRole] = {}
        self._bindings: dict[tuple[str, str], RoleBinding] = {}
        self._by_subject: dict[tuple[str, Subject], dict[str, RoleBinding]] = {}
        self._large: dict[str, dict[str, RoleBinding]] = {}
        """Bindings with very many subjects, by namespace and name: they are asked, and not indexed."""
        self._bound_groups: Counter[str] = Counter()
        """Groups that have bindings: how many."""

    # --- changes ---

    def put_role(self, document: Mapping[str, Any]) -> None:
        metadata = part(document, "metadata")
        ref = RoleRef(text(metadata, "namespace"), text(metadata, "name"))
        self._roles[ref] = StoredRole(parts(document, "rules"))

    def remove_role(self, namespace: str, name: str) -> None:
        self._roles.pop(RoleRef(namespace, name), None)

    def put_binding(self, document: Mapping[str, Any]) -> None:
        binding = RoleBinding.from_document(document)
        self.remove_binding(binding.namespace, binding.name)
        self._bindings[binding.namespace, binding.name] = binding
        self._bound_groups.update(binding.groups.keys())
        if binding.is_large:
            self._large.setdefault(binding.namespace, {})[binding.name] = binding
            return
        for subject in binding.subjects():
            found = self._by_subject.setdefault((binding.namespace, subject), {})
            found[binding.name] = binding

    def remove_binding(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        if binding is None:
            return
        counts = self._bound_groups
        for group in binding.groups:
            counts[group] -= 1
            if not counts[group]:
                del counts[group]
        if binding.is_large:
            del self._large[namespace][name]
            return
        for subject in binding.subjects():
            found = self._by_subject.get((namespace, subject))
            if found is not None:
                found.pop(name, None)
                if not found:
                    del self._by_subject[namespace, subject]

    # --- queries ---

    def rules_of(self, role: RoleRef) -> Iterator[PolicyRule] | None:
        """The rules of a role; None if it does not exist."""
        found = self._roles.get(role)
        return None if found is None else found.rules()

    def bound_roles(self, user: User, namespace: str) -> Iterator[BoundRole]:
        """The roles of a user, each once with its first binding: cluster-wide ones, then those of the namespace."""
        seen: set[RoleRef] = set()
        for subject, binding in self._bindings_of(user, namespace):
            if binding.role not in seen:
                seen.add(binding.role)
                yield BoundRole(binding, subject, self._roles.get(binding.role))

    def rules_for(
        self, user: User, namespace: str, limit: int
    ) -> tuple[list[PolicyRule], list[RoleRef]]:
        """The first rules that apply to a user in a namespace, and the bound roles that do not exist."""
        rules: list[PolicyRule] = []
        missing: list[RoleRef] = []
        for _, binding in self._bindings_of(user, namespace):
            role = self._roles.get(binding.role)
            if role is None:
                missing.append(binding.role)
            else:
                rules += islice(role.rules(), limit - len(rules) - len(missing))
            if len(rules) + len(missing) >= limit:
                break
        return rules, missing

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Subject, RoleBinding]]:
        groups: Iterable[str] = user.groups
        if len(user.groups) > FEW_GROUPS:
            bound = self._bound_groups
            groups = [group for group in user.groups if group in bound]
        subjects = (Subject(False, user.name), *(Subject(True, group) for group in groups))
        for place in ("", namespace) if namespace else ("",):
            yield from self._bound(place, subjects)

    def _bound(
        self, namespace: str, subjects: Sequence[Subject]
    ) -> list[tuple[Subject, RoleBinding]]:
        """Each binding once, with the first matching subject, the user or a group; sorted by name."""
        found: dict[str, tuple[Subject, RoleBinding]] = {}
        for subject in subjects:
            for name, binding in self._by_subject.get((namespace, subject), {}).items():
                found.setdefault(name, (subject, binding))
        large = self._large.get(namespace)
        if large:
            user = subjects[0].name
            groups = {subject.name: place for place, subject in enumerate(subjects[1:])}
            for name, binding in large.items():
                first = binding.first_of(user, groups)
                if first is not None:
                    found[name] = (first, binding)
        return [found[name] for name in sorted(found)]
