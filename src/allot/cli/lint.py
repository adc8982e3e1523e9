"""`allot lint`: check manifests, on their own or against a cluster."""

from __future__ import annotations

import difflib
from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.lint_output import print_report
from allot.cli.manifests import SourceFile, read_files
from allot.cli.snapshots import SnapshotSource, take
from allot.client import resources
from allot.client.resources import Resource
from allot.client.server_gates import API_SERVER
from allot.client.snapshot import Snapshot
from allot.features import FeatureGates
from allot.lint.findings import Report
from allot.lint.known_objects import KnownObjects
from allot.lint.linter import FixableManifest, Linter
from allot.lint.rule_table import RULES
from allot.lint.spelling import did_you_mean
from allot.lint.target import TargetCluster
from allot.lint.text_edits import apply_fixes
from allot.rules import RuleSet

TYPED: Final[tuple[Resource[Any], ...]] = (
    resources.DEVICE_CLASSES,
    resources.RESOURCE_SLICES,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_CLAIM_TEMPLATES,
    resources.DEVICE_TAINT_RULES,
)
"""Resources to read from a cluster, besides its namespaces."""
_MAX_ROUNDS: Final = 8
"""How often files are fixed and checked again."""


def lint_files(
    *,
    sources: tuple[str, ...],
    output: str,
    kubeconfig: Path | None,
    context: str | None,
    target: str,
    ignore: tuple[str, ...],
    fail_on: str,
    fix: bool,
    dry_run: bool,
    feature_gates: str,
    rules: RuleSet | None,
    more: tuple[str, ...],
) -> int:
    """The command `allot lint`: checks the files, corrects them with `fix`, and prints what it found."""
    wanted = [*sources, *more]
    if not wanted:
        raise CommandError("nothing to check: name files with -f FILE, or -f - for standard input")
    if dry_run and not fix:
        raise CommandError("--dry-run goes with --fix")
    if fix and not dry_run and "-" in wanted:
        raise CommandError("--fix changes files; add --dry-run for standard input")
    cluster = _Cluster(kubeconfig, context)
    gates = cluster.gates(feature_gates, rules)
    linting = _Linting(gates, cluster, TargetCluster(target), _rules(ignore))
    files = list(read_files(wanted))
    report, fixable = linting.check(files)
    if fix:
        fixed = _fixed(linting, files, fixable)
        if dry_run:
            return EXIT_FINDINGS if _show_differences(files, fixed.files) else EXIT_OK
        _write(files, fixed)
        report, _ = linting.check(fixed.files)
    print_report(report, output)
    if not report.is_readable:
        return EXIT_USAGE
    counted = report.errors if fail_on == "error" else len(report.findings)
    return EXIT_FINDINGS if counted else EXIT_OK


def _rules(names: Iterable[str]) -> tuple[str, ...]:
    wanted = [name for text in names for name in text.split(",") if name]
    for name in wanted:
        if name not in RULES:
            hint = did_you_mean(name, RULES) or f"; available: {', '.join(sorted(RULES))}"
            raise CommandError(f'--ignore: no rule "{name}"{hint}')
    return tuple(wanted)


class _Cluster:
    """The objects of the cluster, if one is read."""

    def __init__(self, kubeconfig: Path | None, context: str | None) -> None:
        self._source = SnapshotSource((), kubeconfig, context)
        self._snapshot: Snapshot | None = None
        if kubeconfig is not None or context is not None:
            kinds = (*TYPED, resources.NAMESPACES)
            self._snapshot = take(self._source, kinds, "allot-lint", gate_pages=(API_SERVER,))
            for resource, why in self._snapshot.unread.items():
                echo_text(f"warning: {resource} were not read: {why}", err=True)

    def gates(self, option: str, asked: RuleSet | None) -> FeatureGates:
        """The gates and rules: of the command line, else of the cluster."""
        if self._snapshot is None:
            return gates_from_option(option, asked)
        known = gates_of_cluster(self._snapshot, self._source, option, asked)
        if known.assumption:
            echo_text(f"warning: {known.assumption}", err=True)
        return known.gates

    def known(self) -> KnownObjects:
        known = KnownObjects(is_live=self._snapshot is not None)
        if self._snapshot is None:
            return known
        for resource in TYPED:
            for obj in self._snapshot.of(resource):
                known.add(obj)
        for namespace in self._snapshot.of(resources.NAMESPACES):
            name = namespace.get("metadata", "name", default="")
            known.namespace_labels[name] = namespace.get("metadata", "labels", default={})
        return known


class _Linting:
    """One way of linting, for the same files before and after a fix."""

    def __init__(
        self,
        gates: FeatureGates,
        cluster: _Cluster,
        target: TargetCluster,
        ignored: tuple[str, ...],
    ) -> None:
        self._gates, self._cluster = gates, cluster
        self._target, self._ignored = target, ignored

    def check(self, files: Iterable[SourceFile]) -> tuple[Report, list[FixableManifest]]:
        linter = Linter(
            self._gates,
            new_known=self._cluster.known,
            target=self._target,
            ignored=self._ignored,
        )
        return linter.check_for_fixes(manifest for file in files for manifest in file.manifests())


# --- fixing ---


class _FixedFiles(NamedTuple):
    """All files with their fixes, and what was fixed in each of them."""

    files: list[SourceFile]
    made: dict[str, list[str]]


def _fixed(
    linting: _Linting, files: list[SourceFile], fixable: list[FixableManifest]
) -> _FixedFiles:
    """The files with all fixes. A fix may reveal another mistake: fields that were moved are checked then."""
    made: dict[str, list[str]] = {}
    for _ in range(_MAX_ROUNDS):
        again = [_fixed_once(file, fixable, made.setdefault(file.name, [])) for file in files]
        if again == files:
            break
        files = again
        _, fixable = linting.check(files)
    return _FixedFiles(files, made)


def _fixed_once(file: SourceFile, fixable: list[FixableManifest], made: list[str]) -> SourceFile:
    """The file with the fixes of its manifests; notes them in `made`."""
    own = [
        (manifest, fix)
        for manifest, fixes in fixable
        if manifest.source == file.name
        for fix in fixes
    ]
    text = file.content.removeprefix(BOM_UTF8).decode()
    done = apply_fixes(text, own)
    if done.text == text:
        return file
    made += [f"{manifest.kind}/{manifest.name}: {fix}" for manifest, fix in done.made]
    bom = BOM_UTF8 if file.content.startswith(BOM_UTF8) else b""
    return file._replace(content=bom + done.text.encode())


def _write(files: list[SourceFile], fixed: _FixedFiles) -> None:
    for before, after in zip(files, fixed.files, strict=True):
        if before == after:
            continue
        path = Path(after.name)
        try:
            path.write_bytes(after.content)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}") from None
        for fix in fixed.made[after.name]:
            echo_text(f"fixed {after.name}: {fix}", err=True)


def _show_differences(files: list[SourceFile], fixed: list[SourceFile]) -> bool:
    """Whether there are any."""
    changed = [pair for pair in zip(files, fixed, strict=True) if pair[0] != pair[1]]
    for before, after in changed:
        texts = (each.content.removeprefix(BOM_UTF8).decode() for each in (before, after))
        _show_difference(before.name, *texts)
    return bool(changed)


def _show_difference(source: str, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{source}",
        f"b/{source}",
    )
    echo_text("".join(lines), nl=False)
