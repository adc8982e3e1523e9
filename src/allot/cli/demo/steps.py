"""Stories made of scenes, scenes made of steps. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from allot.cli.demo.needs import Need
from allot.cli.kubectl_output import values_at


class Until(NamedTuple):
    """A condition: at least so many objects have a value at `path`, or this value."""

    at_least: int
    path: str = ".metadata.name"
    value: str = ""

    def holds(self, objects: Sequence[Any]) -> bool:
        found = [values_at(each, self.path) for each in objects]
        return (
            sum(bool(self.value in each if self.value else each) for each in found) >= self.at_least
        )

    def __str__(self) -> str:
        return f"{self.at_least} with {self.path}{f' {self.value}' if self.value else ''}"


class Apply(NamedTuple):
    """`kubectl apply -f`. With `replace`, cluster-scoped objects of the same name are deleted first."""

    path: str
    replace: bool = False


class Get(NamedTuple):
    """`kubectl get` once all conditions hold, with a file of `examples/columns/` or the server's own table."""

    plural: str
    until: tuple[Until, ...]
    columns: str = ""
    name: str = ""
    selector: str = ""

    @property
    def words(self) -> list[str]:
        """The arguments of kubectl after `get PLURAL`, without columns."""
        selector = ["-l", self.selector] if self.selector else []
        return [*filter(None, [self.name]), *selector]


class StartFabric(NamedTuple):
    """`allot binding-controller` with a script, until the end of the scene."""

    script: str


Step = Apply | Get | StartFabric


class Scene(NamedTuple):
    """Commentary, steps, commentary; then the manifests to delete. `needs`: the devices that must be free."""

    before: str
    steps: tuple[Step, ...]
    after: str = ""
    delete: tuple[str, ...] = ()
    needs: Need | None = None


class Story(NamedTuple):
    """A KEP in a few scenes."""

    kep: str
    title: str
    scenes: tuple[Scene, ...]
