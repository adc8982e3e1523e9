"""The program from outside: output, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]

GOOD = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


DEVICES = ("-f", "examples/base/devices.yaml")


def run(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `allot`."""
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(
        [sys.executable, "-c", "from allot.cli.main import run; run()", *arguments],
        input=data,
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=150,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_help_and_version() -> None:
    code, output, _ = run()
    assert code == 0
    assert "Exit codes: 0 all is well" in output
    assert run("--help")[1] == output
    assert run("version") == (0, "allot 0.1.0, resource.k8s.io as of Kubernetes 1.38\n", "")


def test_every_command_is_listed_but_loaded_only_when_called() -> None:
    listing = run("--help")[1]
    for command in (
        "allocate",
        "apiserver",
        "binding-controller",
        "cel",
        "lint",
        "scheduler",
        "version",
    ):
        assert f"\n  {command} " in listing

    modules = {name for name in modules_of("--help") if name.startswith("allot.")}
    assert modules == {
        "allot._lazy",
        "allot._version",
        "allot.cli",
        "allot.cli.command_list",
        "allot.cli.errors",
        "allot.cli.main",
        "allot.cli.pages",
        "allot.cli.program",
    }


def modules_of(*arguments: str) -> list[str]:
    """The modules that a command imports. They are counted: on a slow machine they are as many."""
    program = (
        "import atexit, os, sys; from allot.cli.main import run;"
        "atexit.register(lambda: os.write(2, '\\n'.join(sys.modules).encode())); run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, check=True, cwd=ROOT
    )
    return done.stderr.decode().splitlines()


@pytest.mark.parametrize(
    ("arguments", "limit", "unneeded"),
    [
        (
            ("status", "-f", "examples/base/devices.yaml"),
            460,
            {"allot.client.client", "asyncio", "prometheus_client", "ssl", "uvicorn"},
        ),
        (
            (
                *("explain", "claim/shared-gpu", "-f", "examples/base/devices.yaml"),
                *("-f", "examples/base/claims.yaml"),
            ),
            612,
            {
                "allot.client.client",
                "allot.client.http",
                "allot.client.informer",
                "asyncio.events",
                "importlib.metadata",
                "prometheus_client",
                "urllib.request",
                "uvicorn",
            },
        ),
    ],
)
def test_small_questions_import_little(
    arguments: tuple[str, ...], limit: int, unneeded: set[str]
) -> None:
    """Almost all of their time is spent importing; bench/import_time has the seconds."""
    modules = modules_of(*arguments)

    assert not unneeded & set(modules)
    assert len(modules) < limit


HEAVY = ("asyncio", "cryptography", "grpc", "prometheus_client", "rich", "yaml")
LIGHT_COMMANDS = ("explain", "status", "lint", "cel", "allocate", "validate", "down", "completion")


@pytest.mark.parametrize("command", [(), *((each,) for each in LIGHT_COMMANDS)])
def test_help_imports_little(command: tuple[str, ...]) -> None:
    modules = modules_of(*command, "--help")

    assert not set(HEAVY) & set(modules)
    assert len(modules) < 250


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    code, output, _ = run("completion", shell)

    assert code == 0
    assert "_ALLOT_COMPLETE" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["lint"], "nothing to check: name files with -f FILE"),
        (["lint", "-f", "nope.yaml"], "nope.yaml: No such file or directory"),
        (["lint", "-f", "-", "--feature-gates", "X=1"], "unknown feature gate 'X'"),
        (["lint", "-o", "xml", "-f", "-"], "'xml' is not one of 'text', 'json', 'yaml', 'sarif'"),
        (["lint", "-f", "-", "--ignore", "mising-class"], 'did you mean "missing-class"?'),
        (["lint", "-f", "-", "--dry-run"], "--dry-run goes with --fix"),
        (["lint", "-f", "-", "--fix"], "add --dry-run for standard input"),
        (["lint", "-f", "-", "--kubeconfig", "nope"], "nope"),
        (["validate"], "add --jsonl"),
        (["cel"], "which expression?"),
        (["cel", "true"], "no kubeconfig at"),
        (["cel", "true", "-f", "x", "--context", "c"], "files or a cluster, not both"),
        (["cel", "true", *DEVICES, "--pool", "serve-3"], "no pool serve-3 in these files; did you"),
        (["cel", "true", *DEVICES, "--device", "x"], "no device in these files is of that"),
        (
            ["cel", "true", *DEVICES, "--driver", "gpu.exmaple.com"],
            "no ResourceSlice is of driver gpu.exmaple.com; did you mean gpu.example.com?",
        ),
        (["cel", "true", "-f", "examples/README.md"], "YAML: mapping values are not allowed"),
        (["validate", "--jsonl", "nope.jsonl"], "nope.jsonl"),
    ],
)
def test_mistakes_get_one_line(arguments: list[str], message: str) -> None:
    code, output, errors = run(*arguments)

    assert code == 2
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors


