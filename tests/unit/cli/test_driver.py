"""`allot driver init`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from allot.cli.driver import driver
from allot.cli.errors import CommandError


def test_the_project_of_a_new_driver(tmp_path: Path) -> None:
    root = tmp_path / "new"
    done = CliRunner().invoke(driver, ["init", "my-gpu.example.com", "--directory", str(root)])

    assert done.exit_code == 0
    assert sorted(path.name for path in root.iterdir()) == [
        "README.md", "deployment.yaml", "manifests.yaml", "my_gpu.py", "node.yaml", "test_my_gpu.py",
    ]  # fmt: skip
    for path in root.iterdir():
        content = path.read_text()
        assert "@" not in content.replace("@check", ""), path
        if path.suffix == ".py":
            ast.parse(content)
        if path.suffix == ".yaml":
            assert all(each["kind"] for each in yaml.safe_load_all(content))
    role = next(
        each
        for each in yaml.safe_load_all((root / "deployment.yaml").read_text())
        if each["kind"] == "ClusterRole"
    )
    assert ["my-gpu.example.com"] in [rule.get("resourceNames") for rule in role["rules"]]


@pytest.mark.parametrize("name", ["gpu", "GPU.example.com", "a" * 60 + ".com", "gpu_.example.com"])
def test_names_that_drivers_cannot_have(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(driver, ["init", name, "--directory", str(tmp_path / "new")])

    assert isinstance(done.exception, CommandError)
    assert "DNS subdomain" in str(done.exception)


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "gpu.py").write_text("mine")
    done = CliRunner().invoke(driver, ["init", "gpu.example.com", "--directory", str(tmp_path)])

    assert isinstance(done.exception, CommandError)
    assert (tmp_path / "gpu.py").read_text() == "mine"
