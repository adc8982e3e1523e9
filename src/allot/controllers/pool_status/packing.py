"""How many free devices can be allocated at the same time, where partitions share counters (KEP-4815).

A card that can be had whole or in seven slices is published as eight devices, of which seven at most can be had at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from allot.allocation.pools import CounterBudget
from allot.api.slices import Device
from allot.controllers.pool_status.partitions import counter_uses


def count_at_once(devices: Iterable[Device], left: CounterBudget) -> int:
    """So many can really be had together; rarely, with partitions of many shapes, even more could.

    `left` is what devices in use leave of the counters. The smallest partitions go first, as those of the published
    order do in a second attempt: the better of the two counts.
    """
    partitions = []
    count = 0
    for device in devices:
        if device.consumes_counters:
            partitions.append(device)
        else:
            count += 1
    if not partitions:
        return count
    smallest_first = sorted(partitions, key=lambda device: _share(device, left))
    return count + max(_fitting(smallest_first, left), _fitting(partitions, left))


def _share(device: Device, left: CounterBudget) -> float:
    """The largest share that the device takes of what is left of a counter."""
    shares = [0.0]
    for set_name, name, amount in counter_uses(device):
        available = left.get(set_name, {}).get(name, 0)
        if amount > 0:
            shares.append(amount / available if available > 0 else inf)
    return max(shares)


def _fitting(devices: Sequence[Device], counters: CounterBudget) -> int:
    left = {set_name: dict(amounts) for set_name, amounts in counters.items()}
    count = 0
    for device in devices:
        uses = list(counter_uses(device))
        if all(left.get(set_name, {}).get(name, -1) >= amount for set_name, name, amount in uses):
            count += 1
            for set_name, name, amount in uses:
                left[set_name][name] -= amount
    return count
