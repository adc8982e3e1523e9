"""Source code of generated functions, and the namespace that they are defined in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from allot.api.protobuf.memory import Memory
from allot.api.protobuf.targets import Target


class GeneratedSource:
    """Lines of Python, indented by the blocks they are in."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def define(self, namespace: dict[str, Any], name: str) -> None:
        """Executes the source, which adds its definitions to the namespace."""
        exec(compile(self.text, name, "exec"), namespace)  # noqa: S102


class GeneratedFunctions:
    """A namespace with one function for each target, generated when it is called for the first time."""

    def __init__(
        self,
        namespace: dict[str, Any],
        remembered: Memory,
        define: Callable[[Target, str], None],
    ) -> None:
        """`namespace` has what generated functions call; `define` adds the function of a target under a name."""
        self.namespace: Final = namespace
        self._remembered = remembered
        self._define = define
        self._names: dict[Target, str] = {}

    def function(self, target: Target) -> Any:
        return self.namespace[self._names.get(target) or self.promise(target)]

    def promise(self, target: Target) -> str:
        """The name of the target's function."""
        name = f"message_{target.identifier}"
        if name not in self.namespace:

            def generate(*arguments: Any) -> Any:
                self._define(target, name)
                return self.namespace[name](*arguments)

            self.namespace[name] = generate
            self._names[target] = name
        return name

    def parts_of(self, target: Target) -> str:
        """The name of what is remembered of a target."""
        name = f"parts_{target.identifier}"
        if name not in self.namespace:
            self.namespace[name] = self._remembered.of_a_type()
        return name
