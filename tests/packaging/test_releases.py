"""A release says the same everywhere: version, changelog, Python versions, images."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import yaml

import allot
from tests.packaging.requirements import PROJECT, project_table

CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
HOSTS = {"github.com", "kubernetes.io"}
"""Hosts of other projects. allot itself has no address yet."""
_RELEASE = re.compile(r"^## (?P<version>\d+\.\d+\.\d+) \((?P<date>unreleased|\d{4}-\d\d-\d\d)\)$")


def test_version_is_in_one_place() -> None:
    project = project_table()
    stated = [
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / "src").rglob("*.py")
        if f'"{allot.__version__}"' in path.read_text(encoding="utf-8")
    ]

    assert "version" in project["dynamic"]
    assert "version" not in project
    assert stated == ["src/allot/_version.py"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", allot.__version__)


def test_images_have_the_version() -> None:
    kustomization = yaml.safe_load((PROJECT / "deploy" / "kustomization.yaml").read_text())

    assert [image["newTag"] for image in kustomization["images"]] == [allot.__version__]
    dockerfile = (PROJECT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"/allot:{allot.__version__} " in dockerfile


def test_changelog_is_in_releases() -> None:
    headings = [line for line in CHANGELOG.splitlines() if line.startswith("## ")]
    releases = [_RELEASE.match(line) for line in headings]

    assert releases
    assert all(releases), headings
    found = [(each["version"], each["date"]) for each in releases if each is not None]
    assert found[0][0] == allot.__version__
    versions = [tuple(map(int, each.split("."))) for each, _ in found]
    assert versions == sorted(set(versions), reverse=True)
    assert all(date != "unreleased" for _, date in found[1:])


def test_classifiers_name_the_python_versions_of_the_tests() -> None:
    project = project_table()
    named = {
        tuple(map(int, found.groups()))
        for each in project["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (\d+)\.(\d+)", each))
    }

    assert project["requires-python"] == ">=3.11"
    assert (3, 11) in named
    if sys.version_info[:2] not in named:
        assert sys.version_info[:2] > max(named), "an older Python than any that is named"


def test_urls_have_hosts_that_exist() -> None:
    urls = project_table().get("urls", {}).values()

    assert {urlsplit(url).hostname for url in urls} <= HOSTS


def test_type_marker_is_there() -> None:
    assert (Path(allot.__file__).parent / "py.typed").exists()
