"""`allot hardware`: profiles are listed, shown and rendered, and clusters captured as profiles."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from allot.cli.main import allot as program
from allot.driver.loading import load_hardware, profiles


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(program, ["hardware", *arguments], input=stdin, standalone_mode=False)


def test_list() -> None:
    done = run("list", "--width", "80")

    assert done.exception is None
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "NODES", "DEVICES", "CONTENT"]
    assert all(len(line) <= 80 for line in lines)
    named = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    assert named == profiles()
    found = json.loads(run("list", "-o", "json").stdout)
    assert [each["name"] for each in found] == profiles()
    assert found[profiles().index("h100-server")]["devices"] == {
        "dra.net": 16,
        "gpu.nvidia.com": 16,
    }


def test_show() -> None:
    text = run("show", "h100-mig", "--width", "100").stdout

    assert text.startswith("h100-mig: A server with 8 H100 GPUs")
    assert "as published by dra-driver-nvidia-gpu" in text
    assert "1 node: h100-mig-0" in text
    assert (
        "gpu.nvidia.com  of each node      1      208             8  gpu-0 … gpu-7-mig-7g80gb-0-0"
        in text
    )
    assert "  consumes gpu-0-counter-set" in text
    assert "device classes: gpu.nvidia.com, mig.nvidia.com" in text
    assert "matchAttribute: gpu.nvidia.com/parentUUID" in text


@pytest.mark.parametrize("name", profiles())
def test_every_profile_is_shown(name: str) -> None:
    done = run("show", name)

    assert done.exception is None
    details = yaml.safe_load(run("show", name, "-o", "yaml").stdout)
    assert details["exampleClaim"]["devices"]["requests"]
    assert len(details["pools"]) == len(load_hardware(name).sources)


def test_render_with_the_example() -> None:
    done = run("render", "gb200-rack=2", "--example")

    kinds = Counter(each["kind"] for each in yaml.safe_load_all(done.stdout))
    assert kinds == {"Node": 2, "ResourceSlice": 7, "DeviceClass": 4, "ResourceClaim": 1, "Pod": 1}
    as_json = json.loads(run("render", "gb200-rack=2", "-o", "json").stdout)
    assert (as_json["kind"], len(as_json["items"])) == ("List", 13)


def test_the_example_is_scheduled(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(run("render", "h100-server=1", "--example").stdout)

    done = CliRunner().invoke(program, ["simulate", "-f", str(file)], standalone_mode=False)

    assert done.return_value == 0
    assert "gpu=gpu-0, nic=pci-0000-18-00-0" in done.stdout


def test_capture_and_render(tmp_path: Path) -> None:
    objects, profile = tmp_path / "objects.yaml", tmp_path / "captured.yaml"
    objects.write_text(run("render", "h100-server=2").stdout)

    done = run("capture", "-f", str(objects), "-o", str(profile))

    assert done.exception is None
    assert done.stderr == "2 nodes, 4 pools, 32 devices\n"

    def slices(text: str) -> dict[tuple[str, str], object]:
        found = [each for each in yaml.safe_load_all(text) if each["kind"] == "ResourceSlice"]
        return {
            (each["spec"]["driver"], each["spec"]["pool"]["name"]): each["spec"] for each in found
        }

    assert slices(run("render", str(profile)).stdout) == slices(objects.read_text())


def test_capture_one_node_of_one_driver(tmp_path: Path) -> None:
    objects, profile = tmp_path / "objects.yaml", tmp_path / "node.yaml"
    objects.write_text(run("render", "h100-server=3").stdout)

    run(
        "capture", "-f", str(objects), "--node", "h100-server-1", "--driver", "gpu.nvidia.com",
        "--name", "mine", "-o", str(profile),
    )  # fmt: skip

    found = load_hardware(f"{profile}=2")
    assert found.name == "mine"
    assert [node.name for node in found.nodes] == ["h100-server-1-0", "h100-server-1-1"]
    assert {key.driver for key in found.sources} == {"gpu.nvidia.com"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("show", "h100-servr"), "did you mean h100-server?", id="typo"),
        pytest.param(("render", "FILE", "--example"), "FILE has no exampleClaim", id="no-example"),
        pytest.param(("capture", "-f", "EMPTY"), "nothing to capture", id="nothing"),
        pytest.param(
            ("capture", "-f", "OBJECTS", "--node", "fabricc-0"),
            "no node fabricc-0 found; did you mean fabric-0",
            id="node",
        ),
        pytest.param(
            ("capture", "-f", "OBJECTS", "--driver", "fabrik.example.com"),
            "no driver fabrik.example.com found; did you mean fabric.example.com?",
            id="driver",
        ),
        pytest.param(("capture", "-f", "OBJECTS", "-o", "/no/such/x"), "/no/such/x: No such", id="output"),
    ],
)  # fmt: skip
def test_what_cannot_be(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    files = {
        "FILE": "name: rack\nnodes: {}\n",
        "EMPTY": "apiVersion: v1\nkind: List\nitems: []\n",
        "OBJECTS": run("render", "fabric").stdout,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        arguments = tuple(each.replace(name, str(tmp_path / name)) for each in arguments)
        message = message.replace(name, str(tmp_path / name))

    done = run(*arguments)

    assert message in str(done.exception)
