// The floor plan as data: pools, devices, and how they are laid out. It knows no canvas.

import { STATES } from "./palette.js";

export class Floor {
  constructor() {
    this.pools = new Map();
    this.devices = new Map();
    this.nodes = new Map();
    this.byState = Object.fromEntries(STATES.map((state) => [state, 0]));
    this.revision = 0; // of the layout
  }

  // Takes a change as the server sends it; returns the numbers of devices in a new state, or null if places changed.
  apply(change) {
    for (const [name, facts] of change.nodes || []) {
      if (facts) this.nodes.set(name, { isReady: facts[1], isCordoned: facts[2] });
      else this.nodes.delete(name);
    }
    for (const number of change.gone || []) this.remove(number);
    for (const pool of change.pools || []) this.put(pool);
    const changed = [];
    for (const [number, cell] of change.cells || []) {
      const device = this.devices.get(number);
      if (device) {
        this.byState[device.state] -= 1;
        this.enter(withCell(device, cell));
        changed.push(number);
      }
    }
    const hasMoved = (change.pools || []).length || (change.gone || []).length;
    if (hasMoved) this.revision += 1;
    return hasMoved ? null : changed;
  }

  put(pool) {
    this.remove(pool.number);
    const numbers = [];
    pool.places.forEach(([number, name, model, node, group, weight], index) => {
      const place = {
        number, name, model, node: pool.node || node, group, weight, driver: pool.driver, pool: pool.pool,
      };
      this.enter(withCell(place, pool.cells[index]));
      numbers.push(number);
    });
    this.pools.set(pool.number, numbers);
  }

  enter(device) {
    this.devices.set(device.number, device);
    this.byState[device.state] += 1;
  }

  remove(number) {
    for (const device of this.pools.get(number) || []) {
      this.byState[this.devices.get(device).state] -= 1;
      this.devices.delete(device);
    }
    this.pools.delete(number);
  }

  clear() {
    for (const number of [...this.pools.keys()]) this.remove(number);
    this.nodes.clear();
  }

  // A copy with a change: what was, or what would be.
  with(change) {
    const copy = new Floor();
    copy.pools = new Map(this.pools);
    copy.devices = new Map(this.devices);
    copy.nodes = new Map(this.nodes);
    copy.byState = { ...this.byState };
    copy.apply(change);
    return copy;
  }

  // The number of devices in each state.
  counts() {
    return { ...this.byState };
  }

  find(driver, pool, name) {
    for (const device of this.devices.values()) {
      if (device.name === name && device.pool === pool && device.driver === driver) return device;
    }
    return undefined;
  }

  // The numbers of devices that have all words of the text in a name.
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = new Set();
    if (!words.length) return found;
    for (const device of this.devices.values()) {
      const names = [device.node, device.driver, device.pool, device.name, device.model, device.state]
        .concat(device.holders.flat()).join("\n").toLowerCase();
      if (words.every((word) => names.includes(word))) found.add(device.number);
    }
    return found;
  }
}

function withCell(place, [state, used, marks, holders]) {
  return { ...place, state: STATES[state], used, isTainted: Boolean(marks & 1), hasFailed: Boolean(marks & 2), holders };
}

export function deviceRoute(device) {
  return `#/device/${[device.driver, device.pool, device.name].map(encodeURIComponent).join("/")}`;
}

const natural = new Intl.Collator("en", { numeric: true });

// Tiles: what is drawn together, a node or a pool that is on no single node. Groups: tiles of the same shape.
export function groups(floor) {
  const tiles = new Map();
  for (const device of floor.devices.values()) {
    const name = device.node ? `n${device.node}` : `p${device.driver}\n${device.pool}`;
    let tile = tiles.get(name);
    if (!tile) {
      tile = { name: device.node || device.pool, isNode: Boolean(device.node), devices: [] };
      tiles.set(name, tile);
    }
    tile.devices.push(device);
  }
  const byShape = new Map();
  for (const tile of tiles.values()) {
    tile.devices.sort(inTile);
    const shape = shapeOf(tile);
    let group = byShape.get(shape.key);
    if (!group) {
      group = { ...shape, tiles: [] };
      byShape.set(shape.key, group);
    }
    tile.numbers = tile.devices.map((device) => device.number);
    delete tile.devices;
    group.tiles.push(tile);
  }
  const found = [...byShape.values()];
  for (const group of found) group.tiles.sort((a, b) => natural.compare(a.name, b.name));
  return found.sort((a, b) => b.isNode - a.isNode || b.tiles.length * b.size - a.tiles.length * a.size
    || natural.compare(a.title, b.title));
}

function inTile(a, b) {
  if (a.driver !== b.driver) return a.driver < b.driver ? -1 : 1;
  if (a.pool !== b.pool) return natural.compare(a.pool, b.pool);
  if (a.group !== b.group) return natural.compare(a.group, b.group);
  if (a.group && a.weight !== b.weight) return b.weight - a.weight;
  return natural.compare(a.name, b.name);
}

// The shape of a tile: runs of devices of one driver, or of one counter set, whose first device may be the whole.
function shapeOf(tile) {
  const runs = [];
  const kinds = new Map();
  for (const device of tile.devices) {
    const id = `${device.driver}\n${device.pool}\n${device.group}`;
    let run = runs[runs.length - 1];
    if (!run || run.id !== id) {
      run = { id, isSet: Boolean(device.group), count: 0, hasWhole: Boolean(device.group) && device.weight === 100 };
      runs.push(run);
    }
    run.count += 1;
    const kind = device.model || device.driver;
    kinds.set(kind, (kinds.get(kind) || 0) + 1);
  }
  const title = [...kinds].map(([kind, count]) => `${count} × ${kind}`).join(", ");
  const form = runs.map((run) => `${run.count}${run.isSet ? "s" : ""}${run.hasWhole ? "w" : ""}`).join(",");
  return { key: `${tile.isNode}\n${title}\n${form}`, isNode: tile.isNode, title, runs, size: tile.devices.length };
}
