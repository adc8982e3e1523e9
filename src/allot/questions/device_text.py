"""What lists say about a device beside its state: its holders, details, and how much of it is used."""

from __future__ import annotations

from typing import Final

from allot.api.quantity import Quantity
from allot.questions.devices import DeviceRow, DeviceUse

MIN_USED: Final = 0.01
"""Of a device with holders that consume none of its capacity."""


def holders_text(row: DeviceRow) -> str:
    """Pods, or claims that no pod uses, with what their shares consume."""
    parts = []
    for holder in row.held_by:
        share = ", ".join(f"{name} {amount}" for name, amount in holder.consumed.items())
        name = ", ".join(f"pod/{pod}" for pod in holder.pods) or f"claim/{holder.claim}"
        parts.append(f"{name} ({share})" if share else name)
    return "; ".join(parts)


def details_text(row: DeviceRow) -> str:
    """What is left of it, its taints, what it waits for, why it cannot be used."""
    parts = [f"{name} {amount} left" for name, amount in row.remaining.items()]
    parts += row.taints
    parts += (f"waits for {name}" for holder in row.held_by for name in holder.waits_for)
    parts += (f"failed: {holder.failure}" for holder in row.held_by if holder.failure)
    return "; ".join([*parts, *filter(None, [row.reason])])


def used_share(row: DeviceRow) -> float:
    """How much of a device is used, from 0 to 1: of its capacities, that of which least is left."""
    if not row.is_held:
        return 0.0
    if row.state is DeviceUse.HELD or not row.remaining:
        return 1.0
    shares = []
    for name, left in row.remaining.items():
        used = sum(
            Quantity.parse(holder.consumed[name]).nanos
            for holder in row.held_by
            if name in holder.consumed
        )
        total = used + Quantity.parse(left).nanos
        if total:
            shares.append(used / total)
    return max((*shares, MIN_USED)) if shares else 1.0
