"""Escape sequences, line breaks, bidirectional and zero-width characters of objects never reach the terminal."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner
from rich.text import Text

from allot.cli.components import PrintableFormatter
from allot.cli.console import PrintableConsole, printable_text
from allot.cli.echo import echo_text
from allot.cli.main import allot
from allot.cli.program import run_program
from allot.cli.tables import Column, notes, print_blocks, table
from allot.testing.manifests import a_claim_manifest, a_pod_manifest, a_request_manifest

PLANTED: Final = "\x1b]0;owned\x07\x1b[2J\r\n\t\x9b31m\u202e\u2066\u200b\ufeff\x00"
DRIVER: Final = f"gpu{PLANTED}.example.com"
GROUP: Final = "resource.k8s.io/v1"


def planted(name: str) -> str:
    return f"{name}{PLANTED}"


def planted_claim(name: str, *, is_held: bool, count: int = 1) -> dict[str, Any]:
    request = a_request_manifest("r", planted("class"), count=count)
    if not is_held:
        return a_claim_manifest(request, name=name)
    result = {"request": "r", "driver": DRIVER, "pool": planted("pool"), "device": planted("a")}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": planted("user"), "uid": "u"}],
    }
    return a_claim_manifest(request, name=name, status=status)


def pending_pod(name: str, claim: str, **status: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "d"}]}}
    return a_pod_manifest(
        name,
        claims={"d": claim},
        containers=[container],
        schedulerName="default-scheduler",
        phase="Pending",
        status=status,
    )


def objects() -> Iterator[dict[str, Any]]:
    capacity = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": planted("node")},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    yield {
        "apiVersion": GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": planted("slice")},
        "spec": {
            "driver": DRIVER,
            "nodeName": planted("node"),
            "pool": {"name": planted("pool"), "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": planted("a"), "attributes": {"model": {"string": planted("H100")}}},
                {
                    "name": planted("b"),
                    "taints": [{"key": "k", "value": planted("v"), "effect": "NoSchedule"}],
                },
            ],
        },
    }
    selectors = [{"cel": {"expression": "device.driver.startsWith('gpu')"}}]
    yield {
        "apiVersion": GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": planted("class")},
        "spec": {"selectors": selectors},
    }
    yield planted_claim(planted("held"), is_held=True)
    yield planted_claim(planted("pending"), is_held=False, count=2)
    yield pending_pod(planted("user"), planted("held"))
    message = {"type": "PodScheduled", "status": "False", "message": planted("no node")}
    yield pending_pod("waiting", planted("pending"), conditions=[message])


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all(objects()))
    return str(path)


COMMANDS: Final = {
    "devices": ("devices", "-f", "DUMP"),
    "devices-in-40-columns": ("devices", "-f", "DUMP", "--width", "40"),
    "status": ("status", "-f", "DUMP", "--by", "pool", "--by", "class", "--by", "node"),
    "explain-pod": ("explain", "pod/waiting", "-f", "DUMP", "--all"),
    "explain-claim": ("explain", f"claim/{planted('held')}", "-f", "DUMP"),
    "explain-pending": ("explain", "--all-pending", "-f", "DUMP"),
    "fit": ("fit", "-f", "DUMP", "--cluster", "DUMP"),
    "what-if": ("what-if", "--drain", planted("node"), "--cluster", "DUMP", "--all"),
    "simulate": ("simulate", "-f", "DUMP"),
    "plan": ("plan", "-f", "DUMP", "--cluster", "DUMP"),
    "lint": ("lint", "-f", "DUMP"),
    "cel": ("cel", 'device.driver.startsWith("gpu")', "-f", "DUMP"),
    "cel-error": ("cel", f'device.attributes["{DRIVER}"].model == "H100"', "-f", "DUMP"),
    "cel-derived": ("cel", "--derived", "device.name", "-f", "DUMP"),
}


def is_clean(output: str) -> bool:
    return output.replace("\n", "").isprintable()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_commands(command: tuple[str, ...], dump: str) -> None:
    arguments = [dump if each == "DUMP" else each for each in command]

    result = CliRunner().invoke(allot, arguments, standalone_mode=False)

    assert is_clean(result.output), repr(result.output)
    assert "\\x1b" in result.output
    lines = result.output.splitlines()
    assert not any(line.startswith(("\\t", "\\x9b")) for line in lines)  # a line break was obeyed


def test_documents_have_the_names_as_they_are(dump: str) -> None:
    result = CliRunner().invoke(allot, ["devices", "-f", dump, "-o", "json"])

    names = [row["device"] for row in json.loads(result.output)["devices"]]
    assert names == [planted("a"), planted("b")]


def test_error_messages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], dump: str
) -> None:
    command = ["allot", "explain", f"pod/{planted('missing')}", "-f", dump]
    monkeypatch.setattr("sys.argv", command)

    assert run_program() != 0

    said = capsys.readouterr().err
    assert is_clean(said), repr(said)
    assert said.startswith("error: ")


def test_cells_are_one_line_and_as_wide_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("NAME", lambda row: row), Column("STYLED", lambda row: Text(row, "red")))

    print_blocks([table(columns, ["a\x1bb\nc", "plain"]), *notes(["x\ry\nz"])], None)

    assert capsys.readouterr().out.splitlines() == [
        "NAME       STYLED",
        "a\\x1bb\\nc  a\\x1bb\\nc",
        "plain      plain",
        "note: x\\ry\\nz",
    ]


def test_styles_stay_where_they_are() -> None:
    text = Text.assemble(("a\x1b", "red"), "-", ("b\u200bc\n", "blue"), "d")

    shown = printable_text(text)

    assert shown.plain == "a\\x1b-b\\u200bc\nd"
    styled = [(shown.plain[start:end], style) for start, end, style in shown.spans]
    assert styled == [("a\\x1b", "red"), ("b\\u200bc\n", "blue")]
    assert printable_text(Text("plain\n")).plain == "plain\n"
    assert printable_text(text, is_line=True).plain == "a\\x1b-b\\u200bc\\nd"


def test_strings_markup_and_nested_texts() -> None:
    console = PrintableConsole(width=80)

    assert list(console.lines("a[bold]\x1bb[/]")) == ["a\\x1bb"]
    assert list(console.lines(Text("a\u202e\nb"))) == ["a\\u202e", "b"]


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    echo_text("a\x1b\nb\u200b", err=True)

    assert capsys.readouterr().err == "a\\x1b\nb\\u200b\n"


def test_log_lines() -> None:
    formatter = PrintableFormatter("%(levelname)s %(message)s")
    try:
        raise ValueError("a\x1b\u200bb")
    except ValueError:
        trace = sys.exc_info()
    record = logging.LogRecord("x", logging.INFO, "f", 1, "pod %s", ("p\x1b\nq",), trace)

    first, second, *_, last = formatter.format(record).splitlines()

    assert first == "INFO pod p\\x1b\\nq"
    assert second.startswith("Traceback")
    assert last == "ValueError: a\\x1b\\u200bb"
