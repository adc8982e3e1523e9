// The floor plan on the screen: a canvas that draws what is visible, with zoom, search, keyboard and a list instead.

import { announce, fill, h, table } from "./dom.js";
import { deviceRoute } from "./floor.js";
import { Layout } from "./layout.js";
import { drawPattern, isDark, nameColor, NO_PATTERN, stateColor, STATE_TEXTS } from "./palette.js";
import { counted, number, shortened } from "./units.js";

export const COLORINGS = { namespace: "namespace", claim: "claim", pod: "pod", model: "model", state: "state" };
const SIZES = [2, 3, 4, 6, 8, 11, 14, 18, 24, 32, 44];
const PAGE = 100;
const MANY = 20_000; // devices, of which not all are counted twice a second
const SMALL = 6; // pixels; smaller cells have neither patterns nor bars

export class Plan {
  constructor(element, floor, onColoring) {
    this.floor = floor;
    this.shown = floor;
    this.coloring = "namespace";
    this.size = 0; // 0: as large as fits
    this.lit = null;
    this.cursor = undefined;
    this.isList = false;
    this.listPage = 0;
    this.caption = "";
    this.searched = null;
    this.onColoring = onColoring;
    this.drawn = { count: 0, milliseconds: 0, longest: 0 };
    this.build(element);
    new ResizeObserver(() => this.relayout()).observe(this.scroller);
  }

