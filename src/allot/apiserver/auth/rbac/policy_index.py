"""An index of roles and bindings by namespace and subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from allot.apiserver.auth.authentication import SERVICE_ACCOUNT_PREFIX, User
from allot.apiserver.auth.rbac.rules import PolicyRule, resource_patterns
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


class Binding(NamedTuple):
    """A RoleBinding, or a ClusterRoleBinding if it has no namespace."""

    namespace: str
    name: str
    role: RoleRef
    subjects: tuple[tuple[Subject, str], ...]
    """Each with its display form: `User "alice"`."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Binding:
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


class Grant(NamedTuple):
    """A rule that applies to a user, and the binding that grants it."""

    rule: PolicyRule
    binding: Binding
    subject: Subject


class MissingRole(NamedTuple):
    """A binding of the user whose role does not exist."""

    role: RoleRef


class RoleRules:
    """The rules of a role, and an index of them: a role may have ten thousand."""

    def __init__(self, rules: tuple[PolicyRule, ...]) -> None:
        self.all = rules

    @cached_property
    def _by_resource(self) -> dict[str, list[int]]:
        """The places of the rules about a resource, or a pattern of resources; equal rules once."""
        found: dict[str, list[int]] = {}
        seen: set[PolicyRule] = set()
        for index, rule in enumerate(self.all):
            if rule not in seen:
                seen.add(rule)
                for resource in dict.fromkeys(rule.resources):
                    found.setdefault(resource, []).append(index)
        return found

    def about(self, resource: str) -> Iterable[PolicyRule]:
        """The rules that may be about a resource, in their order."""
        places = [self._by_resource.get(each, ()) for each in resource_patterns(resource)]
        return [self.all[index] for index in sorted(set(chain.from_iterable(places)))]


class PolicyIndex:
    """All roles, and all bindings by namespace and subject."""

    def __init__(self) -> None:
        self._rules: dict[RoleRef, RoleRules] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}
        self._by_subject: dict[tuple[str, Subject], dict[str, Binding]] = {}

    # --- changes ---

    def put_role(self, document: Mapping[str, Any]) -> None:
        metadata = part(document, "metadata")
        ref = RoleRef(text(metadata, "namespace"), text(metadata, "name"))
        self._rules[ref] = RoleRules(PolicyRule.all_of(document))

    def remove_role(self, namespace: str, name: str) -> None:
        self._rules.pop(RoleRef(namespace, name), None)

    def put_binding(self, document: Mapping[str, Any]) -> None:
        binding = Binding.from_document(document)
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

    def rules_of(self, role: RoleRef) -> tuple[PolicyRule, ...] | None:
        found = self._rules.get(role)
        return None if found is None else found.all

    def grants(
        self, user: User, namespace: str, resource: str = ""
    ) -> Iterator[Grant | MissingRole]:
        """All grants of a user, or those that may be about a resource: cluster-wide ones, then those of the namespace."""
        subjects = (Subject(False, user.name), *(Subject(True, group) for group in user.groups))
        for place in ("", namespace) if namespace else ("",):
            for subject, binding in self._bound(place, subjects):
                rules = self._rules.get(binding.role)
                if rules is None:
                    yield MissingRole(binding.role)
                    continue
                for rule in rules.about(resource) if resource else rules.all:
                    yield Grant(rule, binding, subject)

    def _bound(self, namespace: str, subjects: Iterable[Subject]) -> list[tuple[Subject, Binding]]:
        """Each binding once, with the first matching subject; sorted by name."""
        found: dict[str, tuple[Subject, Binding]] = {}
        for subject in subjects:
            for name, binding in self._by_subject.get((namespace, subject), {}).items():
                found.setdefault(name, (subject, binding))
        return [found[name] for name in sorted(found)]

    def rules_for(
        self, user: User, namespace: str, limit: int | None = None
    ) -> tuple[list[PolicyRule], list[RoleRef]]:
        """The first rules that apply to a user in a namespace, and the bound roles that do not exist."""
        rules: list[PolicyRule] = []
        missing: list[RoleRef] = []
        for grant in islice(self.grants(user, namespace), limit):
            if isinstance(grant, Grant):
                rules.append(grant.rule)
            else:
                missing.append(grant.role)
        return rules, missing
