from __future__ import annotations

from pathlib import Path

import pytest

from allot.cli.errors import CommandError
from allot.cli.manifests import read_manifests
from allot.lint.manifests import (
    MAX_OBJECT_SIZE,
    Manifest,
    Unreadable,
    parse_manifests,
    path_parts,
)


def parsed(text: str | bytes) -> list[Manifest | Unreadable]:
    return list(parse_manifests("f", text if isinstance(text, bytes) else text.encode()))


def problem(text: str | bytes) -> tuple[int, str]:
    (unreadable,) = parsed(text)
    assert isinstance(unreadable, Unreadable)
    return unreadable.line, unreadable.problem


def test_several_documents_know_their_lines() -> None:
    text = "# first\nkind: A\n---\n# nothing\n---\nkind: B\nmetadata:\n  name: b\n--- {kind: C}\n"

    manifests = parsed(text)

    assert [m.kind for m in manifests if isinstance(m, Manifest)] == ["A", "B", "C"]
    second = manifests[1]
    assert isinstance(second, Manifest)
    assert second.locate("metadata.name").line == 8
    assert second.locate("metadata.labels[a.b/c]").line == 7, "the nearest thing that is there"


def test_one_bad_document_spoils_no_other() -> None:
    good, bad, also_good = parsed("kind: A\n---\na: [\n---\nkind: B\n")

    assert isinstance(good, Manifest)
    assert isinstance(bad, Unreadable)
    assert isinstance(also_good, Manifest)


def test_directives_are_no_document() -> None:
    assert len(parsed("%YAML 1.1\n---\nkind: A\n")) == 1


def test_lists_are_taken_apart() -> None:
    text = '{"kind":"ResourceClaimList","apiVersion":"resource.k8s.io/v1","items":[\n{"metadata":{"name":"a"}},\n7]}'

    manifest, bad = parsed(text)

    assert isinstance(manifest, Manifest)
    assert (manifest.kind, manifest.api_version, manifest.name) == (
        "ResourceClaim", "resource.k8s.io/v1", "a",
    )  # fmt: skip
    assert manifest.place.line == 2
    assert isinstance(bad, Unreadable)
    assert bad.problem == "items[1] is not an object"


def test_json_problems_have_a_place() -> None:
    assert problem('{"a": 1,\n  "b": }') == (2, "JSON: malformed: invalid character (byte 16)")
    assert problem('{"a": [1, 2') == (1, "JSON: input data was truncated")
    assert problem("[" * 100_000) == (1, "JSON: nested too deeply")


def test_other_problems() -> None:
    assert problem(b"a: \xff\nb: c") == (1, "not UTF-8 text")
    assert problem("just text") == (1, "not an object with apiVersion and kind")


def test_too_large() -> None:
    big = "kind: A\ndata: " + "x" * (MAX_OBJECT_SIZE + 1)

    assert problem(big)[1] == "document has 3.0 MiB, and an object may have 3 MiB at most"
    json_text = '{"kind":"A","data":"' + "x" * (MAX_OBJECT_SIZE + 1) + '"}'
    assert "3 MiB at most" in problem(json_text)[1]


def test_directories_and_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: B")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.json").write_text('{"kind":"A"}')
    (tmp_path / "notes.txt").write_text("not: this")

    manifests = list(read_manifests([str(tmp_path), str(tmp_path / "b.yaml")]))

    assert [m.kind for m in manifests if isinstance(m, Manifest)] == ["B", "A"]


def test_hidden_files_are_read_only_if_named(tmp_path: Path) -> None:
    hidden = tmp_path / ".allot" / "state"
    hidden.mkdir(parents=True)
    (hidden / "up.json").write_text('{"pid":1}')
    (tmp_path / ".ci.yaml").write_text("kind: C")
    (tmp_path / "a.yaml").write_text("kind: A")

    def kinds(source: Path) -> list[str]:
        return [m.kind for m in read_manifests([str(source)]) if isinstance(m, Manifest)]

    assert kinds(tmp_path) == ["A"]
    assert kinds(tmp_path / ".ci.yaml") == ["C"]
    (hidden / "b.yaml").write_text("kind: B")
    assert "B" in kinds(tmp_path / ".allot")


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no \.yaml, \.yml, \.json files"):
        list(read_manifests([str(tmp_path)]))
    with pytest.raises(CommandError, match="No such file"):
        list(read_manifests([str(tmp_path / "nope.yaml")]))


def test_path_parts() -> None:
    assert list(path_parts("a.b[0].c[x.y/z].d")) == ["a", "b", 0, "c", "x.y/z", "d"]
