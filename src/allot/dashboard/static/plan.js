// The floor plan on the screen: what is shown of it, with zoom, search, pointer and keyboard, or a list instead.

import { COLORINGS } from "./coloring.js";
import { announce, fill, h } from "./dom.js";
import { deviceRoute } from "./floor.js";
import { Layout } from "./layout.js";
import { Legend } from "./plan_legend.js";
import { DeviceTable } from "./plan_list.js";
import { PlanPainter } from "./plan_painter.js";
import { counted, shortened } from "./units.js";

const SIZES = [2, 3, 4, 6, 8, 11, 14, 18, 24, 32, 44];

export class Plan {
  constructor(element, floor, onColoring) {
    this.floor = floor;
    this.shown = floor;
    this.coloring = "namespace";
    this.size = 0; // 0: as large as fits
    this.lit = null;
    this.cursor = undefined;
    this.caption = "";
    this.searched = null;
    this.onColoring = onColoring;
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
    this.list = new DeviceTable();
    this.legend = new Legend();
    this.painter = new PlanPainter(this.canvas, this.scroller);
    fill(element, this.toolbar, this.banner, this.stage, this.list.element, this.legend.element);
  }

  // What is drawn.
  get picture() {
    return {
      floor: this.shown, layout: this.layout, coloring: this.coloring, chosen: this.searched || this.lit,
      selected: this.selected, cursor: this.cursor,
    };
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
    this.drawList();
  }

  light(numbers) {
    if (!numbers && !this.lit) return;
    this.lit = numbers && numbers.size !== undefined ? numbers : numbers ? new Set(numbers) : null;
    this.requestDraw();
    this.drawList();
  }

  runSearch() {
    const text = this.search.value.trim();
    this.searched = text ? this.shown.search(text) : null;
    this.found.textContent = text ? counted(this.searched.size, "device") : "";
    this.list.page = 0;
    this.requestDraw();
    this.drawList();
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
      this.painter.resize(width, height);
      this.draw();
      this.drawLegend();
      this.drawList();
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
      if (this.layout) this.painter.drawDevices(this.picture, dirty);
      this.legend.drawLater(() => this.picture);
      this.list.drawLater(() => this.picture);
    });
  }

  draw() {
    if (this.layout) this.painter.draw(this.picture);
  }

  drawLegend() {
    this.legend.draw(this.shown, this.coloring);
  }

  drawList() {
    if (this.list.isShown) this.list.draw(this.picture);
  }

  // Colours are those of another theme.
  themeChanged() {
    this.requestDraw();
    this.drawLegend();
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
    const isList = !this.list.isShown;
    this.listButton.setAttribute("aria-pressed", String(isList));
    this.stage.hidden = isList;
    this.legend.element.hidden = isList;
    this.list.element.hidden = !isList;
    if (isList) this.drawList();
    else this.relayout();
  }
}
