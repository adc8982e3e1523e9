// What the pages of claims and pods have in common: requests with their alternatives and devices, and timelines.

import { h } from "../dom.js";
import { deviceRoute } from "../floor.js";
import { clock, quantity, shortened } from "../units.js";

export function requests(found) {
  return found.map((request) => h("div", { class: "request" },
    h("h3", {}, `request ${request.name}`),
    h("ol", { class: "alternatives" }, request.alternatives.map((each) => h("li", { class: each.isChosen ? "chosen" : "" },
      h("b", {}, each.name || "exactly"), ` ${each.mode === "All" ? "all" : each.count ?? 1} of class ${each.class}`,
      each.isChosen ? h("span", { class: "badge good" }, "chosen") : null,
      each.selectors.map((selector) => h("code", { class: "block" }, selector))))),
    request.devices.length ? h("ul", { class: "devices" }, request.devices.map((each) => {
      const [driver, pool, name] = each.device;
      return h("li", {}, h("a", { href: deviceRoute({ driver, pool, name }) }, shortened(name, 60)), ` in pool ${shortened(pool, 60)}`,
        Object.entries(each.consumed).map(([key, value]) => h("span", { class: "dim" }, ` ${key} ${quantity(value)}`)),
        each.isAdmin ? h("span", { class: "badge" }, "admin access") : null);
    })) : h("p", { class: "dim" }, "No device.")));
}

export function timeline(entries) {
  if (!entries.length) return h("p", { class: "dim" }, "No time is known.");
  return h("ol", { class: "timeline" }, entries.map((entry) => h("li", { class: entry.isWarning ? "warn" : entry.isEvent ? "event" : "" },
    h("time", {}, entry.at ? clock(entry.at) : ""), h("b", {}, entry.what), entry.detail ? ` ${entry.detail}` : "")));
}

// The numbers of the devices of requests, for the floor plan.
export function devicesOf(floor, found) {
  const wanted = new Set(found.flatMap((request) => request.devices.map((each) => each.device.join("\n"))));
  const numbers = new Set();
  if (!wanted.size) return numbers;
  for (const device of floor.devices.values()) {
    if (wanted.has([device.driver, device.pool, device.name].join("\n"))) numbers.add(device.number);
  }
  return numbers;
}

// Loads an object, and again when something of it may have changed.
export function following(load) {
  let timer;
  load();
  return {
    on(what) {
      if (what === "ready") load();
      else if ((what === "figures" || what === "change") && !timer) {
        timer = setTimeout(() => {
          timer = undefined;
          load();
        }, 1000);
      }
    },
    leave() {
      clearTimeout(timer);
      timer = "left";
    },
  };
}
