// Where everything of a floor plan is drawn: rows of equal tiles for each group. All in pixels of the page.

import { groups } from "./floor.js";

const MARGIN = 16;
const HEADING = 42;
const MIN_GROUP = 150;
const GROUP_SPACE = 26;

export class Layout {
  constructor(floor, width, size) {
    this.size = size;
    this.gap = size >= 10 ? 3 : 1;
    this.step = size + this.gap;
    this.labels = size >= 13;
    this.width = width;
    this.groups = [];
    this.places = new Map(); // device number -> [group, tile, index]
    const room = Math.max(width - 2 * MARGIN, 1);
    let x = 0;
    let y = MARGIN / 2;
    let line = 0; // height of the current line of groups
    for (const group of groups(floor)) {
      const form = this.form(group);
      const across = form.width + form.space;
      const columns = Math.max(1, Math.min(group.tiles.length, Math.floor((room + form.space) / across)));
      const rows = Math.ceil(group.tiles.length / columns);
      // A small group stands beside others; a large one has lines of its own.
      const own = rows > 1 ? room : Math.min(room, Math.max(columns * across, MIN_GROUP));
      if (x && x + own > room) {
        x = 0;
        y += line;
        line = 0;
      }
      const placed = { ...group, form, columns, left: MARGIN + x, width: own, top: y, first: y + HEADING };
      placed.bottom = placed.first + rows * (form.height + form.space);
      group.tiles.forEach((tile, number) => {
        tile.numbers.forEach((device, index) => this.places.set(device, [placed, number, index]));
      });
      this.groups.push(placed);
      line = Math.max(line, placed.bottom - y + 4);
      x += own + GROUP_SPACE;
    }
    this.height = Math.max(y + line, 1);
  }

  // The cells of a tile, relative to its corner; equal for all tiles of a group.
  form(group) {
    const { size, gap, step } = this;
    const cells = [];
    const frames = [];
    const total = group.runs.reduce((sum, run) => sum + run.count, 0);
    const across = Math.max(2, Math.min(24, Math.ceil(Math.sqrt(total * 1.6))));
    const pad = this.labels ? 6 : Math.max(1, gap);
    const top = pad + (this.labels ? 15 : 0);
    let x = 0;
    let y = top;
    let right = 0;
    let line = 0; // height of the current line of blocks
    const wholeHeight = Math.max(2, Math.round(size / 2));
    for (const run of group.runs) {
      const inner = run.count - (run.hasWhole ? 1 : 0);
      // Rows of equal length: 8 devices are 4 and 4, not 5 and 3.
      const rows = Math.ceil(inner / (run.isSet ? 4 : across)) || 1;
      const columns = Math.max(1, Math.ceil(inner / rows));
      const frame = run.isSet ? gap + 1 : 0;
      const width = columns * step - gap + 2 * frame;
      const head = run.hasWhole ? wholeHeight + gap : 0;
      const height = head + Math.ceil(inner / columns) * step - (inner ? gap : 0) + 2 * frame;
      if (x && x + width > across * step) {
        x = 0;
        y += line + gap * 2;
        line = 0;
      }
      if (run.isSet) frames.push([pad + x, y, width, height]);
      let index = 0;
      for (let number = 0; number < run.count; number += 1) {
        if (run.hasWhole && number === 0) {
          cells.push([pad + x + frame, y + frame, width - 2 * frame, wholeHeight]);
          continue;
        }
        const column = index % columns;
        const row = Math.floor(index / columns);
        cells.push([pad + x + frame + column * step, y + frame + head + row * step, size, size]);
        index += 1;
      }
      right = Math.max(right, x + width);
      x += width + gap * 2;
      line = Math.max(line, height);
    }
    const least = this.labels ? 92 : 0;
    return {
      cells, frames, pad, width: Math.max(right + 2 * pad, least), height: y + line + pad,
      space: this.labels ? 10 : Math.max(2, gap * 2),
    };
  }

  corner(group, number) {
    const { form, columns, first, left } = group;
    return [
      left + (number % columns) * (form.width + form.space),
      first + Math.floor(number / columns) * (form.height + form.space),
    ];
  }

  // [x, y, width, height] of a device; undefined if it is not here.
  cell(device) {
    const place = this.places.get(device);
    if (!place) return undefined;
    const [group, tile, index] = place;
    const [x, y] = this.corner(group, tile);
    const [dx, dy, width, height] = group.form.cells[index];
    return [x + dx, y + dy, width, height];
  }

  // The device at a point, or the tile: {group, tile, device}.
  at(x, y) {
    const group = this.groups.find((each) => y >= each.first && y < each.bottom && x >= each.left && x < each.left + each.width);
    if (!group) return undefined;
    const { form, columns } = group;
    const column = Math.floor((x - group.left) / (form.width + form.space));
    const row = Math.floor((y - group.first) / (form.height + form.space));
    const tile = group.tiles[row * columns + column];
    if (column < 0 || column >= columns || !tile) return undefined;
    const [left, top] = this.corner(group, row * columns + column);
    const reach = this.gap / 2 + 0.5;
    const index = form.cells.findIndex(([dx, dy, width, height]) =>
      x >= left + dx - reach && x < left + dx + width + reach && y >= top + dy - reach && y < top + dy + height + reach);
    return { group, tile, device: index < 0 ? undefined : tile.numbers[index] };
  }

  // Calls `draw(group, tile, number)` for the tiles between two heights.
  visible(from, to, draw) {
    for (const group of this.groups) {
      if (group.bottom < from || group.top > to) continue;
      const line = group.form.height + group.form.space;
      const first = Math.max(0, Math.floor((from - group.first) / line)) * group.columns;
      const last = Math.min(group.tiles.length, (Math.floor((to - group.first) / line) + 1) * group.columns);
      for (let number = first; number < last; number += 1) draw(group, group.tiles[number], number);
    }
  }

  // The next device from one: by arrow keys.
  neighbour(device, key) {
    const place = this.places.get(device);
    if (!place) return this.groups[0]?.tiles[0]?.numbers[0];
    const [x, y, width, height] = this.cell(device);
    const step = this.step;
    if (key === "ArrowLeft" || key === "ArrowRight") return this.beside(place, key === "ArrowRight" ? 1 : -1);
    for (let reach = 1; reach < 400; reach += 1) {
      const dy = key === "ArrowDown" ? height + reach * step * 0.5 : -reach * step * 0.5;
      if (y + dy < 0 || y + dy > this.height) return device;
      const found = this.at(x + Math.min(width, step) / 2, y + dy);
      if (found?.device !== undefined && found.device !== device) return found.device;
    }
    return device;
  }

  beside([group, tile, index], step) {
    const numbers = group.tiles[tile].numbers;
    if (numbers[index + step] !== undefined) return numbers[index + step];
    let next = group.tiles[tile + step];
    if (!next) {
      const other = this.groups[this.groups.indexOf(group) + step];
      if (!other) return numbers[index];
      next = other.tiles[step > 0 ? 0 : other.tiles.length - 1];
    }
    return next.numbers[step > 0 ? 0 : next.numbers.length - 1];
  }
}
