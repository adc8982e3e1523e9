"""How many available devices can be allocated at the same time if partitions share counters (KEP-4815).

A card that can be used whole or in seven partitions is published as eight devices, of which at most seven can be allocated.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from allot.allocation.pools import CounterBudget
from allot.api.slices import Device
from allot.client.steps import finish
from allot.controllers.pool_status.partitions import counter_uses, counting_how_many_fit


def count_at_once(devices: Iterable[Device], left: CounterBudget) -> int:
    """A lower bound of the devices that fit together; with partitions of many sizes more may fit.

    `left` is the rest of the counters. Two greedy orders are tried, smallest partitions first and published order;
    the better result counts.
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
    return count + max(
        finish(counting_how_many_fit(order, left)) for order in (smallest_first, partitions)
    )


def _share(device: Device, left: CounterBudget) -> float:
    """The largest share that the device consumes of any counter's rest."""
    shares = [0.0]
    for set_name, name, amount in counter_uses(device):
        available = left.get(set_name, {}).get(name, 0)
        if amount > 0:
            shares.append(amount / available if available > 0 else inf)
    return max(shares)
