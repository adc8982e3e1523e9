"""Record: `python -m tests.kubectl.recording KUBECTL KUBECONFIG OUT [--only SECTION]`.

The answers of a real Kubernetes v1.38 become the vector; sections that are not played stay as they are. The cluster runs
without the admission plugin ServiceAccount and without the controllers node-lifecycle, endpoints, endpointslice and
endpointslice-mirroring: nodes have no leases and pods no network.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kubectl.invocations import DATA, Section, read_sections
from tests.kubectl.playing import Answer, Kubectl, prepare
from tests.kubectl.walking import walk

WALK: Final = "walk"


def sections(kubectl: Kubectl, only: Collection[str] = ()) -> Iterator[Section]:
    """What was written by hand, and what the help of this kubectl gives, which takes a while to read."""
    for name in ("sections.yaml", "further-sections.yaml"):
        for section in read_sections(DATA / name):
            if not only or section.name in only:
                yield section
    if not only or WALK in only:
        table = yaml.safe_load((DATA / "walk.yaml").read_text())
        walked = tuple(walk(kubectl.help, table["arguments"], table["values"]))
        yield Section(WALK, "world", walked)


def record(kubectl: Kubectl, only: Collection[str] = ()) -> list[dict[str, Any]]:
    prepare(kubectl)
    return [
        {
            "section": section.name,
            "answers": [[found.name, *answer] for found, answer in kubectl.play_section(section)],
        }
        for section in sections(kubectl, only)
    ]


def vector(version: str) -> Path:
    return DATA / f"kubectl-{version}.json.xz"


def read_vector(path: Path) -> dict[str, dict[str, list[Answer]]]:
    """Answers by section and name; a name may be run more than once."""
    found: dict[str, dict[str, list[Answer]]] = {}
    for section in json.loads(lzma.decompress(path.read_bytes())):
        for name, *answer in section["answers"]:
            found.setdefault(section["section"], {}).setdefault(name, []).append(Answer(*answer))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubectl", type=Path)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", type=lambda names: names.split(","), default=())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = record(Kubectl(given.kubectl, given.kubeconfig, Path(directory)), given.only)
    if given.out.exists():
        names = {section["section"] for section in found}
        kept = json.loads(lzma.decompress(given.out.read_bytes()))
        found = [section for section in kept if section["section"] not in names] + found
    given.out.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))
    count = sum(len(section["answers"]) for section in found)
    sys.stderr.write(f"{count} invocations\n")


if __name__ == "__main__":
    main()
