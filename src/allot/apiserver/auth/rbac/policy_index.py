"""An index of roles and bindings by namespace and subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from allot.apiserver.auth.authentication import SERVICE_ACCOUNT_PREFIX, User
from allot.apiserver.auth.rbac.rules import PolicyRule
from allot.apiserver.auth.rbac.stored_role import StoredRole
from allot.validation.parts import part, parts, text


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
    subjects: tuple[tuple[Subject, str], ...]
    """Each with its display form: `User "alice"`."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RoleBinding:
        metadata, ref = part(document, "metadata"), part(document, "roleRef")
        namespace = text(metadata, "namespace")
        home = namespace if ref.get("kind") == "Role" else ""
        subjects = tuple(_subjects(parts(document, "subjects"), namespace))
        return cls(namespace, text(metadata, "name"), RoleRef(home, text(ref, "name")), subjects)

    def granted(self, subject: Subject) -> str:
        """Why a request is allowed, in Kubernetes' wording."""
        shown = next(text for found, text in self.subjects if found == subject)
        named = f"{self.name}/{self.namespace}" if self.namespace else self.name
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        return (
            f'RBAC: allowed by {kind} "{named}" of {self.role.kind} "{self.role.name}" to {shown}'
        )


def _subjects(
    documents: Iterable[Mapping[str, Any]], namespace: str
) -> Iterator[tuple[Subject, str]]:
    for document in documents:
        name = text(document, "name")
        match document.get("kind"):
            case "User":
                yield Subject(False, name), f'User "{name}"'
            case "Group":
                yield Subject(True, name), f'Group "{name}"'
            case "ServiceAccount":
                home = text(document, "namespace") or namespace
                if home:
                    user = f"{SERVICE_ACCOUNT_PREFIX}{home}:{name}"
                    yield Subject(False, user), f'ServiceAccount "{name}/{home}"'


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
        for subject, _ in binding.subjects:
            found = self._by_subject.setdefault((binding.namespace, subject), {})
            found[binding.name] = binding

    def remove_binding(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        if binding is None:
            return
        for subject, _ in binding.subjects:
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
        subjects = (Subject(False, user.name), *(Subject(True, group) for group in user.groups))
        for place in ("", namespace) if namespace else ("",):
            yield from self._bound(place, subjects)

    def _bound(
        self, namespace: str, subjects: Iterable[Subject]
    ) -> list[tuple[Subject, RoleBinding]]:
        """Each binding once, with the first matching subject; sorted by name."""
        found: dict[str, tuple[Subject, RoleBinding]] = {}
        for subject in subjects:
            for name, binding in self._by_subject.get((namespace, subject), {}).items():
                found.setdefault(name, (subject, binding))
        return [found[name] for name in sorted(found)]
