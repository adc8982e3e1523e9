"""IP addresses of nodes and pods: stable by name, and unique."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Final

NODE_NETWORK: Final = IPv4Network("172.16.0.0/12")
POD_NETWORK: Final = IPv4Network("10.128.0.0/9")
ATTEMPTS: Final = 100


def pick_address(owner: str, network: IPv4Network, is_taken: Callable[[str], bool]) -> str:
    """An address for `owner`, derived from its name; the next free one if it is taken."""
    digest = hashlib.blake2s(owner.encode(), digest_size=8).digest()
    places = network.num_addresses - 2
    first = int.from_bytes(digest) % places
    address = ""
    for attempt in range(ATTEMPTS):
        address = str(network[1 + (first + attempt) % places])
        if not is_taken(address):
            break
    return address
