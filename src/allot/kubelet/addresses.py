"""Addresses of nodes and pods: always the same for the same one, and never those of another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Final

NODE_NETWORK: Final = IPv4Network("172.16.0.0/12")
POD_NETWORK: Final = IPv4Network("10.128.0.0/9")
ATTEMPTS: Final = 100


def pick_address(owner: str, network: IPv4Network, is_taken: Callable[[str], bool]) -> str:
    """An address for `owner`, found by its name; if another has it, the next one that is free."""
    digest = hashlib.blake2s(owner.encode(), digest_size=8).digest()
    places = network.num_addresses - 2
    first = int.from_bytes(digest) % places
    address = ""
    for attempt in range(ATTEMPTS):
        address = str(network[1 + (first + attempt) % places])
        if not is_taken(address):
            break
    return address
