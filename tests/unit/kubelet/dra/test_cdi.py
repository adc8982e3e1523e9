"""CDI specifications: what a container gets, and what it cannot get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from allot.kubelet.dra.cdi import CdiError, CdiSpecs, ContainerEdits


def spec(kind: str = "v.com/gpu", edits: Any = None, **devices: Any) -> str:
    listed = [{"name": name, "containerEdits": each} for name, each in devices.items()]
    document = {"cdiVersion": "0.6.0", "kind": kind, "devices": listed}
    return json.dumps(document | ({"containerEdits": edits} if edits else {}))


def test_edits_of_devices_and_of_their_file_once(tmp_path: Path) -> None:
    mount = {"hostPath": "/h", "containerPath": "/c"}
    (tmp_path / "a.json").write_text(
        spec(
            edits={"env": ["ALL=1"], "hooks": [{"hookName": "createContainer", "path": "/bin/x"}]},
            a={"env": ["A=1"], "mounts": [mount]},
            b={"deviceNodes": [{"path": "/dev/b"}]},
        )
    )

    found = CdiSpecs(tmp_path).edits(["v.com/gpu=a", "v.com/gpu=b", "v.com/gpu=a"])

    assert found == ContainerEdits(
        ("ALL=1", "A=1"), ("/h:/c",), ("/dev/b",), ("createContainer:/bin/x",)
    )


def test_yaml_and_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(spec(a={"env": ["A=1"]}))
    specs = CdiSpecs(tmp_path)
    assert specs.edits(["v.com/gpu=a"]).env == ("A=1",)

    path.write_text(spec(a={"env": ["A=two"]}))
    assert specs.edits(["v.com/gpu=a"]).env == ("A=two",)
    path.unlink()
    with pytest.raises(CdiError):
        specs.edits(["v.com/gpu=a"])


@pytest.mark.parametrize(
    ("files", "device", "problem"),
    [
        pytest.param({}, "v.com/gpu=a", "unresolvable CDI devices v.com/gpu=a", id="missing"),
        pytest.param({"a.json": spec(a={})}, "v.com/gpu=b", "unresolvable", id="other-name"),
        pytest.param(
            {"a.json": spec("w.com/gpu", a={})}, "v.com/gpu=a", "unresol", id="other-kind"
        ),
        pytest.param(
            {"a.json": spec(a={}), "b.json": spec(a={})}, "v.com/gpu=a", "unresol", id="ambiguous"
        ),
        pytest.param({"a.json": spec(a={})}, "gpu-a", "unresolvable CDI devices gpu-a", id="name"),
        pytest.param({"a.json": "{"}, "v.com/gpu=a", "a.json: not a CDI spec", id="broken"),
        pytest.param({".a.json": spec(a={})}, "v.com/gpu=a", "unresolvable", id="hidden"),
    ],
)
def test_devices_that_cannot_be_had(
    files: dict[str, str], device: str, problem: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)

    with pytest.raises(CdiError, match=problem):
        CdiSpecs(tmp_path).edits([device])


def test_nothing_is_asked_for(tmp_path: Path) -> None:
    assert CdiSpecs(tmp_path / "missing").edits([]) == ContainerEdits()