MODEL = 'device.attributes["gpu.example.com"].model == "hopper"'


def test_cel_on_devices() -> None:
    code, output, _ = run("cel", MODEL, *DEVICES)

    lines = [line.split() for line in output.splitlines()]
    assert code == 0
    assert lines[0] == ["DRIVER", "POOL", "DEVICE", "VALUE", "TYPE", "COST", "ERROR"]
    assert [line[3] for line in lines[1:4]] == ["true", "true", "false"]
    assert output.splitlines()[4].startswith("estimated cost ")


def test_cel_breaks_no_line_that_another_program_reads() -> None:
    missing = 'device.attributes["gpu.example.com"].an_attribute_that_no_device_has == "hopper"'
    _, output, _ = run("cel", missing, *DEVICES)

    *rows, summary = output.splitlines()[1:]
    assert len(rows) == len(run("cel", "true", *DEVICES)[1].splitlines()) - 2
    assert all("no such key: an_attribute_that_no_device_has" in row for row in rows)
    assert summary.startswith("estimated cost ")


def test_cel_groups_of_a_derived_attribute() -> None:
    numa = 'device.attributes["gpu.example.com"].numaNode'

    code, output, _ = run("cel", numa, "--derived", *DEVICES)

    assert code == 0
    assert output.splitlines()[-3:] == [
        "2 groups:",
        "  0: gpu.example.com/server-1/gpu-0, gpu.example.com/server-2/gpu-0",
        "  1: gpu.example.com/server-1/gpu-1",
    ]


@pytest.mark.parametrize("output_format", ["json", "yaml"])
def test_cel_for_machines(output_format: str) -> None:
    missing = 'device.attributes["gpu.example.com"].nope == 1'

    code, output, _ = run("cel", missing, "--pool", "server-2", "-o", output_format, *DEVICES)

    document = yaml.safe_load(output)
    assert code == 1
    (device,) = document["devices"]
    assert device["error"].startswith("no such key: nope")
    assert (device["pool"], device["device"]) == ("server-2", "gpu-0")


def test_cel_that_does_not_compile() -> None:
    code, output, errors = run("cel", "device.nope", *DEVICES)

    assert (code, output) == (1, "")
    assert errors.splitlines() == [
        "error: compilation failed: ERROR: <input>:1:7: undefined field 'nope'",
        " | device.nope",
        " | ......^",
    ]


def test_cel_says_what_is_too_complex_and_what_to_write() -> None:
    part = 'device.attributes["gpu.example.com"].model.split("-")[0].lowerAscii()'

    code, output, _ = run("cel", part, "--derived", *DEVICES)

    assert code == 1
    text = " ".join(output.split())
    assert "estimated cost unbounded" in text
    assert "error: too complex: the estimated cost is unbounded, the limit is 1,000,000" in text
    assert "on the whole attribute" in text
    document = json.loads(run("cel", part, "--derived", "-o", "json", *DEVICES)[1])
    assert document["problem"].startswith("too complex")


def test_cel_answers_line_by_line() -> None:
    device = {"driver": "d.e", "device": {"attributes": {"a": {"int": 1}}}}
    vector = {"expression": "device.attributes['d.e'].a == 1", "device": device, "env": "new"}

    code, output, _ = run("cel", "--jsonl", stdin=json.dumps(vector) + "\n[]\n{}\n")

    good, not_an_object, empty = map(json.loads, output.splitlines())
    assert code == 1
    assert (good["value"], good["type"]) == (True, "bool")
    assert "not a vector" in not_an_object["error"]
    assert "not a vector" in empty["error"]


