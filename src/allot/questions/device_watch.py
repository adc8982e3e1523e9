"""Which devices of a list have changed since they were last asked for."""

from __future__ import annotations

from collections.abc import Iterator

from allot.allocation.devices import PoolId
from allot.api.classes import DeviceClass
from allot.api.identities import DeviceId
from allot.questions.devices import DeviceFilter, DeviceRow, class_selection
from allot.questions.live_devices import LiveDevices


class DeviceWatch:
    """Remembers the rows that a filter takes. Pools that have not changed are not looked at again."""

    def __init__(self, wanted: DeviceFilter) -> None:
        self._wanted = wanted
        self._class: DeviceClass | None = None
        self._pools: dict[PoolId, tuple[DeviceRow, ...]] = {}
        self._rows: dict[PoolId, dict[DeviceId, DeviceRow]] = {}

    def changed(
        self, devices: LiveDevices, class_: DeviceClass | None = None
    ) -> tuple[DeviceRow, ...]:
        """Rows that are new or different, by driver, pool and name; the first time, all.

        `class_` is the class of the filter as it is now. Without it, a filter that names a class takes no device.
        """
        devices.refresh()
        if class_ is not self._class:
            self._class, self._pools = class_, {}
        known_pools, self._pools = self._pools, dict(devices.pools)
        known_rows, self._rows = self._rows, {}
        changed: list[DeviceRow] = []
        for pool, rows in self._pools.items():
            known = known_rows.get(pool, {})
            if known_pools.get(pool) is rows:
                self._rows[pool] = known
                continue
            taken = self._rows[pool] = {row.id: row for row in self._taken(rows, devices)}
            changed += (row for id_, row in taken.items() if known.get(id_) != row)
        return tuple(sorted(changed, key=lambda row: row.id))

    def _taken(self, rows: tuple[DeviceRow, ...], devices: LiveDevices) -> Iterator[DeviceRow]:
        wanted = self._wanted
        listed = (row for row in rows if wanted.takes(row))
        if wanted.class_name is None:
            yield from listed
            return
        selects = class_selection(self._class) if self._class is not None else None
        for row in listed if selects is not None else ():
            published = devices.published(row.id)
            if published is not None and selects is not None and selects(*published):
                yield row
