// Draws the visible part of a floor plan on a canvas.
//
// A picture says what to draw: {floor, layout, coloring, chosen, selected, cursor}. `chosen` are the numbers of devices
// that are lit, or null; `selected` and `cursor` are devices with a frame.

import { colorOf } from "./coloring.js";
import { drawPattern, NO_PATTERN, stateColor } from "./palette.js";
import { counted, shortened } from "./units.js";

const SMALL = 6; // pixels; smaller cells have neither patterns nor bars

export class PlanPainter {
  constructor(canvas, scroller) {
    this.canvas = canvas;
    this.scroller = scroller;
    this.context = canvas.getContext("2d", { alpha: false });
    this.ratio = 1;
    this.drawn = { count: 0, milliseconds: 0, longest: 0 };
  }

  resize(width, height) {
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  draw(picture) {
    this.timed(() => this.drawAll(picture));
  }

  drawDevices(picture, numbers) {
    this.timed(() => {
      this.prepare(picture);
      for (const number of numbers) this.drawDevice(number);
    });
  }

  timed(work) {
    const before = performance.now();
    work();
    const took = performance.now() - before;
    this.drawn.count += 1;
    this.drawn.milliseconds = took;
    this.drawn.longest = Math.max(this.drawn.longest, took);
  }

  prepare(picture) {
    Object.assign(this, picture);
    const { context, ratio } = this;
    this.top = this.scroller.scrollTop;
    context.setTransform(ratio, 0, 0, ratio, 0, -this.top * ratio);
    const style = getComputedStyle(this.scroller);
    this.ink = {
      back: style.getPropertyValue("--plan").trim(), tile: style.getPropertyValue("--tile").trim(),
      edge: style.getPropertyValue("--edge").trim(), text: style.getPropertyValue("--ink").trim(),
      dim: style.getPropertyValue("--dim").trim(), accent: style.getPropertyValue("--accent").trim(),
      free: style.getPropertyValue("--free-edge").trim(), bad: style.getPropertyValue("--bad").trim(),
    };
  }

  drawAll(picture) {
    this.prepare(picture);
    const { context, layout, ink } = this;
    const height = this.scroller.clientHeight;
    context.fillStyle = ink.back;
    context.fillRect(0, this.top, layout.width, height);
    context.textBaseline = "middle";
    for (const group of layout.groups) {
      if (group.first < this.top || group.top > this.top + height) continue;
      const what = group.isNode ? counted(group.tiles.length, "node") : counted(group.tiles.length, "pool without a node", "pools without a node");
      context.font = "600 13px system-ui, sans-serif";
      context.fillStyle = ink.text;
      context.fillText(what, group.left, group.top + 13);
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = ink.dim;
      context.fillText(shortened(group.title, Math.max(8, Math.floor(group.width / 6.3))), group.left, group.top + 30);
    }
    if (layout.size < SMALL) this.drawPixels();
    else layout.visible(this.top, this.top + height, (group, tile, position) => this.drawTile(group, tile, position));
  }

  // Small cells are written pixel by pixel: a hundred thousand take a few milliseconds.
  drawPixels() {
    const { context, layout, ink, ratio, canvas, chosen, coloring } = this;
    const { width, height } = canvas;
    if (this.image?.width !== width || this.image?.height !== height) this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    const back = pixel(ink.back);
    const tileColor = pixel(ink.tile);
    pixels.fill(back);
    const paint = (x, y, across, down, color) => {
      const left = Math.max(0, Math.round(x * ratio));
      const right = Math.min(width, Math.round((x + across) * ratio));
      const bottom = Math.min(height, Math.round((y + down - this.top) * ratio));
      for (let row = Math.max(0, Math.round((y - this.top) * ratio)); row < bottom; row += 1) pixels.fill(color, row * width + left, row * width + right);
    };
    layout.visible(this.top, this.top + height / ratio, (group, tile, position) => {
      const [x, y] = layout.corner(group, position);
      paint(x, y, group.form.width, group.form.height, tileColor);
      tile.numbers.forEach((number, index) => {
        const device = this.floor.devices.get(number);
        if (!device) return;
        const [dx, dy, across, down] = group.form.cells[index];
        const color = pixel(device.state === "free" ? ink.free : colorOf(device, coloring));
        paint(x + dx, y + dy, across, down, !chosen || chosen.has(number) ? color : blended(color, tileColor));
      });
    });
    // Headings are drawn already: only what is below them is replaced.
    for (const group of layout.groups) {
      const from = Math.max(0, Math.round((group.first - this.top) * ratio));
      const to = Math.min(height, Math.round((group.bottom - this.top) * ratio));
      if (to <= from) continue;
      const left = Math.floor(group.left * ratio);
      context.putImageData(this.image, 0, 0, left, from, Math.ceil(group.width * ratio), to - from);
    }
    for (const number of [this.selected, this.cursor]) if (number !== undefined) this.drawDevice(number);
  }

  drawTile(group, tile, position) {
    const { context, layout, ink } = this;
    const { form } = group;
    const [x, y] = layout.corner(group, position);
    context.fillStyle = ink.tile;
    if (layout.labels) {
      context.beginPath();
      context.roundRect(x, y, form.width, form.height, 5);
      context.fill();
      const facts = tile.isNode ? this.floor.nodes.get(tile.name) : undefined;
      const state = facts && !facts.isReady ? "not ready" : facts?.isCordoned ? "cordoned" : "";
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = state ? ink.bad : ink.dim;
      const letters = Math.max(4, Math.floor((form.width - 10) / 6));
      const label = state ? `${shortened(tile.name, Math.max(4, letters - state.length - 3))} · ${state}` : shortened(tile.name, letters);
      context.fillText(label, x + form.pad, y + 11);
    } else context.fillRect(x, y, form.width, form.height);
    if (layout.size >= 4) {
      context.strokeStyle = ink.edge;
      context.lineWidth = 1;
      for (const [dx, dy, width, height] of form.frames) context.strokeRect(x + dx + 0.5, y + dy + 0.5, width - 1, height - 1);
    }
    tile.numbers.forEach((number, index) => {
      const device = this.floor.devices.get(number);
      if (device) {
        const [dx, dy, width, height] = form.cells[index];
        this.drawCell(device, x + dx, y + dy, width, height);
      }
    });
  }

  drawDevice(number) {
    const cell = this.layout.cell(number);
    const device = this.floor.devices.get(number);
    if (!cell || !device || cell[1] > this.top + this.scroller.clientHeight || cell[1] + cell[3] < this.top) return;
    const [x, y, width, height] = cell;
    this.context.fillStyle = this.ink.tile;
    this.context.fillRect(x, y, width, height);
    this.drawCell(device, x, y, width, height);
  }

  drawCell(device, x, y, width, height) {
    const { context, ink, chosen } = this;
    const isLit = !chosen || chosen.has(device.number);
    if (!isLit) context.globalAlpha = 0.18;
    const isHeld = device.holders.length > 0;
    const color = colorOf(device, this.coloring);
    const small = Math.min(width, height) < SMALL;
    if (device.state === "free") {
      context.fillStyle = small ? ink.free : stateColor("free");
      context.fillRect(x, y, width, height);
      if (!small) {
        context.strokeStyle = ink.free;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
      }
    } else if (device.used > 0 && device.used < 100 && !small) {
      context.fillStyle = stateColor("free");
      context.fillRect(x, y, width, height);
      context.fillStyle = color;
      const filled = Math.max(2, (height * device.used) / 100);
      context.fillRect(x, y + height - filled, width, filled);
      context.strokeStyle = color;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    } else {
      context.fillStyle = color;
      context.fillRect(x, y, width, height);
    }
    if (!small && !NO_PATTERN.has(device.state)) drawPattern(context, device.state, x, y, width, height);
    if (!small && isHeld && (device.isTainted || device.hasFailed)) {
      context.fillStyle = device.hasFailed ? stateColor("unusable") : stateColor("tainted");
      context.beginPath();
      const corner = Math.max(4, width / 2.5);
      context.moveTo(x + width - corner, y);
      context.lineTo(x + width, y);
      context.lineTo(x + width, y + corner);
      context.fill();
    }
    if (width >= 32 && height >= 20) {
      context.font = "10px system-ui, sans-serif";
      context.fillStyle = device.state === "free" || device.used < 50 ? ink.text : inkOn(color);
      if (NO_PATTERN.has(device.state)) context.fillText(this.fitting(device.name, width - 6), x + 3, y + 9);
    }
    context.globalAlpha = 1;
    if ((chosen && isLit && (small || chosen.size <= 60)) || this.selected === device.number) {
      context.strokeStyle = this.selected === device.number ? ink.text : ink.accent;
      context.lineWidth = small ? 1 : 2;
      context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
    }
    if (this.cursor === device.number) {
      context.strokeStyle = ink.text;
      context.lineWidth = 3;
      context.strokeRect(x - 2, y - 2, width + 4, height + 4);
    }
  }

  // As much of the end of a name as fits: numbers tell devices apart.
  fitting(name, width) {
    const { context } = this;
    if (name.length < 40 && context.measureText(name).width <= width) return name;
    const end = name.slice(name.lastIndexOf("-") + 1);
    return end.length < 40 && context.measureText(end).width <= width ? end : "";
  }
}

// Black or white: what is readable on a colour.
function inkOn(color) {
  const [red, green, blue] = [1, 3, 5].map((index) => parseInt(color.slice(index, index + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 135 ? "#10161d" : "#ffffff";
}

// A colour as a pixel: opaque, in the byte order of ImageData.
const pixelByColor = new Map();

function pixel(color) {
  let found = pixelByColor.get(color);
  if (found === undefined) {
    const [red, green, blue] = [1, 3, 5].map((index) => parseInt(color.slice(index, index + 2), 16));
    found = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    pixelByColor.set(color, found);
  }
  return found;
}

const blendByColors = new Map();

function blended(color, back) {
  const key = color * 4294967296 + back;
  let found = blendByColors.get(key);
  if (found === undefined) {
    const part = (shift) => Math.round(((color >>> shift) & 255) * 0.18 + ((back >>> shift) & 255) * 0.82) << shift;
    found = ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
    blendByColors.set(key, found);
  }
  return found;
}