def test_validate_answers_line_by_line() -> None:
    lines = [
        '{"op":"parse","s":"1.5Gi"}',
        "not json",
        '{"op":"parse","s":"1.2.3"}',
        '{"op":"parse","s":"1"}',
        "",
        '{"op":"add","a":"1","b":"1"}',
        "{}",
        '{"operation":"create","gvk":"x/v1/Y","object":{}}',
    ]

    code, output, _ = run("validate", "--jsonl", stdin="\n".join(lines))

    answers = [json.loads(line) for line in output.splitlines()]
    assert code == 1
    assert answers[0]["canonical"] == "1536Mi"
    assert "not a vector" in answers[1]["error"]
    assert answers[2]["major"] == 1
    assert answers[3]["parseError"] == "No Major.Minor.Patch elements found", "versions go on"
    assert answers[4]["canonical"] == "2"
    assert "not a vector" in answers[5]["error"]
    assert "no kind" in answers[6]["error"]
    forced = run("validate", "--jsonl", "--texts", "semver", stdin='{"op":"parse","s":"1"}')[1]
    assert "parseError" in forced


def test_validate_takes_and_says_what_texts_are() -> None:
    """A pipe cannot be read ahead: each line says what its texts are, or the command does."""
    told = '{"op":"parse","s":"1","texts":"semver"}\n{"op":"parse","s":"1.2.3","texts":"quantity"}'
    wrong = '{"op":"parse","s":"1","texts":"number"}'

    said = subprocess.run(
        [sys.executable, "-c", "from allot.cli.main import run; run()", "validate", "--jsonl"],
        input=f'{told}\n{wrong}\n{{"op":"parse","s":"1"}}\n{{"op":"parse","s":"1.2.3"}}\n',
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    first, second, third, fourth, fifth = map(json.loads, said.stdout.splitlines())
    assert first["parseError"] == "No Major.Minor.Patch elements found"
    assert "quantities must match" in second["error"]
    assert third["error"] == "not a vector: texts 'number' is not quantity or semver"
    assert (fourth["canonical"], fifth["major"]) == ("1", 1)
    notes = [line.split(";")[0] for line in said.stderr.splitlines()]
    assert notes == ["note: reading the texts as quantity", "note: reading the texts as semver"]


BAD_INPUT = {
    "truncated-json": b'{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","spec":{"devi',
    "tabs": b"apiVersion: v1\nkind: Pod\nspec:\n\tcontainers: []\n",
    "ten-megabytes-json": b'{"kind":"ResourceClaim","x":"' + b"x" * 10_000_000 + b'"}',
    "ten-megabytes-yaml": b"kind: ResourceClaim\nx: |\n" + b"  xxxxxxxxx\n" * 1_000_000,
    "deep-json": b'{"a":' * 200_000,
    "deep-yaml": b"a: " + b"{a: " * 100_000,
    "deep-valid-json": b'{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","spec":'
    + b'{"a":' * 900 + b"1" + b"}" * 901,
    "huge-integer": GOOD.encode() + b"        count: " + b"9" * 100_000 + b"\n",
    "huge-float": GOOD.encode() + b"        count: 1e999999\n",
    "huge-quantity": GOOD.encode() + b"        capacity: {requests: {a: 1e999999999}}\n",
    "binary": bytes(range(256)) * 100,
    "many-documents": b"---\n{}\n" * 2_000,
}  # fmt: skip
READABLE = {"deep-valid-json", "many-documents"}
"""They are objects; what is in them is wrong."""


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_gets_a_clear_error(name: str) -> None:
    code, output, errors = run("lint", "-f", "-", stdin=BAD_INPUT[name])

    assert code == (1 if name in READABLE else 2)
    assert "error" in output
    assert "Traceback" not in output + errors
    assert max(map(len, output.splitlines())) < 1000, "a line is too long to read"


def test_a_closed_output_pipe() -> None:
    """As in `allot lint ... | head`."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from allot.cli.main import run; run()", "validate", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()

    _, errors = process.communicate(b'{"op":"neg","a":"1"}\n' * 10, timeout=60)

    assert errors == b""
    assert process.returncode == 1


def test_a_gate_that_kubernetes_has_locked_is_switched_off_with_a_warning() -> None:
    code, _, errors = run("lint", "-", "--feature-gates=DRAPrioritizedList=false", stdin="")

    assert code == 0
    assert errors == (
        "warning: Kubernetes v1.38 cannot switch off feature gate DRAPrioritizedList\n"
    )
