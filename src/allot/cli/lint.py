"""`allot lint`: check manifests, on their own or against a cluster."""

from __future__ import annotations

import difflib
from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.lint_output import print_report
from allot.cli.manifests import SourceFile, read_files
from allot.cli.snapshots import Source, take
from allot.client import resources
from allot.client.resources import Resource
from allot.client.server_gates import API_SERVER
from allot.client.snapshot import Snapshot
from allot.features import FeatureGates
from allot.lint.findings import Report
from allot.lint.fixes import Fix
from allot.lint.known_objects import KnownObjects
from allot.lint.linter import FixableManifest, Linter
from allot.lint.manifests import Manifest
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
        changed = _fixed(files, fixable, dry_run=dry_run)
        if dry_run:
            return EXIT_FINDINGS if changed else EXIT_OK
        files = [changed.get(file.name, file) for file in files]
        report, _ = linting.check(files)
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
        self._source = Source((), kubeconfig, context)
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


def _fixed(
    files: Iterable[SourceFile], fixable: list[FixableManifest], *, dry_run: bool
) -> dict[str, SourceFile]:
    """The files that change, by name. Writes them, or shows the difference."""
    by_source: dict[str, list[tuple[Manifest, Fix]]] = {}
    for manifest, fixes in fixable:
        by_source.setdefault(manifest.source, []).extend((manifest, fix) for fix in fixes)
    changed: dict[str, SourceFile] = {}
    for file in files:
        text = file.content.removeprefix(BOM_UTF8).decode()
        done = apply_fixes(text, by_source.get(file.name, ()))
        if done.text == text:
            continue
        content = (BOM_UTF8 if file.content.startswith(BOM_UTF8) else b"") + done.text.encode()
        changed[file.name] = file._replace(content=content)
        if dry_run:
            _show_difference(file.name, text, done.text)
            continue
        _write(Path(file.name), content)
        for manifest, fix in done.made:
            echo_text(f"fixed {file.name}: {manifest.kind}/{manifest.name}: {fix}", err=True)
    return changed


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


def _show_difference(source: str, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{source}",
        f"b/{source}",
    )
    echo_text("".join(lines), nl=False)
