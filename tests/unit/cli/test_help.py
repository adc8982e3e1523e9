"""The list of commands: grouped, complete, and short enough for 80 columns."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import allot.cli
from allot.cli.command_list import COMMANDS, GROUPS
from allot.cli.program import allot as program

DIRECTORY = Path(allot.cli.__file__).parent
DOCS = Path(__file__).parents[3] / "docs"


def said(*arguments: str) -> str:
    return CliRunner().invoke(program, arguments, prog_name="allot", terminal_width=80).output


def test_groups_in_the_order_of_need() -> None:
    text = said("--help")

    places = [text.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    assert text.index("\n  up ") < text.index("\n  status ") < text.index("\n  scheduler ")


def test_nothing_is_cut_or_wrapped_at_80_columns() -> None:
    lines = said("--help").splitlines()

    for each in COMMANDS.values():
        (line,) = [line for line in lines if line.startswith(f"  {each.name} ")]
        assert line.endswith(each.summary)
        assert len(line) <= 80


def test_every_command_is_listed() -> None:
    """A new command is also in `command_list`."""
    unlisted = []
    for path in DIRECTORY.glob("*.py"):
        command = getattr(import_module(f"allot.cli.{path.stem}"), path.stem, None)
        if isinstance(command, click.Command):
            unlisted += [path.stem] if path.stem.replace("_", "-") not in COMMANDS else []

    assert unlisted == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name: str) -> None:
    text = said(name, "--help")

    assert said("help", name) == text
    assert f"Usage: allot {name}" in text
    assert (DOCS / COMMANDS[name].page).exists()


def test_help_of_commands_below_commands() -> None:
    assert said("help", "storage", "check") == said("storage", "check", "--help")
    assert said("help") == said("--help")


def test_version() -> None:
    assert said("--version") == said("version")


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["stauts"], "Did you mean 'status'?"),
        (["help", "explian"], "Did you mean one of: 'explain', 'plan', 'replay'?"),
        (["up", "--hardwar", "x"], "Did you mean '--hardware'?"),
        (["status", "--kubconfig", "x"], "Did you mean '--kubeconfig'?"),
    ],
)
def test_suggestions(arguments: list[str], suggestion: str) -> None:
    assert suggestion in said(*arguments)


def test_documentation_is_named() -> None:
    assert str(DOCS / "index.md") in said("--help").replace("\n", "").replace(" ", "")
    assert "explain.md" in said("explain", "--help")


@pytest.mark.parametrize(
    "name",
    ["status", "explain", "cel", "devices", "demo", "nodes", "scheduler", "controller-manager"],
)
def test_which_cluster_is_said_in_help(name: str) -> None:
    text = " ".join(said(name, "--help").split())

    assert "Default: KUBECONFIG, or .allot here if it runs, or ~/.kube/config." in text


def test_devices_are_chosen_with_the_same_options() -> None:
    """`allot status` and `allot devices` are about the same devices."""

    def shown(command: str) -> list[str]:
        lines = said(command, "--help").splitlines()
        options = ("  --node ", "  --class ", "  --pool ", "  --driver ")
        return [" ".join(line.split()) for line in lines if line.startswith(options)]

    assert shown("status") == shown("devices")
    assert len(shown("status")) == 4
