"""What is known about a network device when it is in a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NetworkData:
    """A network interface as it appears in the pod."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    """Addresses with prefix, such as 10.0.0.5/24."""
    hardware_address: str = ""

    def as_json(self) -> dict[str, Any]:
        data = {
            "interfaceName": self.interface_name,
            "ips": list(self.ips),
            "hardwareAddress": self.hardware_address,
        }
        return {name: value for name, value in data.items() if value}
