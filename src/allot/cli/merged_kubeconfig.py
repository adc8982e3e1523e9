"""`allot up --merge-kubeconfig`: the cluster as a context of the user's kubeconfig, and its removal by `allot reset`.

The file is the one that kubectl writes: the first of KUBECONFIG that exists, or ~/.kube/config.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import yaml

from allot.cli.data_directory import KUBECONFIG
from allot.cli.errors import CommandError

CONTEXT: Final = "allot"
_SECTIONS: Final = ("clusters", "users", "contexts")
_LOCK_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05


def merge_kubeconfig(data_dir: Path) -> str:
    """Add the cluster of the data directory, and make it the current context; what to tell the user."""
    ours = _document(data_dir / KUBECONFIG)
    path = _user_file()
    if path == (data_dir / KUBECONFIG).resolve():
        return f"{path} is the kubeconfig of this cluster already"
    with _locked(path):
        theirs: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
        if path.exists():
            theirs = _document(path)
        for section in _SECTIONS:
            entries = ours[section]
            names = {entry["name"] for entry in entries}
            theirs[section] = [*_others(theirs, section, names), *entries]
        before = theirs.get("current-context") or ""
        theirs["current-context"] = CONTEXT
        _write(path, theirs)
    message = f"context {CONTEXT} is in {path}, and current"
    if before and before != CONTEXT:
        message += f"; back with `kubectl config use-context {before}`"
    return message


def unmerge_kubeconfig(data_dir: Path) -> Path | None:
    """Remove what `merge_kubeconfig` added for this data directory; the file, if it had it."""
    own, path = data_dir / KUBECONFIG, _user_file()
    if not own.exists() or not path.exists() or path == own.resolve():
        return None
    ours = _document(own)
    with _locked(path):
        theirs = _document(path)
        if not any(entry in (theirs.get("clusters") or ()) for entry in ours["clusters"]):
            return None
        for section in _SECTIONS:
            names = {entry["name"] for entry in ours[section]}
            theirs[section] = _others(theirs, section, names)
        if theirs.get("current-context") == CONTEXT:
            theirs["current-context"] = ""
        _write(path, theirs)
    return path


def _user_file() -> Path:
    listed = [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    paths = [Path(each).expanduser() for each in listed or ["~/.kube/config"]]
    return next((path for path in paths if path.exists()), paths[0]).resolve()


def _others(document: dict[str, Any], section: str, names: set[str]) -> list[Any]:
    entries = document.get(section) or []
    return [e for e in entries if not (isinstance(e, dict) and e.get("name") in names)]


def _document(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or not all(
        isinstance(document.get(section) or [], list) for section in _SECTIONS
    ):
        raise CommandError(f"{path} is not a kubeconfig")
    return document


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """With the lock that kubectl takes, too: a file beside the kubeconfig."""
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{lock} exists: another program is writing {path}; delete the lock if none is"
                ) from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()


def _write(path: Path, document: dict[str, Any]) -> None:
    """All or nothing, with the permissions that the file has; for a new one, those of a secret."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            yaml.safe_dump(document, file, sort_keys=False, allow_unicode=True)
        os.chmod(file.name, mode)  # noqa: PTH101
        os.replace(file.name, path)  # noqa: PTH105
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
