"""Fixes in the text of a file: comments and formatting stay, and so does the meaning."""

from __future__ import annotations

import pytest

from allot import features
from allot.lint.linter import Linter
from allot.lint.manifests import parse_manifests
from allot.lint.text_edits import apply_fixes


def fixed(text: str) -> str:
    """The text with all fixes that lint proposes."""
    _, fixable = Linter(features.DEFAULTS).check_for_fixes(parse_manifests("f", text.encode()))
    wanted = [(manifest, fix) for manifest, fixes in fixable for fix in fixes]
    return apply_fixes(text, wanted).text


HEAD = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n  devices:\n    requests:\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "    - name: gpu\n"
            "      exactly:\n"
            "        deviceClassName: g\n"
            "        cuont: 2 # two of them\n",
            "    - name: gpu\n"
            "      exactly:\n"
            "        deviceClassName: g\n"
            "        count: 2 # two of them\n",
            id="typo",
        ),
        pytest.param(
            "    # a GPU\n"
            "    - name: gpu\n"
            "      # of any class\n"
            "      deviceClassName: g # this one\n"
            "      count: 2\n",
            "    # a GPU\n"
            "    - name: gpu\n"
            "      # of any class\n"
            "      exactly:\n"
            "        deviceClassName: g # this one\n"
            "        count: 2\n",
            id="moved-under-exactly",
        ),
        pytest.param(
            "    - deviceClassName: g\n      name: gpu\n      count: 2\n    - name: n\n      exactly: {deviceClassName: n}\n",
            "    - exactly:\n        deviceClassName: g\n        count: 2\n      name: gpu\n    - name: n\n      exactly: {deviceClassName: n}\n",
            id="moved-apart-and-first",
        ),
        pytest.param(
            "    - name: gpu\n"
            "      deviceClassName: g\n"
            "      selectors:\n"
            "      - cel:\n"
            "          expression: |\n"
            "            device.driver == \"d\" &&\n"
            "\n"
            "              true\n"
            "      # how many\n"
            "      count: 2\n",
            "    - name: gpu\n"
            "      exactly:\n"
            "        deviceClassName: g\n"
            "        selectors:\n"
            "        - cel:\n"
            "            expression: |\n"
            "              device.driver == \"d\" &&\n"
            "\n"
            "                true\n"
            "        # how many\n"
            "        count: 2\n",
            id="moved-with-a-block-of-text",
        ),
        pytest.param(
            "    - {name: gpu, deviceClassName: g, count: 2}\n",
            "    - {name: gpu, exactly: {deviceClassName: g, count: 2}}\n",
            id="moved-in-one-line",
        ),
        pytest.param(
            "    - {deviceClassName: g, name: gpu, count: 2}\n",
            "    - {deviceClassName: g, name: gpu, count: 2}\n",
            id="not-side-by-side",
        ),
    ],
)  # fmt: skip
def test_fix(before: str, after: str) -> None:
    assert fixed(HEAD + before) == HEAD + after


def test_devices_of_old_slices() -> None:
    head = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n"
        "  driver: d.example.com\n  allNodes: true\n"
        "  pool: {name: p, generation: 1, resourceSliceCount: 1}\n  devices:\n"
    )
    before = (
        "  - name: a\n    basic:\n      # what it is\n      attributes:\n        model: {string: x}\n"
        "  - name: b\n    basic: {attributes: {model: {string: y}}}\n"
    )
    after = (
        "  - name: a\n    # what it is\n    attributes:\n      model: {string: x}\n"
        "  - name: b\n    attributes: {model: {string: y}}\n"
    )

    assert fixed(head + before) == head + after


def test_several_documents_and_quoted_names() -> None:
    claim = HEAD + "    - name: gpu\n      exactly: {deviceClassName: 'gup.example.com'}\n"
    class_ = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\nspec: {}\n"
    other = '---\n# kept\n{"a": 1}\n'

    text = fixed(claim + class_ + "---\n" + claim.replace("'", '"') + other)

    assert text.count("deviceClassName: 'gpu.example.com'") == 1
    assert text.count('deviceClassName: "gpu.example.com"') == 1
    assert text.endswith(other)


def test_items_of_a_list() -> None:
    text = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- apiVersion: resource.k8s.io/v1\n  kind: ResourceClaim\n  metadata: {name: c}\n  spec:\n"
        "    devices:\n      requests:\n      - name: gpu\n        deviceClassName: g\n"
    )

    assert fixed(text).endswith("- name: gpu\n        exactly:\n          deviceClassName: g\n")


def test_json_stays_json() -> None:
    text = (
        '{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},\n'
        ' "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "g"}]}}}\n'
    )

    assert '{"name": "r", "exactly": {"deviceClassName": "g"}}' in fixed(text)


def test_aliases_are_changed_where_they_are_written() -> None:
    anchored = HEAD + "    - &r {name: gpu, exactly: {deviceClassName: g, cuont: 2}}\n    - *r\n"

    assert fixed(anchored) == anchored.replace("cuont", "count")


def test_a_file_without_a_line_break_at_its_end() -> None:
    assert fixed(f"{HEAD}    - name: g\n      deviceClassName: g") == (
        f"{HEAD}    - name: g\n      exactly:\n        deviceClassName: g"
    )


def test_what_cannot_be_changed_safely_is_left() -> None:
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n"
        "  devices:\n  - name: a\n    basic: # would have no place\n      attributes: {}\n"
    )

    assert fixed(text) == text


def test_line_ends_stay() -> None:
    text = (HEAD + "    - name: g\n      exactly: {deviceClassName: g}\n").replace("\n", "\r\n")
    typo = text.replace("deviceClassName", "deviceClassname")

    assert fixed(typo) == text


def test_numbered_names_are_not_corrected() -> None:
    claim = HEAD + "    - name: gpu\n      exactly: {deviceClassName: gpu-2}\n"
    class_ = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu-1}\nspec: {}\n"

    assert fixed(claim + class_) == claim + class_
