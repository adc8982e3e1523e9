"""`allot explain --all-pending`: pending pods of a namespace, a workload or the cluster, grouped by cause."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from allot.allocation.explain.amounts import counted
from allot.api.identities import ObjectKey
from allot.api.selectors import LabelSelector
from allot.api.similar_names import did_you_mean, similar_names
from allot.apiserver.selectors.errors import SelectorError
from allot.apiserver.selectors.label_parser import parse_label_selector
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.explain import WORKLOAD_NAMES
from allot.cli.question_options import ClusterArguments
from allot.cli.tables import Column, notes, print_blocks, print_document, table
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pending import (
    MAX_NAMES,
    PendingCause,
    PendingPods,
    PodSelection,
    owned_by,
    pending_pods,
)
from allot.scheduler.explain.effort import Effort, within

_DETAIL_SECONDS: Final = 4.0
"""After so long kinds of pods are explained by the scheduler's message alone."""
_EFFORT: Final = Effort(50, 1, within(0.5, time.monotonic), 10.0)
_MAX_HELPS: Final = 5


def explain_pending(
    cluster: ClusterArguments,
    what: tuple[str, ...],
    namespace: str | None,
    selector: str,
    output: str,
    width: int | None,
) -> int:
    """Print the answer; `what` names a workload, or nothing for all pending pods."""
    labels = _labels(selector)
    observed = cluster.load("allot-explain")
    selection = PodSelection(namespace, labels)
    title = f"in namespace {namespace}" if namespace is not None else "in all namespaces"
    if what:
        owners, title = _workload(observed, what, namespace or "default")
        selection = selection._replace(owner_uids=owners)
    found = pending_pods(observed, selection, _EFFORT, within(_DETAIL_SECONDS, time.monotonic)())
    if output in ("json", "yaml"):
        print_document(found, output)
    else:
        print_blocks(_blocks(found, title), width)
    return EXIT_OK


def _labels(text: str) -> LabelSelector | None:
    if not text:
        return None
    try:
        return parse_label_selector(text)
    except SelectorError as error:
        raise CommandError(f"--selector: {error}") from None


def _workload(
    cluster: ObservedCluster, what: tuple[str, ...], namespace: str
) -> tuple[frozenset[str], str]:
    parts = "/".join(what).split("/")
    if len(parts) != 2 or not all(parts):
        raise CommandError(f"{' '.join(what)}: say {parts[0]}/NAME")
    resource = WORKLOAD_NAMES[parts[0].lower()]
    found = cluster.objects.get(resource, ObjectKey(namespace, parts[1]))
    if found is None:
        near = [
            each.key.name
            for each in cluster.objects.of(resource)
            if each.key.namespace == namespace
        ]
        hint = did_you_mean(similar_names(parts[1], near))
        raise CommandError(f"no {resource.kind} {parts[1]} in namespace {namespace}{hint}")
    return owned_by(cluster, found), f"of {resource.kind.lower()}/{parts[1]}"


# --- text ---


def _blocks(found: PendingPods, title: str) -> Iterator[RenderableType]:
    if not found.pods:
        yield Text(f"No pod is pending {title}.")
        yield from notes(found.notes)
        return
    are = "is" if found.pods == 1 else "are"
    causes = counted(len(found.causes), "cause")
    yield Text(f"{counted(found.pods, 'pod')} {are} pending {title}, for {causes}:", "bold")
    yield Text("")
    yield table(_CAUSES, found.causes)
    if found.helps:
        yield Text("\nWhat would help most pods, each of them alone:", "bold")
        yield table(_HELPS, found.helps[:_MAX_HELPS])
    example = found.causes[0].example
    namespace, _, name = example.partition("/")
    yield Text(f"\nIn detail: allot explain pod/{name} -n {namespace}")
    yield from notes(found.notes)


def _owners(cause: PendingCause) -> str:
    names = [
        f"{_short(name)} ({number})" if number > 1 else _short(name)
        for name, number in list(cause.owners.items())[:MAX_NAMES]
    ]
    more = len(cause.owners) - MAX_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    """The name without the namespace."""
    kind, _, rest = name.partition("/")
    return f"{kind}/{rest.rpartition('/')[2]}"


_CAUSES: Final = (
    Column("PODS", lambda cause: str(cause.pods), is_number=True),
    Column("CAUSE", lambda cause: cause.cause),
    Column("WHICH", _owners),
)
_HELPS: Final = (
    Column("PODS", lambda each: str(each.pods), is_number=True),
    Column("CHANGE", lambda each: each.change),
)
