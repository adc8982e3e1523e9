// The legend of the floor plan: states and colours, each with the number of devices.

import { categoryOf } from "./coloring.js";
import { fill, h } from "./dom.js";
import { drawPattern, isDark, nameColor, NO_PATTERN, stateColor, STATE_TEXTS } from "./palette.js";
import { counted, number, shortened } from "./units.js";

const AT_ONCE = 20_000; // devices
const MANY = 20_000; // devices, of which not all are counted twice a second

export class Legend {
  constructor() {
    this.element = h("div", { class: "legend", "aria-label": "Legend", role: "group" });
  }

  // Draws it soon; `picture` says what is shown then.
  drawLater(picture) {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const { floor, coloring } = picture();
      this.draw(floor, coloring);
    }, picture().floor.devices.size > MANY ? 5000 : 500);
  }

  // Counts devices by what the legend shows; many of them in parts, so that the page stays responsive.
  draw(floor, coloring) {
    const all = [...floor.devices.values()];
    const states = new Map();
    const categories = new Map();
    const count = this.counting = Symbol("count");
    const part = (first) => {
      if (this.counting !== count) return; // another one has begun
      const last = Math.min(all.length, first + AT_ONCE);
      for (let index = first; index < last; index += 1) {
        const device = all[index];
        states.set(device.state, (states.get(device.state) || 0) + 1);
        if (device.holders.length && coloring !== "state") {
          const name = categoryOf(device, coloring);
          categories.set(name, (categories.get(name) || 0) + 1);
        }
      }
      if (last < all.length) setTimeout(() => part(last), 0);
      else this.fill(coloring, states, categories);
    };
    part(0);
  }

  fill(coloring, states, categories) {
    const most = [...categories].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const shown = most.slice(0, 8);
    const key = JSON.stringify([[...states], shown, coloring, isDark()]);
    if (key === this.key) return;
    this.key = key;
    fill(this.element,
      [...states].filter(([state]) => coloring === "state" || (state !== "held" && state !== "shared") || !shown.length)
        .map(([state, count]) => h("span", { class: "key", title: STATE_TEXTS[state] },
          swatch(state, stateColor(state)), `${state} ${number(count)}`)),
      shown.map(([name, count]) => h("span", { class: "key", title: name },
        swatch("held", nameColor(name)), `${shortened(name || "–", 40)} ${number(count)}`)),
      most.length > shown.length ? h("span", { class: "key" }, `and ${counted(most.length - shown.length, "more", "more")}`) : null);
  }
}

export function swatch(state, color) {
  const canvas = h("canvas", { width: "28", height: "28", class: "swatch", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 28, 28);
  if (!NO_PATTERN.has(state)) drawPattern(context, state, 0, 0, 28, 28);
  return canvas;
}
