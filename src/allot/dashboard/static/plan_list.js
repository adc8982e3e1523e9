// The devices of the floor plan as a table, page by page.

import { fill, h, table } from "./dom.js";
import { deviceRoute } from "./floor.js";
import { number, shortened } from "./units.js";

const PAGE = 100;

export class DeviceTable {
  constructor() {
    this.element = h("div", { class: "list", hidden: true });
    this.page = 0;
  }

  get isShown() {
    return !this.element.hidden;
  }

  // Draws it soon; `picture` says what is shown then.
  drawLater(picture) {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.isShown) this.draw(picture());
    }, 1000);
  }

  draw({ floor, chosen }) {
    const all = [...floor.devices.values()].filter((device) => !chosen || chosen.has(device.number));
    all.sort((a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : a.number - b.number));
    const pages = Math.max(1, Math.ceil(all.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    const rows = all.slice(this.page * PAGE, (this.page + 1) * PAGE).map((device) => [
      shortened(device.node || "–", 60), h("a", { href: deviceRoute(device), "data-key": `d${device.number}` }, shortened(device.name, 60)),
      shortened(device.model, 40), device.state,
      shortened(device.holders.map(([claim, ...pods]) => pods.join(", ") || claim).join("; "), 80),
    ]);
    fill(this.element,
      table("Devices", ["Node", "Device", "Model", "State", "Held by"], rows),
      pager(this.page, pages, all.length, (page) => { this.page = page; this.draw({ floor, chosen }); }));
  }
}

export function pager(page, pages, total, go) {
  return h("div", { class: "pager" },
    h("button", { type: "button", disabled: page === 0, onclick: () => go(page - 1), "data-key": "previous" }, "Previous"),
    h("span", {}, `page ${number(page + 1)} of ${number(pages)}, ${number(total)} in all`),
    h("button", { type: "button", disabled: page >= pages - 1, onclick: () => go(page + 1), "data-key": "next" }, "Next"));
}
