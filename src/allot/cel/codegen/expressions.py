"""Expressions without calls and loops: paths into values, choices, logic, lists and maps, constants."""

from __future__ import annotations

from abc import ABC, abstractmethod

from allot.cel import costs
from allot.cel.access import follow, get, has_field
from allot.cel.codegen.statements import Statements, UnexpectedError, UnsupportedError
from allot.cel.constants import quickly_known
from allot.cel.plan import (
    Access,
    Choice,
    Const,
    Fixed,
    Global,
    Invoke,
    Local,
    Logical,
    MakeMap,
    Membership,
    Node,
    Path,
    Presence,
)
from allot.cel.planner import member_key
from allot.cel.values import Value


class Expressions(Statements, ABC):
    """Writes the code that computes the nodes of a plan."""

    @abstractmethod
    def value(self, node: Node) -> str:
        """Writes the code that computes the node and returns the name of its value."""

    # --- paths ---

    def _resolved(self, node: Node) -> str:
        """A value as a branch of a conditional or as a key: naming its root costs nothing."""
        return self._path(node) if isinstance(node, Path) else self.value(node)

    def _path(self, path: Path) -> str:
        match path.root:
            case Local():
                root = f"s{path.root.slot}"
                if path.root.slot in self._bindings:
                    self._use_binding(path.root.slot)
            case Global():
                root = self._global(path.root.name)
            case Choice():
                root = self._choice(path.root)
            case _:
                root = self.value(path.root)
        if not path.accesses:
            return root if root.isidentifier() else self._assign(root)
        if any(access.optional for access in path.accesses):
            return self._optional_path(root, path.accesses)
        for access in path.accesses:
            root = self._accessed(root, access)
        return self._assign(root)

    def _optional_path(self, root: str, accesses: tuple[Access, ...]) -> str:
        if self._counts and not all(isinstance(access.key, Const) for access in accesses):
            raise UnsupportedError
        steps = ", ".join(f"({self.value(access.key)}, {access.optional})" for access in accesses)
        found, length = self._temporary(), self._temporary()
        self._write(f"{found}, {length} = {self._bound(follow)}({root}, ({steps},))")
        if self._counts:
            self._write(f"c += {length}")
        return found

    def _accessed(self, container: str, access: Access) -> str:
        """An expression for one step. A string key raises by itself on everything but maps."""
        self._owe(1)
        if isinstance(access.key, Const) and isinstance(access.key.value, str):
            return f"{container}[{self._bound(access.key.value)}]"
        key = self._resolved(access.key)
        if isinstance(access.key, Const) and _is_index(access.key.value):
            held = self._assign(container)
            return f"({held}[{key}] if type({held}) is list else {self._bound(get)}({held}, {key}))"
        return f"{self._bound(get)}({container}, {key})"

    # --- decisions ---

    def _choice(self, choice: Choice) -> str:
        condition = self._decision(choice.condition)
        result = self._temporary()
        self.settle()
        self._write(f"if {condition}:")
        self._branch(choice.when_true, result)
        self._write("else:")
        self._branch(choice.when_false, result)
        return result

    def _branch(self, node: Node, result: str) -> None:
        self._indent += 1
        self._write(f"{result} = {self._resolved(node)}")
        self.settle()
        self._indent -= 1

    def _decision(self, node: Node) -> str:
        """The name of a value that is certainly True or False."""
        name = self.value(node)
        if not _gives_bool(node):
            self._write(f"if type({name}) is not bool:")
            self._write(f"    raise {self._bound(UnexpectedError)}")
        return name

    def _presence(self, node: Presence) -> str:
        if not isinstance(node.path.root, Choice):
            self._owe(1)
        container = self._path(node.path)
        field = self._bound(node.field)
        return self._assign(
            f"{field} in {container} if type({container}) is dict else "
            f"{self._bound(has_field)}({container}, {field})"
        )

    def _logical(self, node: Logical) -> str:
        """A block that is left at the first deciding term. Flat for any number of terms."""
        result = self._temporary()
        self.settle()
        self._write(f"{result} = {node.decided_by}")
        self._write("while True:")
        self._indent += 1
        for term in node.terms:
            decision = self._decision(term)
            self.settle()
            self._write(f"if {decision if node.decided_by else f'not {decision}'}:")
            self._write("    break")
        self._write(f"{result} = {not node.decided_by}")
        self._write("break")
        self._indent -= 1
        return result

    def _membership(self, node: Membership) -> str:
        value = self.value(node.value)
        allowed = self._bound(node.allowed)
        return self._assign(
            f"({value} if type({value}) is str else {self._bound(member_key)}({value})) in {allowed}"
        )

    # --- maps and constants ---

    def _make_map(self, node: MakeMap) -> str:
        entries: list[str] = []
        if len({key.value for key, _, _ in node.entries if isinstance(key, Const)}) < len(
            node.entries
        ):
            raise UnsupportedError  # the same key twice, or keys that are computed
        for key, value, optional in node.entries:
            if optional or not isinstance(key, Const) or not isinstance(key.value, str):
                raise UnsupportedError
            entries.append(f"{self._bound(key.value)}: {self.value(value)}")
        self._owe(costs.MAP)
        return self._assign("{" + ", ".join(entries) + "}")

    def _fixed(self, node: Fixed) -> str:
        """A constant that is computed now if that is cheap, else by the generated code on first use."""
        known = quickly_known(node)
        if known is not None:
            self._owe(known.cost)
            return self._bound(known.value)
        once, result = self._bound(node.once), self._temporary()
        self.settle()
        self._write(f"if {once}.{'is_counted' if self._counts else 'is_value'}:")
        self._write(f"    {result} = {once}.value")
        if self._counts:
            self._write(f"    c += {once}.cost")
        self._write("else:")
        self._indent += 1
        if self._counts:
            before = self._assign("c")
            self._write(f"{result} = {self.value(node.node)}")
            self.settle()
            self._write(f"{once}.remember({result}, c - {before})")
        else:
            self._write(f"{result} = {self.value(node.node)}")
            self._write(f"{once}.remember({result})")
        self._indent -= 1
        return result


def _is_index(key: Value) -> bool:
    return type(key) is int and key >= 0


def _gives_bool(node: Node) -> bool:
    match node:
        case Logical() | Presence() | Membership():
            return True
        case Const():
            return type(node.value) is bool
        case Fixed():
            return _gives_bool(node.node)
        case Invoke():
            return node.gives_bool
        case _:
            return False
