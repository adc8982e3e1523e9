"""A DRA driver whose hardware is files: every file in a directory is a device, which containers get as a mount.

python file_driver.py --hardware DIR --node-name NODE [--kubeconfig FILE --kubelet-dir DIR --cdi-dir DIR]
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import click

from allot.driver import (
    AllocatedClaim,
    AllocatedDevice,
    ContainerEdits,
    Device,
    DeviceTaint,
    Driver,
    Health,
    KubeletPlugin,
    PreparedDevice,
    PrepareError,
    driver_options,
    make_device,
    run_with_options,
)  # fmt: skip


class FileDriver(Driver):
    name = "files.example.com"
    unhealthy_taint = DeviceTaint("files.example.com/unreadable", effect="NoSchedule")

    def __init__(self, hardware: Path) -> None:
        self._hardware = hardware

    def devices(self) -> Iterable[Device]:
        """A file ending in .shared can be used by several claims."""
        for file in sorted(self._hardware.iterdir()):
            attributes = {"suffix": file.suffix.lstrip(".") or "none"}
            size = {"size": file.stat().st_size}
            yield make_device(
                file.stem, attributes, size, allow_multiple_allocations=file.suffix == ".shared"
            )

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [device.prepared(self._edits(device)) for device in claim.devices]

    def _edits(self, device: AllocatedDevice) -> ContainerEdits:
        files = [file for file in self._hardware.iterdir() if file.stem == device.device]
        if not files:
            raise PrepareError(f"the file of {device.device} is gone")
        name = device.base_request.upper().replace("-", "_")
        env = {name: device.device} | {
            key: str(v) for each in device.parameters for key, v in each.get("env", {}).items()
        }
        return ContainerEdits(
            env=env, mounts={str(files[0]): f"/devices/{device.device}"}, read_only=True
        )

    async def run(self, plugin: KubeletPlugin) -> None:
        """Publishes files that come and go; those that became empty are unhealthy."""
        known = None
        while True:
            found = {file.name: file.stat().st_size for file in self._hardware.iterdir()}
            if found != known:
                plugin.refresh()
                for name, size in found.items():
                    plugin.report_health(
                        Path(name).stem,
                        Health.HEALTHY if size else Health.UNHEALTHY,
                        "" if size else "empty",
                    )
            known = found
            await asyncio.sleep(1.0)


@click.command()
@click.option(
    "--hardware",
    type=click.Path(path_type=Path),
    required=True,
    help="The directory with the files.",
)
@driver_options
def main(hardware: Path, **options: object) -> None:
    run_with_options(FileDriver(hardware), **options)


if __name__ == "__main__":
    main()
