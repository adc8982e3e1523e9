"""The rows and columns of tables: devices, pods, claims, causes, events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from rich.style import Style

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.durations import human_duration
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client import resources
from allot.questions.device_text import details_text, holders_text
from allot.questions.devices import DeviceRow
from allot.questions.object_states import claim_state, event_series, event_subject, event_time
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pending import MAX_NAMES, PendingCause
from allot.terminal.row_table import TableColumn
from allot.terminal.search_query import SearchQuery
from allot.terminal.state_symbols import STYLES, SymbolSet, symbol_of

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_TROUBLE: Final = Style(color="red", bold=True)
_WAITS: Final = Style(color="yellow", bold=True)
_PLAIN: Final = Style()
_DIM: Final = Style(dim=True)
PENDING: Final = "Pending"


def age_text(since: datetime | None, now: datetime) -> str:
    """How long ago, as kubectl shows ages."""
    return "-" if since is None else human_duration(max((now - since).total_seconds(), 0.0))


# --- devices ---


def device_columns(symbols: SymbolSet) -> tuple[TableColumn[DeviceRow], ...]:
    return (
        TableColumn("", lambda row: symbol_of(row, symbols), _device_style, min_width=1),
        TableColumn("NODE", lambda row: row.node or "-", is_name=True, min_width=12),
        TableColumn(
            "POOL",
            lambda row: row.pool if row.pool != row.node else "",
            is_name=True,
            min_width=10,
            rank=3,
        ),
        TableColumn("DEVICE", lambda row: row.device, is_name=True, min_width=10),
        TableColumn("MODEL", lambda row: row.model, min_width=8, rank=2),
        TableColumn("STATE", lambda row: row.state, _device_style, min_width=8),
        TableColumn("HELD BY", holders_text, is_name=True, min_width=18, rank=1),
        TableColumn("DETAILS", details_text, min_width=12, takes_rest=True, rank=4),
    )


def _device_style(row: DeviceRow) -> Style:
    return STYLES[row.state]


# --- pods ---


class PodRow(NamedTuple):
    """A pod, and the devices that its claims hold for it."""

    namespace: str
    name: str
    state: str
    node: str
    devices: tuple[str, ...]
    created_at: datetime | None
    now: datetime

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


def pod_rows(cluster: ObservedCluster, query: SearchQuery) -> list[PodRow]:
    """Pods without a node first, then by namespace and name."""
    devices = _devices_by_pod(cluster.objects.of(resources.RESOURCE_CLAIMS))
    rows = [_pod_row(pod, devices, cluster.now) for pod in cluster.objects.of(resources.PODS)]
    found = [
        row
        for row in rows
        if query.matches((row.namespace, row.name, row.state, row.node, *row.devices))
    ]
    return sorted(found, key=lambda row: (not _is_waiting(row), row.namespace, row.name))


def _pod_row(pod: Pod, devices: Mapping[ObjectKey, list[str]], now: datetime) -> PodRow:
    state = pod.phase or PENDING
    if pod.metadata.deletion_timestamp is not None:
        state = "Terminating"
    elif state == PENDING and not pod.node_name:
        reasons = (each.reason for each in pod.conditions if each.type == "PodScheduled")
        state = next(filter(None, reasons), PENDING)
    elif state == PENDING:
        state = "Starting"
    created = pod.metadata.creation_timestamp
    held = tuple(devices.get(pod.key, ()))
    return PodRow(*pod.key, state, pod.node_name, held, created, now)


def _devices_by_pod(claims: Iterable[ResourceClaim]) -> dict[ObjectKey, list[str]]:
    found: dict[ObjectKey, list[str]] = {}
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        names = [result.device for result in allocation.devices.results]
        for consumer in claim.status.reserved_for:
            if consumer.resource == "pods":
                key = ObjectKey(claim.metadata.namespace, consumer.name)
                found.setdefault(key, []).extend(names)
    return found


def _is_waiting(row: PodRow) -> bool:
    return not row.node and row.state not in ("Succeeded", "Failed")


def _pod_style(row: PodRow) -> Style:
    if row.state == "Failed":
        return _TROUBLE
    return _WAITS if _is_waiting(row) else _PLAIN


POD_COLUMNS: Final[tuple[TableColumn[PodRow], ...]] = (
    TableColumn("NAMESPACE", lambda row: row.namespace, is_name=True, min_width=7, rank=1),
    TableColumn("POD", lambda row: row.name, is_name=True, min_width=20),
    TableColumn("STATE", lambda row: row.state, _pod_style, min_width=13),
    TableColumn("NODE", lambda row: row.node or "-", is_name=True, min_width=8, rank=2),
    TableColumn("DEVICES", lambda row: ", ".join(row.devices), min_width=8, takes_rest=True),
    TableColumn("AGE", lambda row: age_text(row.created_at, row.now), is_number=True, rank=3),
)


# --- claims ---


class ClaimRow(NamedTuple):
    """A claim: what it holds, and for whom."""

    namespace: str
    name: str
    state: str
    devices: tuple[str, ...]
    pods: tuple[str, ...]
    created_at: datetime | None
    now: datetime

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


def claim_rows(cluster: ObservedCluster, query: SearchQuery) -> list[ClaimRow]:
    """Claims that are not allocated first, then by namespace and name."""
    rows = (
        _claim_row(claim, cluster.now) for claim in cluster.objects.of(resources.RESOURCE_CLAIMS)
    )
    found = [
        row
        for row in rows
        if query.matches((row.namespace, row.name, row.state, *row.devices, *row.pods))
    ]
    return sorted(found, key=lambda row: (row.state != "pending", row.namespace, row.name))


def _claim_row(claim: ResourceClaim, now: datetime) -> ClaimRow:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    devices = tuple(f"{result.pool}/{result.device}" for result in results)
    pods = tuple(each.name for each in claim.status.reserved_for)
    created = claim.metadata.creation_timestamp
    return ClaimRow(*claim.key, claim_state(claim), devices, pods, created, now)


CLAIM_COLUMNS: Final[tuple[TableColumn[ClaimRow], ...]] = (
    TableColumn("NAMESPACE", lambda row: row.namespace, is_name=True, min_width=7, rank=2),
    TableColumn("CLAIM", lambda row: row.name, is_name=True, min_width=20),
    TableColumn(
        "STATE",
        lambda row: row.state,
        lambda row: _WAITS if row.state == "pending" else _PLAIN,
        min_width=9,
    ),
    TableColumn("DEVICES", lambda row: ", ".join(row.devices), min_width=12),
    TableColumn("FOR PODS", lambda row: ", ".join(row.pods), takes_rest=True, min_width=10, rank=1),
    TableColumn("AGE", lambda row: age_text(row.created_at, row.now), is_number=True, rank=3),
)


# --- causes ---


def matching_causes(causes: Iterable[PendingCause], query: SearchQuery) -> list[PendingCause]:
    return [each for each in causes if query.matches((each.cause, each.example, *each.owners))]


def owners_text(cause: PendingCause) -> str:
    """The workloads, or pods, that wait for this cause."""
    names = [
        f"{name} ({number})" if number > 1 else name
        for name, number in list(cause.owners.items())[:MAX_NAMES]
    ]
    more = len(cause.owners) - MAX_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


CAUSE_COLUMNS: Final[tuple[TableColumn[PendingCause], ...]] = (
    TableColumn("PODS", lambda cause: str(cause.pods), is_number=True),
    TableColumn("WHICH", owners_text, is_name=True, min_width=14),
    TableColumn("CAUSE", lambda cause: cause.cause, min_width=20, takes_rest=True),
)


# --- events ---


class EventRow(NamedTuple):
    """An event, and what it is about."""

    key: ObjectKey
    at: datetime
    type: str
    reason: str
    about: str
    message: str
    times: int
    now: datetime


def event_rows(cluster: ObservedCluster, query: SearchQuery) -> list[EventRow]:
    """The newest first."""
    rows = (_event_row(event, cluster.now) for event in cluster.objects.of(resources.CORE_EVENTS))
    found = [row for row in rows if query.matches((row.type, row.reason, row.about, row.message))]
    return sorted(found, key=lambda row: (row.at, row.key), reverse=True)


def _event_row(event: RawObject, now: datetime) -> EventRow:
    about = event_subject(event)
    names = (about.get("kind"), about.get("namespace"), about.get("name"))
    count = event_series(event).get("count") or event.get("count", default=1)
    return EventRow(
        event.metadata.key,
        event_time(event) or _LONG_AGO,
        str(event.get("type", default="")),
        str(event.get("reason", default="")),
        "/".join(str(each) for each in names if each),
        str(event.get("message", default="")),
        count if isinstance(count, int) else 1,
        now,
    )


EVENT_COLUMNS: Final[tuple[TableColumn[EventRow], ...]] = (
    TableColumn(
        "AGE",
        lambda row: age_text(row.at if row.at != _LONG_AGO else None, row.now),
        is_number=True,
    ),
    TableColumn(
        "REASON",
        lambda row: row.reason,
        lambda row: _WAITS if row.type == "Warning" else _PLAIN,
        min_width=10,
    ),
    TableColumn("ABOUT", lambda row: row.about, is_name=True, min_width=16),
    TableColumn(
        "MESSAGE",
        lambda row: f"{row.message} (x{row.times})" if row.times > 1 else row.message,
        min_width=20,
        takes_rest=True,
    ),
)
