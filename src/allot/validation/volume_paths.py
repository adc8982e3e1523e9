"""The files of a volume: two sources of a projected volume may not write the same one, and a file cannot be a directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.parts import Part, part, parts, text

DUPLICATE: Final = "conflicting duplicate paths"
MAX_OVERLAPS: Final = 1_000
"""Further pairs are left out, as answers have fewer warnings."""
_CERTIFICATE_FILES: Final = {
    "credentialBundlePath": "PodCertificate credential bundle",
    "keyPath": "PodCertificate key",
    "certificateChainPath": "PodCertificate chain",
}


class _File(NamedTuple):
    """A file of a volume."""

    path: str
    source: str
    """What it comes from, in a projected volume."""
    shown: str
    """What an error about it shows."""
    is_token: bool = False
    """Of a service account; it may take the place of another file."""


def validate_projected_paths(volume: Part, path: FieldPath) -> Iterator[FieldError]:
    """`volume` is the projected source at `path`."""
    seen: set[str] = set()
    for source in parts(volume, "sources"):
        for file in _projected_files(source):
            if file.is_token or not file.path:
                continue
            if file.path in seen:
                yield invalid(path, file.shown, DUPLICATE)
            seen.add(file.path)


def overlap_warnings(volume: Part) -> Iterator[str]:
    """About files of a volume that hide others, or that would have to be directories, too."""
    name = text(volume, "name")
    for field, kind, key in (
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
    ):
        source = part(volume, field)
        place = f'volume "{name}" ({kind} "{text(source, key)}")'
        yield from _overlaps(place, _items(source))
    yield from _overlaps(f'volume "{name}" (DownwardAPI)', _items(part(volume, "downwardAPI")))
    files: list[_File] = []
    place = f'volume "{name}" (Projected)'
    for projected in parts(part(volume, "projected"), "sources"):
        if not any(value is not None for value in projected.values()):
            yield f"{place} has no sources provided"
        files += _projected_files(projected)
    yield from _overlaps(place, files)


def _projected_files(source: Part) -> Iterator[_File]:
    for field, kind in (("secret", "Secret"), ("configMap", "ConfigMap")):
        name = text(part(source, field), "name")
        yield from _items(part(source, field), f' ({kind} "{name}")', name)
    yield from _items(part(source, "downwardAPI"), " (DownwardAPI)")
    if source.get("serviceAccountToken") is not None:
        path = text(part(source, "serviceAccountToken"), "path")
        yield _File(path, " (ServiceAccountToken)", path, is_token=True)
    bundle = part(source, "clusterTrustBundle")
    if bundle:
        name, path = text(bundle, "name") or text(bundle, "signerName"), text(bundle, "path")
        yield _File(path, f' (ClusterTrustBundle "{name}")', path)
    for field, what in _CERTIFICATE_FILES.items():
        path = text(part(source, "podCertificate"), field)
        if path:
            yield _File(path, f" ({what})", path)


def _items(source: Part, label: str = "", shown: str = "") -> Iterator[_File]:
    for item in parts(source, "items"):
        path = text(item, "path")
        yield _File(path, label, shown or path)


def _overlaps(place: str, files: Iterable[_File]) -> Iterator[str]:
    pairs = islice(_overlapping(files), MAX_OVERLAPS)
    texts = (
        f'{place}: overlapping paths: "{later}"{later_source} with "{earlier}"{earlier_source}'
        for (later, later_source), (earlier, earlier_source) in pairs
    )
    return iter(dict.fromkeys(texts))


def _overlapping(files: Iterable[_File]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Each file with the earlier ones that it is, is in, or contains; path and source of both."""
    kept: list[tuple[str, str]] = []
    at: dict[str, list[int]] = {}
    below: dict[str, list[int]] = {}
    for file in files:
        path = file.path.rstrip("/")
        *above, _ = _prefixes(path)
        found = [*at.get(path, ()), *below.get(path, ())]
        for directory in above:
            found += at.get(directory, ())
        for number in sorted(found):
            yield (path, file.source), kept[number]
        at.setdefault(path, []).append(len(kept))
        for directory in above:
            below.setdefault(directory, []).append(len(kept))
        kept.append((path, file.source))


def _prefixes(path: str) -> list[str]:
    """The directories of a path, and itself."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names) + 1)]
