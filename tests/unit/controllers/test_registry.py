"""The registry of controllers: it lists all of them, and `--controllers` selects from it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import allot.controllers
from allot.controllers.controller import Controller
from allot.controllers.registry import (
    CONTROLLERS,
    DEFAULT_CONTROLLERS,
    UnknownControllerError,
    select_controllers,
)

DEFAULT = set(DEFAULT_CONTROLLERS)


def names(*selection: str) -> set[str]:
    factories = select_controllers(selection)
    return {name for name, entry in CONTROLLERS.items() if entry.factory in factories}


def concrete_controllers() -> set[type[Controller]]:
    """Every class in `allot.controllers` that can be instantiated as a controller."""
    for module in pkgutil.walk_packages(allot.controllers.__path__, "allot.controllers."):
        importlib.import_module(module.name)
    found: set[type[Controller]] = set()
    pending = [Controller]
    while pending:
        for subclass in pending.pop().__subclasses__():
            pending.append(subclass)
            is_ours = subclass.__module__.startswith("allot.controllers.")
            if is_ours and not inspect.isabstract(subclass) and hasattr(subclass, "name"):
                found.add(subclass)
    return found


def test_a_new_controller_needs_one_row_and_has_one() -> None:
    assert {entry.factory for entry in CONTROLLERS.values()} == concrete_controllers()


def test_rows_have_the_names_of_their_controllers() -> None:
    assert {entry.name: entry.factory for entry in CONTROLLERS.values()} == {
        controller.name: controller for controller in concrete_controllers()
    }


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (("*",), DEFAULT),
        (("*", "job-controller"), set(CONTROLLERS)),
        ((), set()),
        (("job-controller",), {"job-controller"}),
        (("*", "-job-controller"), DEFAULT - {"job-controller"}),
        (("-job-controller", "*"), DEFAULT - {"job-controller"}),
        (("resource-claim-controller",), {"resourceclaim-controller"}),
    ],
)
def test_selection(selection: tuple[str, ...], expected: set[str]) -> None:
    assert names(*selection) == expected


@pytest.mark.parametrize("name", ["job", "-jobs", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownControllerError, match=r"unknown controller .*; available: "):
        select_controllers(["*", name])


def test_a_factory_can_be_overridden() -> None:
    other = CONTROLLERS["deployment-controller"].factory

    assert select_controllers(["job-controller"], {"job-controller": other}) == (other,)
