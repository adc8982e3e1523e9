"""`allot lint` from outside: what it prints, what it changes, and how it exits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from allot.cli.errors import CommandError
from allot.cli.main import allot

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
CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
"""


class Shell:
    """Runs `allot lint` in a directory."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys

    def lint(self, *arguments: str) -> tuple[int, str]:
        """Exit code and standard output."""
        result = allot.main(["lint", *arguments], prog_name="allot", standalone_mode=False)
        assert isinstance(result, int)
        return result, self._capsys.readouterr().out

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def test_findings_for_people(shell: Shell) -> None:
    shell.write("c.yaml", GOOD + "        allocationMode: Some\n        cuont: 2\n")

    code, output = shell.lint("-f", "c.yaml")

    assert code == 1
    assert (
        output
        == """\
c.yaml:10:25: error: ResourceClaim/c [field-unsupported]
    spec.devices.requests[0].exactly.allocationMode:
    Unsupported value: "Some": supported values: "All", "ExactCount"
c.yaml:11:16: error: ResourceClaim/c [unknown-field]
    spec.devices.requests[0].exactly.cuont:
    unknown field "cuont"; did you mean "count"?
    --fix: rename spec.devices.requests[0].exactly.cuont to count

1 object checked, 2 errors
"""
    )


def test_lines_fit_on_80_columns(shell: Shell) -> None:
    shell.write("c.yaml", GOOD + "        x: 1\n" + "---\n" + CLASS.replace("spec", "sp"))

    _, output = shell.lint("c.yaml")

    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b" not in output


@pytest.mark.parametrize("output_format", ["json", "yaml"])
def test_findings_for_programs(shell: Shell, output_format: str) -> None:
    shell.write("c.yaml", GOOD.replace("name: c", "name: C"))

    code, output = shell.lint("-o", output_format, "c.yaml")

    report = yaml.safe_load(output)
    assert code == 1
    assert (report["checked"], report["errors"], report["warnings"]) == (1, 1, 0)
    (finding,) = report["findings"]
    assert (finding["source"], finding["line"], finding["column"]) == ("c.yaml", 3, 18)
    assert (finding["rule"], finding["severity"]) == ("field-invalid", "error")
    assert (finding["object"], finding["field"]) == ("ResourceClaim/C", "metadata.name")


def test_sarif(shell: Shell) -> None:
    shell.write("sub dir/c.yaml", GOOD.replace("name: c", "name: C"))

    code, output = shell.lint("-o", "sarif", "sub dir")

    (run,) = json.loads(output)["runs"]
    (result,) = run["results"]
    assert code == 1
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "sub%20dir/c.yaml"
    assert location["region"] == {"startLine": 3, "startColumn": 18}


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        pytest.param(GOOD, [], 0, id="clean"),
        pytest.param(GOOD.replace("name: c", "name: C"), [], 1, id="error"),
        pytest.param(GOOD + "        count: 33\n", [], 1, id="warning"),
        pytest.param(GOOD + "        count: 33\n", ["--fail-on=error"], 0, id="warnings-allowed"),
        pytest.param(
            GOOD + "        count: 33\n", ["--ignore=too-many-devices"], 0, id="rule-ignored"
        ),
        pytest.param(GOOD + "\t- x\n", [], 2, id="unreadable"),
        pytest.param(GOOD + "---\nno object\n", [], 2, id="not-an-object"),
    ],
)
def test_exit_codes(shell: Shell, text: str, options: list[str], code: int) -> None:
    shell.write("c.yaml", text)

    assert shell.lint("c.yaml", *options)[0] == code


def test_a_missing_file_is_said_before_anything_else(shell: Shell) -> None:
    with pytest.raises(CommandError, match=r"nope\.yaml: No such file"):
        shell.lint("nope.yaml")


def test_good_manifests(shell: Shell) -> None:
    shell.write("c.yaml", GOOD)

    assert shell.lint("c.yaml") == (0, "1 object checked, no errors\n")


def test_gates(shell: Shell) -> None:
    derived = GOOD + "        derivedAttributes: [{name: a/b, expression: device.driver}]\n"
    shell.write("c.yaml", derived + "    constraints: [{matchAttribute: a/b}]\n")

    assert shell.lint("c.yaml")[0] == 0
    assert shell.lint("c.yaml", "--feature-gates=DRADerivedAttributes=false")[0] == 1


def test_namespaces_among_the_files(shell: Shell) -> None:
    admin = GOOD + "        adminAccess: true\n"
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n"
    label = "  labels: {resource.kubernetes.io/admin-access: 'true'}\n"
    shell.write("alone.yaml", admin)
    shell.write("refused.yaml", admin + namespace)
    shell.write("allowed.yaml", admin + namespace + label)

    assert "warning: ResourceClaim/c [admin-namespace]" in shell.lint("alone.yaml")[1]
    assert (
        "refused.yaml:10:22: error: ResourceClaim/c [admin-namespace]"
        in shell.lint("refused.yaml")[1]
    )
    assert shell.lint("allowed.yaml")[0] == 0


def test_points_into_expressions(shell: Shell) -> None:
    shell.write(
        "c.yaml",
        GOOD + "        selectors:\n"
        "        - cel:\n"
        "            expression: |\n"
        "              device.driver == 'a' &&\n"
        "                device.nope\n"
        '        - cel: {expression: "device.driver == \\"a\\" && device.no"}\n'
        "        - cel: {expression: '1'}\n",
    )

    code, output = shell.lint("c.yaml")

    path = "    spec.devices.requests[0].exactly.selectors"
    assert code == 1
    assert output.splitlines() == [
        "c.yaml:14:23: error: ResourceClaim/c [cel-compile]",
        f"{path}[0].cel.expression:",
        "    undefined field 'nope'",
        "                    device.nope",
        "                          ^",
        "c.yaml:15:29: error: ResourceClaim/c [cel-compile]",
        f"{path}[1].cel.expression:",
        "    undefined field 'no'",
        '    device.driver == "a" && device.no',
        "                                  ^",
        "c.yaml:16:29: error: ResourceClaim/c [cel-compile]",
        f"{path}[2].cel.expression:",
        '    Invalid value: "1": must evaluate to bool or the unknown type, not int',
        "",
        "1 object checked, 3 errors",
    ]


def test_all_files_are_checked_together(shell: Shell) -> None:
    shell.write("claims/c.yaml", GOOD.replace("gpu.example.com", "gup.example.com"))
    shell.write("classes/gpu.json", json.dumps(yaml.safe_load(CLASS)))

    for arguments in (["."], ["claims", "classes"], ["-f", "claims/c.yaml", "classes/gpu.json"]):
        code, output = shell.lint(*arguments)

        assert code == 1
        assert 'no DeviceClass "gup.example.com" in these files; did you mean' in output


def test_dumps_of_kubectl(shell: Shell) -> None:
    metadata = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    items = [
        yaml.safe_load(GOOD.replace("gpu.example.com", "gup.example.com")),
        yaml.safe_load(CLASS),
    ]
    for item in items:
        item["metadata"] |= metadata
    shell.write("dump.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    code, output = shell.lint("dump.yaml")

    assert code == 1
    assert "[missing-class]" in output
    assert "2 objects checked, 1 error\n" in output


def test_fix_changes_the_files_and_says_what_is_left(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.write("c.yaml", "# kept\n" + GOOD + "        cuont: 2\n        allocationMode: Some\n")

    allot.main(["lint", "--fix", "c.yaml"], standalone_mode=False)

    captured = capsys.readouterr()
    assert captured.err == (
        "fixed c.yaml: ResourceClaim/c: rename spec.devices.requests[0].exactly.cuont to count\n"
    )
    assert "1 object checked, 1 error" in captured.out
    assert (shell.directory / "c.yaml").read_text() == (
        "# kept\n" + GOOD + "        count: 2\n        allocationMode: Some\n"
    )


def test_fix_also_corrects_what_a_fix_reveals(shell: Shell) -> None:
    """A moved field is checked only once it is in its place."""
    right = f"{CLASS}---\n{GOOD}"
    moved = right.replace("      exactly:\n  ", "").replace("ClassName: gpu", "ClassName: gpus")
    shell.write("c.yaml", moved)

    for _ in range(2):
        assert shell.lint("--fix", "c.yaml")[0] == 0
        assert (shell.directory / "c.yaml").read_text() == right


def test_a_dry_run_shows_the_difference(shell: Shell) -> None:
    wrong = GOOD + "        cuont: 2\n"
    shell.write("c.yaml", wrong)

    code, output = shell.lint("--fix", "--dry-run", "c.yaml")

    assert code == 1
    assert "-        cuont: 2\n+        count: 2\n" in output
    assert (shell.directory / "c.yaml").read_text() == wrong
    shell.write("c.yaml", GOOD)
    assert shell.lint("--fix", "--dry-run", "c.yaml") == (0, "")


def test_old_versions_are_worth_a_warning(shell: Shell) -> None:
    shell.write("c.yaml", GOOD.replace("io/v1\n", "io/v1beta2\n"))

    code, output = shell.lint("c.yaml")

    assert code == 1
    assert "write resource.k8s.io/v1" in output.replace("\n    ", " ")


def test_the_examples_are_clean_together(
    shell: Shell,
) -> None:
    wrong_on_purpose = shutil.ignore_patterns("mistakes")
    examples = Path(__file__).parents[3] / "examples"
    shutil.copytree(examples, "examples", ignore=wrong_on_purpose)

    code, output = shell.lint("examples")

    assert (code, output.count("\n")) == (0, 1), output