  build(element) {
    this.search = h("input", {
      type: "search", placeholder: "Search node, device, model, claim, pod …", "aria-label": "Search the floor plan",
      oninput: () => this.runSearch(),
      onkeydown: (event) => { if (event.key === "Enter") this.scrollToLit(); },
    });
    this.found = h("span", { class: "found", role: "status" });
    this.select = h("select", { "aria-label": "Colour by", onchange: () => this.setColoring(this.select.value) },
      Object.entries(COLORINGS).map(([value, text]) => h("option", { value }, `by ${text}`)));
    const button = (text, label, action) =>
      h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    this.listButton = button("List", "Show as a list", () => this.toggleList());
    this.listButton.setAttribute("aria-pressed", "false");
    this.toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Floor plan" },
      h("div", { class: "searching" }, this.search, this.found),
      h("label", {}, h("span", { class: "label" }, "Colours"), this.select),
      h("div", { class: "buttons" },
        button("−", "Zoom out", () => this.zoom(-1)),
        button("+", "Zoom in", () => this.zoom(1)),
        button("Fit", "Zoom so that everything fits", () => this.zoom(0)),
        this.listButton));
    this.banner = h("div", { class: "planbanner", role: "status", hidden: true });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.world = h("div", { class: "world" }, this.canvas);
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.scroller = h("div", {
      class: "scroller", tabindex: "0", role: "application",
      "aria-label": "Floor plan of devices. Arrow keys move, Enter opens a device. The button List shows a table.",
      onscroll: () => { this.tip.hidden = true; this.requestDraw(); },
      onkeydown: (event) => this.key(event),
      onpointermove: (event) => this.point(event),
      onpointerleave: () => { this.tip.hidden = true; },
      onclick: (event) => this.click(event),
      onblur: () => { this.cursor = undefined; this.requestDraw(); },
      onwheel: (event) => {
        if (event.ctrlKey) {
          event.preventDefault();
          this.zoom(event.deltaY < 0 ? 1 : -1);
        }
      },
    }, this.world);
    this.stage = h("div", { class: "stage" }, this.scroller, this.tip);
    this.list = h("div", { class: "list", hidden: true });
    this.legend = h("div", { class: "legend", "aria-label": "Legend", role: "group" });
    fill(element, this.toolbar, this.banner, this.stage, this.list, this.legend);
    this.context = this.canvas.getContext("2d", { alpha: false });
  }

  // --- what is shown ---

  changed(numbers) {
    if (this.shown !== this.floor) return;
    if (numbers === null) this.relayout();
    else this.requestCells(numbers);
  }

  // Shows another floor plan instead, such as an earlier one; null: the present one.
  show(floor, caption) {
    const before = this.shown;
    this.shown = floor || this.floor;
    this.caption = floor ? caption : "";
    this.banner.hidden = !this.caption;
    this.banner.textContent = this.caption;
    if (before !== this.shown) this.relayout();
    if (this.isList) this.drawList();
  }

  light(numbers) {
    if (!numbers && !this.lit) return;
    this.lit = numbers && numbers.size !== undefined ? numbers : numbers ? new Set(numbers) : null;
    this.requestDraw();
    if (this.isList) this.drawList();
  }

  runSearch() {
    const text = this.search.value.trim();
    this.searched = text ? this.shown.search(text) : null;
    this.found.textContent = text ? counted(this.searched.size, "device") : "";
    this.listPage = 0;
    this.requestDraw();
    if (this.isList) this.drawList();
  }

  setColoring(value) {
    if (!(value in COLORINGS)) return;
    this.coloring = value;
    this.select.value = value;
    this.onColoring(value);
    this.requestDraw();
    this.drawLegend();
  }

  scrollToLit() {
    const numbers = this.searched || this.lit;
    const [first] = numbers || [];
    if (first !== undefined) this.reveal(first);
  }

  reveal(device) {
    const cell = this.layout?.cell(device);
    if (!cell) return;
    const { scrollTop, clientHeight } = this.scroller;
    if (cell[1] < scrollTop + 20 || cell[1] > scrollTop + clientHeight - 40) {
      this.scroller.scrollTop = Math.max(0, cell[1] - clientHeight / 3);
    }
    this.requestDraw();
  }

  zoom(step) {
    const current = this.layout ? this.layout.size : SIZES[5];
    if (step === 0) this.size = 0;
    else {
      const index = SIZES.findIndex((size) => size >= current);
      this.size = SIZES[Math.max(0, Math.min(SIZES.length - 1, index + step))];
    }
    this.relayout();
  }

  // --- layout and drawing ---

  relayout() {
    if (this.isLayoutDue) return;
    this.isLayoutDue = true;
    requestAnimationFrame(() => {
      this.isLayoutDue = false;
      const width = this.scroller.clientWidth;
      const height = this.scroller.clientHeight;
      if (!width || !height) return;
      this.layout = this.size ? new Layout(this.shown, width, this.size) : this.fitted(width, height);
      this.world.style.height = `${this.layout.height}px`;
      const ratio = window.devicePixelRatio || 1;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.ratio = ratio;
      this.draw();
      this.drawLegend();
      if (this.isList) this.drawList();
    });
  }

  fitted(width, height) {
    // An estimate first: a layout of 100,000 devices is not made for every size.
    const cells = Math.max(1, this.shown.devices.size);
    const least = cells < 500 ? 14 : cells < 5000 ? 6 : 2;
    const estimate = Math.min(Math.max(Math.sqrt((width * height * 0.5) / cells), least), 44);
    let index = SIZES.findLastIndex((size) => size <= estimate);
    let layout = new Layout(this.shown, width, SIZES[index]);
    while (layout.height > height && SIZES[index] > least) {
      index -= 1;
      layout = new Layout(this.shown, width, SIZES[index]);
    }
    return layout;
  }

  requestDraw() {
    if (this.isDrawDue) return;
    this.isDrawDue = true;
    requestAnimationFrame(() => {
      this.isDrawDue = false;
      this.draw();
    });
  }

  requestCells(numbers) {
    this.dirty = (this.dirty || []).concat(numbers);
    if (this.areCellsDue) return;
    this.areCellsDue = true;
    requestAnimationFrame(() => {
      this.areCellsDue = false;
      const dirty = this.dirty;
      this.dirty = [];
      this.timed(() => {
        this.prepare();
        for (const device of dirty) this.drawDevice(device);
      });
      this.legendLater();
      if (this.isList) this.listLater();
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

  draw() {
    if (this.layout) this.timed(() => this.drawAll());
  }

  prepare() {
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

  drawAll() {
    this.prepare();
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
    const { context, layout, ink, ratio, canvas } = this;
    const { width, height } = canvas;
    if (this.image?.width !== width || this.image?.height !== height) this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    const back = pixel(ink.back);
    const tileColor = pixel(ink.tile);
    const chosen = this.searched || this.lit;
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
        const device = this.shown.devices.get(number);
        if (!device) return;
        const [dx, dy, across, down] = group.form.cells[index];
        const color = pixel(device.state === "free" ? ink.free : this.color(device));
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
      const facts = tile.isNode ? this.shown.nodes.get(tile.name) : undefined;
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
      const device = this.shown.devices.get(number);
      if (device) {
        const [dx, dy, width, height] = form.cells[index];
        this.drawCell(device, x + dx, y + dy, width, height);
      }
    });
  }

  drawDevice(number) {
    const cell = this.layout?.cell(number);
    const device = this.shown.devices.get(number);
    if (!cell || !device || cell[1] > this.top + this.scroller.clientHeight || cell[1] + cell[3] < this.top) return;
    const [x, y, width, height] = cell;
    this.context.fillStyle = this.ink.tile;
    this.context.fillRect(x, y, width, height);
    this.drawCell(device, x, y, width, height);
  }

  drawCell(device, x, y, width, height) {
    const { context, ink } = this;
    const chosen = this.searched || this.lit;
    const isLit = !chosen || chosen.has(device.number);
    if (!isLit) context.globalAlpha = 0.18;
    const isHeld = device.holders.length > 0;
    const color = this.color(device);
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
      context.fillStyle = device.state === "free" || device.used < 50 ? ink.text : "#ffffff";
      if (NO_PATTERN.has(device.state)) context.fillText(shortened(device.name, Math.floor(width / 6)), x + 4, y + 9);
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

  color(device) {
    const [first] = device.holders;
    if (!first || this.coloring === "state") {
      return this.coloring === "model" && device.state === "held" ? nameColor(device.model) : stateColor(device.state);
    }
    return nameColor(this.category(device));
  }

  category(device) {
    const [claim, pod] = device.holders[0] || [""];
    if (this.coloring === "model") return device.model || device.driver;
    if (this.coloring === "claim") return claim;
    if (this.coloring === "pod") return pod || claim;
    return claim.slice(0, claim.indexOf("/"));
  }

  // --- legend ---

  legendLater() {
    if (this.legendTimer) return;
    this.legendTimer = setTimeout(() => {
      this.legendTimer = undefined;
      this.drawLegend();
    }, this.shown.devices.size > MANY ? 5000 : 500);
  }

  // Counts devices by what the legend shows; many of them in parts, so that the page stays responsive.
  drawLegend() {
    const all = [...this.shown.devices.values()];
    const states = new Map();
    const categories = new Map();
    const count = this.legendCount = Symbol("count");
    const part = (first) => {
      if (this.legendCount !== count) return; // another one has begun
      const last = Math.min(all.length, first + MANY);
      for (let index = first; index < last; index += 1) {
        const device = all[index];
        states.set(device.state, (states.get(device.state) || 0) + 1);
        if (device.holders.length && this.coloring !== "state") {
          const name = this.category(device);
          categories.set(name, (categories.get(name) || 0) + 1);
        }
      }
      if (last < all.length) setTimeout(() => part(last), 0);
      else this.fillLegend(states, categories);
    };
    part(0);
  }

  fillLegend(states, categories) {
    const most = [...categories].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const shown = most.slice(0, 8);
    const key = JSON.stringify([[...states], shown, this.coloring, isDark()]);
    if (key === this.legendKey) return;
    this.legendKey = key;
    fill(this.legend,
      [...states].filter(([state]) => this.coloring === "state" || (state !== "held" && state !== "shared") || !shown.length)
        .map(([state, count]) => h("span", { class: "key", title: STATE_TEXTS[state] },
          swatch(state, stateColor(state)), `${state} ${number(count)}`)),
      shown.map(([name, count]) => h("span", { class: "key", title: name },
        swatch("held", nameColor(name)), `${shortened(name || "–", 40)} ${number(count)}`)),
      most.length > shown.length ? h("span", { class: "key" }, `and ${counted(most.length - shown.length, "more", "more")}`) : null);
  }

  // --- pointer and keys ---

  position(event) {
    const box = this.scroller.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop, box];
  }

  point(event) {
    const [x, y, box] = this.position(event);
    const found = this.layout?.at(x, y);
    const device = found?.device === undefined ? undefined : this.shown.devices.get(found.device);
    this.scroller.style.cursor = device ? "pointer" : "default";
    if (!found || event.pointerType === "touch") {
      this.tip.hidden = true;
      return;
    }
    fill(this.tip, device ? this.describe(device) : [h("b", {}, shortened(found.tile.name, 80))]);
    this.tip.hidden = false;
    const left = Math.min(event.clientX - box.left + 14, box.width - this.tip.offsetWidth - 8);
    const below = event.clientY - box.top + 16;
    const top = below + this.tip.offsetHeight > box.height ? below - this.tip.offsetHeight - 28 : below;
    this.tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  describe(device) {
    return [
      h("b", {}, shortened(device.name, 60)),
      h("div", {}, shortened([device.model, device.node || `pool ${device.pool}`].filter(Boolean).join(" · "), 90)),
      h("div", {}, device.state, device.used > 0 && device.used < 100 ? `, ${device.used} % used` : ""),
      device.holders.slice(0, 4).map(([claim, ...pods]) =>
        h("div", { class: "dim" }, shortened(pods.length ? `pod ${pods.join(", ")}` : `claim ${claim}`, 90))),
    ];
  }

  click(event) {
    const [x, y] = this.position(event);
    const found = this.layout?.at(x, y);
    if (found?.device !== undefined) location.hash = deviceRoute(this.shown.devices.get(found.device));
  }

  key(event) {
    if (event.key.startsWith("Arrow")) {
      this.cursor = this.layout.neighbour(this.cursor, event.key);
      this.reveal(this.cursor);
      const device = this.shown.devices.get(this.cursor);
      if (device) announce(`${device.name}, ${device.model || ""} on ${device.node || device.pool}: ${device.state}`);
      this.requestDraw();
    } else if (event.key === "Enter" && this.cursor !== undefined) {
      const device = this.shown.devices.get(this.cursor);
      if (device) location.hash = deviceRoute(device);
    } else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else if (event.key === "0") this.zoom(0);
    else return;
    event.preventDefault();
  }

  // --- the list ---

  toggleList() {
    this.isList = !this.isList;
    this.listButton.setAttribute("aria-pressed", String(this.isList));
    this.stage.hidden = this.isList;
    this.legend.hidden = this.isList;
    this.list.hidden = !this.isList;
    if (this.isList) this.drawList();
    else this.relayout();
  }

  listLater() {
    if (this.listTimer) return;
    this.listTimer = setTimeout(() => {
      this.listTimer = undefined;
      if (this.isList) this.drawList();
    }, 1000);
  }

  drawList() {
    const chosen = this.searched || this.lit;
    const all = [...this.shown.devices.values()].filter((device) => !chosen || chosen.has(device.number));
    all.sort((a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : a.number - b.number));
    const pages = Math.max(1, Math.ceil(all.length / PAGE));
    this.listPage = Math.min(this.listPage, pages - 1);
    const rows = all.slice(this.listPage * PAGE, (this.listPage + 1) * PAGE).map((device) => [
      shortened(device.node || "–", 60), h("a", { href: deviceRoute(device), "data-key": `d${device.number}` }, shortened(device.name, 60)),
      shortened(device.model, 40), device.state,
      shortened(device.holders.map(([claim, ...pods]) => pods.join(", ") || claim).join("; "), 80),
    ]);
    fill(this.list,
      table("Devices", ["Node", "Device", "Model", "State", "Held by"], rows),
      pager(this.listPage, pages, all.length, (page) => { this.listPage = page; this.drawList(); }));
  }
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

export function swatch(state, color) {
  const canvas = h("canvas", { width: "28", height: "28", class: "swatch", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 28, 28);
  if (!NO_PATTERN.has(state)) drawPattern(context, state, 0, 0, 28, 28);
  return canvas;
}

export function pager(page, pages, total, go) {
  return h("div", { class: "pager" },
    h("button", { type: "button", disabled: page === 0, onclick: () => go(page - 1), "data-key": "previous" }, "Previous"),
    h("span", {}, `page ${number(page + 1)} of ${number(pages)}, ${number(total)} in all`),
    h("button", { type: "button", disabled: page >= pages - 1, onclick: () => go(page + 1), "data-key": "next" }, "Next"));
}
