"""What types and fields are for, in our words, as `kubectl explain` shows it.

The descriptions are in `texts/`, one file per package:

    [DeviceRequest]
      What the type is; continued on further indented lines.
    name: What the field is;
      continued on indented lines.

A heading can name several types with commas, and with a version in front is for that version only:
`[v1beta1 DeviceRequest]`. What is the same in several versions is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from allot.apiserver.schemas.fields import Type

_API_VERSION: Final = "The group and version this object is written in, such as {group_version}."
_KIND: Final = "The kind of this object, here {kind}."
_LIST_TEXTS: Final = {
    "": "A list of objects of kind {item}.",
    "items": "The objects.",
    "metadata": "The version of the list, and where its next page starts.",
}
_PARTS: Final = {
    "metadata": "Name, namespace, labels and all else that every object has.",
    "spec": "What is wanted.",
    "status": "What is observed.",
}


class TextKey(NamedTuple):
    """What a description is about; without a field the type itself, without a version all versions."""

    version: str
    type: str
    field: str


def type_description(name: str) -> str:
    """The description of a type; empty if it has no description."""
    package, _, short = name.rpartition(".")
    group, version = package.split(".")[-2:]
    found = _text(group, version, short, "")
    if not found and short.endswith("List"):
        return _LIST_TEXTS[""].format(item=short.removesuffix("List"))
    return found


def field_description(schema: Type, field: str) -> str:
    """The description of a field; empty if it has no description."""
    package, _, short = schema.name.rpartition(".")
    group, version = package.split(".")[-2:]
    found = _text(group, version, short, field)
    if found or not schema.kinds:
        return found
    gvk = schema.kinds[0]
    match field:
        case "apiVersion":
            return _API_VERSION.format(group_version=gvk.group_version)
        case "kind":
            return _KIND.format(kind=gvk.kind)
        case "items" | "metadata" if short.endswith("List"):
            return _LIST_TEXTS[field]
    return _PARTS.get(field, "")


def _text(group: str, version: str, type_: str, field: str) -> str:
    texts = texts_of(group)
    return texts.get(TextKey(version, type_, field)) or texts.get(TextKey("", type_, field), "")


@cache
def texts_of(group: str) -> Mapping[TextKey, str]:
    """All descriptions of the types of a group."""
    source = files(__package__) / "texts" / f"{group}.txt"
    return dict(_parse(source.read_text(encoding="utf-8"))) if source.is_file() else {}


def _parse(source: str) -> Iterator[tuple[TextKey, str]]:
    headings: list[tuple[str, str]] = []
    field, words = "", list[str]()

    def finished() -> Iterator[tuple[TextKey, str]]:
        if words:
            yield from (
                (TextKey(version, type_, field), " ".join(words)) for version, type_ in headings
            )

    for line in source.splitlines():
        if not line.strip():
            continue
        if line.startswith("["):
            yield from finished()
            headings = [_heading(name) for name in line.strip("[]").split(",")]
            field, words = "", []
        elif line.startswith(" "):
            words.append(line.strip())
        else:
            yield from finished()
            field, _, text = line.partition(": ")
            words = [text.strip()]
    yield from finished()


def _heading(name: str) -> tuple[str, str]:
    version, _, type_ = name.strip().rpartition(" ")
    return version, type_
