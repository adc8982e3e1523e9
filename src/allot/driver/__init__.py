"""A simulated driver: publishes the devices that a hardware description lists.

    hardware file ──► hardware: what is written there ──► expansion: devices by their numbers
                                    │
                                    ▼
    slices: a pool cut into ResourceSlices ──► publishing: what must be written ──► publisher: writes it

Devices are published and nothing more: claims are not prepared, because no container runs.
"""
