"""A simulated driver: publishes the devices that a hardware description lists.

    hardware file ──► hardware: what is written there ──► expansion: devices by their numbers
                                    │
                                    ▼
    slices: a pool cut into ResourceSlices ──► publishing: what must be written ──► publisher: writes it

Devices are published and nothing more: claims are not prepared, because no container runs.
"""

from typing import TYPE_CHECKING

from allot._lazy import lazy_names

if TYPE_CHECKING:
    from allot.driver.errors import HardwareError
    from allot.driver.hardware import Hardware
    from allot.driver.loading import load_hardware
    from allot.driver.publisher import SlicePublisher

__all__ = ["Hardware", "HardwareError", "SlicePublisher", "load_hardware"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "HardwareError": "allot.driver.errors",
            "Hardware": "allot.driver.hardware",
            "load_hardware": "allot.driver.loading",
            "SlicePublisher": "allot.driver.publisher",
        },
    )
